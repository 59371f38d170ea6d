package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// sectionOf is the annotation of a flag that names the section under which the help lists the flag.
const sectionOf = "section"

// visibleEverywhere has the settings that the help of every command lists. All commands accept every
// setting, but only the help of serve lists them all.
var visibleEverywhere = map[string]bool{"data-dir": true, "python": true}

// withSettings gives a command a flag for every setting, and makes it call do with their values.
func withSettings(cmd *cobra.Command, do func(ctx context.Context, s settings, args []string) error) *cobra.Command {
	var s settings
	cmd.Flags().SortFlags = false
	for _, section := range s.sections() {
		flags := pflag.NewFlagSet(section.title, pflag.ContinueOnError)
		flags.SortFlags = false
		section.register(flags)
		flags.VisitAll(func(f *pflag.Flag) {
			f.Annotations = map[string][]string{sectionOf: {section.title}}
			f.Hidden = cmd.Name() != "serve" && !visibleEverywhere[f.Name]
		})
		cmd.Flags().AddFlagSet(flags)
	}
	for _, flag := range []string{"isolation", "min-level"} {
		_ = cmd.RegisterFlagCompletionFunc(flag,
			cobra.FixedCompletions(isolationLevels, cobra.ShellCompDirectiveNoFileComp))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := lowerMemory(cmd.Flags()); err != nil {
			return err
		}
		if err := preferDataDir(cmd.Flags()); err != nil {
			return err
		}
		s.notes = notesOf(cmd.Flags())
		_, s.databases.named.isOfService = cmd.Annotations[databaseOfService]
		if err := s.resolve(); err != nil {
			if len(s.notes) > 0 {
				err = fmt.Errorf("%w (%s)", err, strings.Join(s.notes, "; "))
			}
			return err
		}
		return do(cmd.Context(), s, args)
	}
	return cmd
}

// preferDataDir makes --data-dir on the command line override the service that the environment names, and its key.
func preferDataDir(flags *pflag.FlagSet) error {
	url := flags.Lookup("url")
	if url == nil || url.Value.String() == "" || url.Changed || !flags.Changed("data-dir") {
		return nil
	}
	return errors.Join(url.Value.Set(""), os.Unsetenv(keyVariable))
}

// environmentName returns the environment variable of a flag: GLASSHOUSE_DATA_DIR for data-dir.
func environmentName(flag string) string {
	return "GLASSHOUSE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// applyEnvironment sets the flags of the command that args name to the values that the environment
// has for them, in their own variable or in one of otherVariables. It does so before the command line
// is parsed, so that a flag overrides its variable; data sets (--data) of both are kept.
func applyEnvironment(root *cobra.Command, args []string) (err error) {
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil // the hidden command for shell completion, which cobra adds later
	}
	cmd, _, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		name := environmentName(f.Name)
		if err != nil || f.Name == "help" {
			return
		}
		if v := os.Getenv(name); v != "" {
			if problem := f.Value.Set(v); problem != nil {
				if strings.Contains(v, "://") {
					v = "..." // it may have a password
				}
				err = fmt.Errorf("the environment variable %s=%q is invalid: %w", name, v, problem)
			}
			return
		}
		if f.Annotations[sectionOf] == nil { // not a setting
			return
		}
		for _, other := range otherVariablesOf(f.Name) {
			var applied bool
			if applied, err = other.apply(f); applied || err != nil {
				return
			}
		}
	})
	return err
}

// arguments returns a check that a command has from minArgs to maxArgs arguments.
func arguments(minArgs, maxArgs int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= minArgs && len(args) <= maxArgs {
			return nil
		}
		if maxArgs == 0 {
			return fmt.Errorf("%s takes no argument, got %q", cmd.CommandPath(), args[0])
		}
		return fmt.Errorf("wrong number of arguments (%d); usage: %s", len(args), cmd.UseLine())
	}
}

// explainFlagError adds to an error of the flags the flag that was probably meant.
func explainFlagError(cmd *cobra.Command, err error) error {
	help := fmt.Sprintf("`%s --help` lists the flags", cmd.CommandPath())
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return fmt.Errorf("%w; %s", err, help)
	}
	if unknown.GetSpecifiedShortnames() != "" { // as -listen, which is -l -i -s ...
		return fmt.Errorf("%w; flags have two dashes; %s", err, help)
	}
	// cobra looks for similar names among commands only.
	flags := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if similar := flags.SuggestionsFor(unknown.GetSpecifiedName()); len(similar) > 0 {
		return fmt.Errorf("%w; did you mean --%s?", err, strings.Join(similar, " or --"))
	}
	return fmt.Errorf("%w; %s", err, help)
}

// printUsage prints how a command is used: its forms, examples, commands, and flags by section.
func printUsage(cmd *cobra.Command) error {
	out := cmd.OutOrStderr()
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(out, "Usage:\n  %s COMMAND [flags]\n\nCommands:\n", cmd.CommandPath())
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				fmt.Fprintf(out, "  %-12s%s\n", c.Name(), c.Short)
			}
		}
		fmt.Fprintf(out, "\n`%s COMMAND --help` has the flags and examples of a command.\n", cmd.CommandPath())
		return nil
	}
	fmt.Fprintf(out, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	var sections []string
	lines := map[string][]string{}
	hidden := false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if hidden = hidden || f.Hidden; f.Hidden || f.Name == "help" {
			return
		}
		title := "Flags"
		if section := f.Annotations[sectionOf]; len(section) > 0 && cmd.Name() == "serve" {
			title = section[0]
		}
		if lines[title] == nil {
			sections = append(sections, title)
		}
		lines[title] = append(lines[title], describeFlag(f))
	})
	for _, title := range sections {
		fmt.Fprintf(out, "\n%s:\n%s", title, strings.Join(lines[title], ""))
	}
	if len(sections) > 0 {
		fmt.Fprintln(out, "\nA flag overrides its environment variable, which is in brackets.")
	}
	if hidden {
		fmt.Fprintln(out, "Every setting that `glasshouse serve --help` lists is accepted here, too.")
	}
	return nil
}

// describeFlag returns the lines of the help for a flag.
func describeFlag(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	if value != "" {
		value = " " + value
	}
	standard := ""
	if f.DefValue != "" && f.DefValue != "false" {
		standard = ", default " + f.DefValue
	}
	names := environmentName(f.Name)
	for _, other := range otherVariablesOf(f.Name) {
		if f.Annotations[sectionOf] != nil {
			names += " or " + other.name
		}
	}
	return fmt.Sprintf("  --%s%s  [%s%s]\n        %s\n", f.Name, value, names, standard, usage)
}
