// Command glasshouse runs Python that agents write, next to PostgreSQL.
//
// main.go has the root command and the exit codes. settings.go has every setting by section, and
// flags.go the help, the environment variables and the suggestions of all commands. app.go builds the
// service and joins its parts; client.go calls the service that runs on a data folder. Every other
// file is named after its command.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"glasshouse/sandbox/isolate"
)

// version and commit are set when the binary is built (-ldflags "-X main.version=... -X main.commit=...").
var version, commit = "dev", ""

// fullVersion returns the version and, if it is known, the commit. `go build` in a checkout records the commit itself.
func fullVersion() string {
	id := commit
	if info, ok := debug.ReadBuildInfo(); ok && id == "" {
		changed := ""
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				id = s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = ".dirty"
			}
		}
		id += changed
	}
	if id == "" {
		return version
	}
	return version + " (commit " + id + ")"
}

// failureCode is the annotation of a command whose errors have another exit code than exitFailed.
const failureCode = "failure-code"

// The exit codes. A failed command, a refused statement or a wrong flag is exitFailed.
const (
	exitOK = iota
	exitFailed
	exitUnknownCommand // also without any command
)

func main() {
	isolate.RunLauncher() // does not return in a process that the service re-executed to build a sandbox
	if err := isolate.Harden(os.Environ()); err != nil {
		fmt.Fprintln(os.Stderr, "glasshouse: this process keeps more privileges than it needs:", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// execute executes the command that args name, prints its error to stderr and returns the exit code.
func execute(ctx context.Context, args []string) int {
	root := newRootCommand()
	root.SetArgs(args)
	err := applyEnvironment(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	var unknown errUnknownCommand
	var code errExit
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &unknown) && unknown.command == root:
		fmt.Fprintf(os.Stderr, "glasshouse: %v\n\n%s", err, root.UsageString())
		return exitUnknownCommand
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintln(os.Stderr, "glasshouse:", err)
	if cmd, _, findErr := root.Find(args); findErr == nil {
		if n, convertErr := strconv.Atoi(cmd.Annotations[failureCode]); convertErr == nil {
			return n
		}
	}
	return exitFailed
}

func newRootCommand() *cobra.Command {
	cobra.EnableCommandSorting = false // the help lists commands in the order below
	root := newGroup(
		"glasshouse",
		"glasshouse runs Python code that AI agents write, next to PostgreSQL, and records everything that the code does.",
		newServeCommand(),
		newRunCommand(),
		newDebugCommand(),
		newReplayCommand(),
		newExplainCommand(),
		newCheckCommand(),
		newDAPCommand(),
		newMCPCommand(),
		newKeysCommand(),
		newLoginLinkCommand(),
		newEnvCommand(),
		newHistoryCommand(),
		newBackupCommand(),
		newRestoreCommand(),
		newProveCommand(),
		newRoleSQLCommand(),
		newDoctorCommand(),
		newVersionCommand(),
	)
	root.Version = fullVersion()
	root.SetVersionTemplate("glasshouse {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true // run prints errors
	root.SetUsageFunc(printUsage)
	root.SetFlagErrorFunc(explainFlagError)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(os.Args[1:]...)
	return root
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version and the commit", Args: arguments(0, 0),
		Example: "  glasshouse version",
		Run:     func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "glasshouse", fullVersion()) },
	}
}

// newGroup returns a command that consists of other commands.
func newGroup(name, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use: name, Short: short, SuggestionsMinimumDistance: 2, // of edits
		Args:               cobra.ArbitraryArgs,                          // RunE names the command that was perhaps meant
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}, // they belong to the unknown command
		RunE: func(cmd *cobra.Command, args []string) error {
			return errUnknownCommand{cmd, strings.Join(args[:min(1, len(args))], "")}
		},
	}
	group.AddCommand(commands...)
	return group
}

// errUnknownCommand is the error if a group lacks the named command, or if no command was given.
type errUnknownCommand struct {
	command *cobra.Command
	name    string
}

func (e errUnknownCommand) Error() string {
	if e.name == "" {
		var names []string
		for _, c := range e.command.Commands() {
			names = append(names, c.Name())
		}
		return fmt.Sprintf("%s needs a command: %s", e.command.CommandPath(), strings.Join(names, ", "))
	}
	text := fmt.Sprintf("%s has no command %q", e.command.CommandPath(), e.name)
	if similar := e.command.SuggestionsFor(e.name); len(similar) > 0 {
		return text + ": did you mean " + strings.Join(similar, " or ") + "?"
	}
	return text + fmt.Sprintf("; `%s --help` lists its commands", e.command.CommandPath())
}
