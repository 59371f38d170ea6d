package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"glasshouse/sandbox"
	"glasshouse/sandbox/environment"
)

const envUsage = `usage: glasshouse env list
       glasshouse env show [NAME]
       glasshouse env add [--env NAME] PACKAGE[==VERSION]...
       glasshouse env remove [--env NAME] PACKAGE...
       glasshouse env create [--from NAME | --python PATH] NAME
       glasshouse env update [--env NAME]
       glasshouse env delete NAME`

// env lists and changes the environments of the data folder, whether a service runs on
// it or not; one that does takes the change up at once.
func env(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(envUsage)
	}
	name, from := environment.Default, ""
	var source bool
	var all *flag.FlagSet
	own := func(f *flag.FlagSet) {
		all = f
		switch args[0] {
		case "add", "remove", "update":
			f.StringVar(&name, "env", environment.Default, "which environment")
		case "create":
			f.StringVar(&from, "from", "", "environment whose packages it begins with")
		}
		if args[0] == "add" || args[0] == "update" {
			f.BoolVar(&source, "source", false, "build packages that have no wheel: that runs code of theirs on this machine, outside the wall")
		}
	}
	c, rest, err := parse("env "+args[0], args[1:], own)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	shelf := environment.Store{Dir: c.shelf()}
	if shelf.Base, err = interpreter(c, all, shelf); err != nil {
		return err
	}
	bench := environment.Installer{Store: shelf, Environ: os.Environ(), Source: source,
		Say: func(step string) { fmt.Fprintf(os.Stderr, "glasshouse: %s\n", step) }}
	syscall.Umask(0o022) // sandboxes read what is made here, and have uids of their own
	var made sandbox.Environment
	switch command, n := args[0], len(rest); {
	case command == "list" && n == 0:
		return listEnvironments(shelf)
	case command == "show" && n <= 1:
		return showEnvironment(shelf, append(rest, environment.Default)[0])
	case command == "add" && n > 0:
		made, err = bench.Add(ctx, name, rest)
	case command == "remove" && n > 0:
		made, err = bench.Remove(ctx, name, rest)
	case command == "create" && n == 1:
		python := ""
		if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(strings.TrimLeft(arg, "-"), "python") && arg[0] == '-' }) {
			python = c.python
		}
		made, err = bench.Create(ctx, rest[0], from, python)
	case command == "update" && n == 0:
		made, err = bench.Update(ctx, name)
	case command == "delete" && n == 1:
		err = bench.Delete(ctx, rest[0])
	default:
		return errors.New(envUsage)
	}
	if err != nil {
		return err
	}
	if made.Name != "" {
		fmt.Printf("%s has %d packages (%.12s)\n", made.Name, made.Packages, made.Digest)
	}
	return takeUp(ctx, c)
}

// interpreter is the one that the default environment is made from: the one that is named,
// else the one of the service that last ran on the data folder.
func interpreter(c config, f *flag.FlagSet, shelf environment.Store) (string, error) {
	named := false
	f.Visit(func(given *flag.Flag) { named = named || given.Name == "python" })
	if last := shelf.Recall(); last != "" && !named {
		return last, nil
	}
	return absolute(c.python)
}

// absolute is where a program lies that is named as in a shell.
func absolute(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%w: name an interpreter with --python", err)
	}
	return filepath.Abs(path)
}

// remember writes down which interpreter the default environment is made from, for those
// who change it, and says where it was made from another one.
func remember(c config, warn func(string, ...any)) (err error) {
	shelf := environment.Store{Dir: c.shelf()}
	if shelf.Base, err = absolute(c.python); err != nil {
		return err
	}
	if other := shelf.Outdated(); other != "" {
		warn("the environment default was made from %s, not from %s: `glasshouse env update` makes it again", other, shelf.Base)
	}
	return shelf.Remember()
}

// takeUp tells the service that runs on the data folder, if one does.
func takeUp(ctx context.Context, c config) error {
	r := dial(c)
	if r == nil {
		fmt.Fprintln(os.Stderr, "glasshouse: no service runs on "+c.dataDir+"; the next one has it")
		return nil
	}
	if err := r.call(ctx, "POST", "/environments/refresh", nil, &struct{}{}); err != nil {
		return fmt.Errorf("it is done, and the service that runs did not take it up: %w", err)
	}
	fmt.Fprintln(os.Stderr, "glasshouse: the service has it: sandboxes that are made from now on")
	return nil
}

func listEnvironments(shelf environment.Store) error {
	names, err := shelf.Names()
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "NAME\tPYTHON\tPACKAGES\tDIGEST\tADDED")
	for _, name := range names {
		h, err := shelf.Pin(name)
		if err != nil {
			fmt.Fprintf(out, "%s\t\t\t\t%v\n", name, err)
			continue
		}
		fmt.Fprintf(out, "%s\t%s\t%d\t%.12s\t%s\n", name, h.Environment.Python, h.Environment.Packages, h.Digest, strings.Join(h.Lock.Asked, " "))
		h.Release()
	}
	return out.Flush()
}

func showEnvironment(shelf environment.Store, name string) error {
	h, err := shelf.Pin(name)
	if err != nil {
		return err
	}
	defer h.Release()
	fmt.Printf("%s: Python %s, made from %s\ndigest %s\n", name, h.Environment.Python, h.Lock.Python, h.Digest)
	if len(h.Lock.Asked) > 0 {
		fmt.Printf("added: %s\n", strings.Join(h.Lock.Asked, " "))
	}
	if len(h.Lock.Removed) > 0 {
		fmt.Printf("taken out: %s\n", strings.Join(h.Lock.Removed, " "))
	}
	fmt.Println()
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	for _, p := range h.Packages {
		fmt.Fprintf(out, "%s\t%s\t%s\n", p.Name, p.Version, p.Summary)
	}
	return out.Flush()
}
