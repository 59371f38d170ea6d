package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"glasshouse/sandbox"
	"glasshouse/sandbox/environment"
)

// envCommand has the flags and the state that the env commands share.
type envCommand struct {
	cmd         *cobra.Command
	environment string // --env
	build       bool   // --source
	store       environment.Store
	installer   environment.Installer
}

func newEnvCommand() *cobra.Command {
	list := &envCommand{
		cmd: &cobra.Command{
			Use:     "list",
			Short:   "List environments",
			Args:    arguments(0, 0),
			Example: "  glasshouse env list",
		},
	}
	show := &envCommand{cmd: &cobra.Command{
		Use: "show [flags] [NAME]", Short: "List the packages of an environment", Args: arguments(0, 1), Example: "  glasshouse env show lab",
	}}
	add := &envCommand{cmd: &cobra.Command{
		Use: "add [flags] PACKAGE[==VERSION]...", Short: "Add packages to an environment", Args: cobra.MinimumNArgs(1),
		Example: `  glasshouse env add scikit-learn
  glasshouse env add --env lab 'polars>=1,<2' duckdb==1.1.3`,
	}}
	remove := &envCommand{cmd: &cobra.Command{
		Use: "remove [flags] PACKAGE...", Short: "Remove packages, and the dependencies that came with them", Args: cobra.MinimumNArgs(1),
		Example: "  glasshouse env remove --env lab duckdb",
	}}
	create := &envCommand{cmd: &cobra.Command{
		Use: "create [flags] NAME", Short: "Create an environment", Args: arguments(1, 1),
		Example: `  glasshouse env create lab
  glasshouse env create --from default lab
  glasshouse env create --python /usr/bin/python3.12 new`,
	}}
	update := &envCommand{cmd: &cobra.Command{
		Use: "update [flags]", Short: "Install an environment again, with the newest versions that its packages allow", Args: arguments(0, 0),
		Example: "  glasshouse env update --env lab",
	}}
	remover := &envCommand{cmd: &cobra.Command{
		Use: "delete [flags] NAME", Short: "Delete an environment", Args: arguments(1, 1), Example: "  glasshouse env delete lab",
	}}
	for _, e := range []*envCommand{add, remove, update} {
		e.cmd.Flags().StringVar(&e.environment, "env", environment.Default, "`NAME` of the environment")
	}
	for _, e := range []*envCommand{add, update} {
		e.cmd.Flags().BoolVar(&e.build, "source", false,
			"build packages that have no wheel; building runs code of the package on this machine, outside of any sandbox")
	}
	from := ""
	create.cmd.Flags().StringVar(&from, "from", "", "`NAME` of the environment whose packages it begins with")

	return newGroup("env", "Manage the environments that sandboxes choose from, and their packages",
		list.withStore(func(context.Context, settings, []string) error { return listEnvironments(list.store) }),
		show.withStore(func(_ context.Context, _ settings, args []string) error {
			return showEnvironment(show.store, append(args, environment.Default)[0])
		}),
		add.withChange(func(ctx context.Context, _ settings, args []string) (sandbox.Environment, error) {
			return add.installer.Add(ctx, add.environment, args)
		}),
		remove.withChange(func(ctx context.Context, _ settings, args []string) (sandbox.Environment, error) {
			return remove.installer.Remove(ctx, remove.environment, args)
		}),
		create.withChange(func(ctx context.Context, s settings, args []string) (sandbox.Environment, error) {
			python := ""
			if create.cmd.Flags().Changed("python") {
				python = s.python.interpreter
			}
			return create.installer.Create(ctx, args[0], from, python)
		}),
		update.withChange(func(ctx context.Context, _ settings, _ []string) (sandbox.Environment, error) {
			return update.installer.Update(ctx, update.environment)
		}),
		remover.withChange(func(ctx context.Context, _ settings, args []string) (sandbox.Environment, error) {
			return sandbox.Environment{}, remover.installer.Delete(ctx, args[0])
		}))
}

// withStore makes the command call do after it has opened the environments of the data folder.
func (e *envCommand) withStore(do func(context.Context, settings, []string) error) *cobra.Command {
	return withSettings(e.cmd, func(ctx context.Context, s settings, args []string) (err error) {
		e.store = environment.Store{Dir: s.environments()}
		if e.store.Base, err = e.baseInterpreter(s); err != nil {
			return err
		}
		return do(ctx, s, args)
	})
}

// withChange makes the command call do with an installer. It prints the environment that do returns, and
// tells the service that runs on the data folder.
func (e *envCommand) withChange(
	do func(context.Context, settings, []string) (sandbox.Environment, error),
) *cobra.Command {
	return e.withStore(func(ctx context.Context, s settings, args []string) error {
		syscall.Umask(0o022) // sandboxes have users of their own and must be able to read the files
		e.installer = environment.Installer{
			Store: e.store, AllowBuilds: e.build,
			Environ:  append(os.Environ(), "PATH="+os.Getenv("PATH")+":"+filepath.Join(packagedFolder, "bin")), // uv
			Progress: func(step string) { fmt.Fprintf(os.Stderr, "glasshouse: %s\n", step) },
		}
		changed, err := do(ctx, s, args)
		if err != nil {
			return err
		}
		if changed.Name != "" {
			fmt.Printf("%s has %d packages (%.12s)\n", changed.Name, changed.Packages, changed.Digest)
		}
		return refreshService(ctx, s)
	})
}

// baseInterpreter returns the interpreter of the default environment: the one that --python or
// GLASSHOUSE_PYTHON names, else that of the service that last ran on the data folder.
func (e *envCommand) baseInterpreter(s settings) (string, error) {
	named := e.cmd.Flags().Changed("python") || os.Getenv(environmentName("python")) != ""
	if last := e.store.Recall(); last != "" && !named {
		return last, nil
	}
	return findProgram(s.python.interpreter)
}

// findProgram returns the absolute path of a program that is named as in a shell.
func findProgram(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%w: name an interpreter with --python", err)
	}
	return filepath.Abs(path)
}

// rememberInterpreter writes the service's interpreter to the data folder, where `glasshouse env` reads
// it. It warns if the default environment was made from another interpreter.
func rememberInterpreter(s settings, warn func(string, ...any)) (err error) {
	store := environment.Store{Dir: s.environments()}
	if store.Base, err = findProgram(s.python.interpreter); err != nil {
		return err
	}
	if other := store.Outdated(); other != "" {
		warn(
			"the environment default was made from %s, not from %s: `glasshouse env update` makes it again",
			other,
			store.Base,
		)
	}
	return store.Remember()
}

// refreshService makes the service that runs on the data folder use the changed environments.
func refreshService(ctx context.Context, s settings) error {
	c := dial(s.server.dataDir)
	if c == nil {
		fmt.Fprintln(os.Stderr, "glasshouse: no service runs on "+s.server.dataDir+"; the next one uses the change")
		return nil
	}
	if err := c.call(ctx, "POST", "/environments/refresh", nil, &struct{}{}); err != nil {
		return fmt.Errorf(
			"the environment is changed, but the running service does not use it yet: %w; restart the service",
			err,
		)
	}
	fmt.Fprintln(os.Stderr, "glasshouse: the running service uses the change for new sandboxes")
	return nil
}

func listEnvironments(store environment.Store) error {
	names, err := store.Names()
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "NAME\tPYTHON\tPACKAGES\tDIGEST\tADDED")
	for _, name := range names {
		h, err := store.Pin(name)
		if err != nil {
			fmt.Fprintf(out, "%s\t\t\t\t%v\n", name, err)
			continue
		}
		fmt.Fprintf(out, "%s\t%s\t%d\t%.12s\t%s\n", name, h.Environment.Python, h.Environment.Packages, h.Digest,
			strings.Join(h.Lock.Requested, " "))
		h.Release()
	}
	return out.Flush()
}

func showEnvironment(store environment.Store, name string) error {
	h, err := store.Pin(name)
	if err != nil {
		return err
	}
	defer h.Release()
	fmt.Printf("%s: Python %s, made from %s\ndigest %s\n", name, h.Environment.Python, h.Lock.Python, h.Digest)
	if len(h.Lock.Requested) > 0 {
		fmt.Printf("added: %s\n", strings.Join(h.Lock.Requested, " "))
	}
	if len(h.Lock.Removed) > 0 {
		fmt.Printf("removed: %s\n", strings.Join(h.Lock.Removed, " "))
	}
	fmt.Println()
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	for _, p := range h.Packages {
		fmt.Fprintf(out, "%s\t%s\t%s\n", p.Name, p.Version, p.Summary)
	}
	return out.Flush()
}
