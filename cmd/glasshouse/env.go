package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"glasshouse/sandbox"
	"glasshouse/sandbox/environment"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/python"
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
		show.withStore(func(ctx context.Context, s settings, args []string) error {
			return showEnvironment(ctx, s, show.store, append(args, environment.Default)[0])
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
		guest, err := python.Guest()
		if err != nil {
			return err
		}
		e.installer = environment.Installer{
			Store: e.store, AllowBuilds: e.build, WarmModules: warmModules(),
			Environ:  append(os.Environ(), "PATH="+os.Getenv("PATH")+":"+filepath.Join(packagedFolder, "bin")), // uv
			Progress: func(step string) { fmt.Fprintf(os.Stderr, "glasshouse: %s\n", step) },
		}
		for file := range guest {
			e.installer.GuestModules = append(e.installer.GuestModules, strings.TrimSuffix(file, ".py"))
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

// warmModules returns the top-level modules that warm interpreters import.
func warmModules() (modules []string) {
	for _, set := range isolate.WarmSets(1) {
		for _, module := range set.Modules {
			top, _, _ := strings.Cut(module, ".")
			modules = append(modules, top)
		}
	}
	slices.Sort(modules)
	return slices.Compact(modules)
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

func showEnvironment(ctx context.Context, s settings, store environment.Store, name string) error {
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
	if err := showWarmPackages(ctx, s, h); err != nil {
		return err
	}
	fmt.Println()
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	for _, p := range h.Packages {
		fmt.Fprintf(out, "%s\t%s\t%s\n", p.Name, p.Version, p.Summary)
	}
	return out.Flush()
}

// showWarmPackages prints which packages run before any user code: those that the warm modules need, and those that a
// warm interpreter of the running service has imported besides.
func showWarmPackages(ctx context.Context, s settings, version *environment.Version) error {
	needed, err := version.WarmPackages(warmModules())
	if err != nil || len(needed) == 0 {
		return err
	}
	fmt.Printf("imported by warm interpreters: %s\n", strings.Join(needed, " "))
	c := dial(s.server.dataDir)
	if c == nil {
		fmt.Println("imported besides, because it is there: unknown; start the service and repeat the command")
		return nil
	}
	modules, err := importedModules(ctx, c, version.Name)
	if err != nil {
		return fmt.Errorf("ask the service which packages a warm interpreter has imported: %w", err)
	}
	besides := []string{}
	for _, p := range version.Packages {
		isImported := slices.ContainsFunc(p.Modules, func(name string) bool { return slices.Contains(modules, name) })
		if isImported && !slices.Contains(needed, p.Name) {
			besides = append(besides, p.Name)
		}
	}
	if len(besides) == 0 {
		besides = []string{"nothing"}
	}
	fmt.Printf("imported besides, because it is there: %s\n", strings.Join(besides, " "))
	return nil
}

// listImports lists the files in the folders of packages from which a new guest has modules. The comment makes the
// service choose the interpreter that has imported all warm packages.
const listImports = `# import numpy, pandas, matplotlib
import sys
files = [getattr(module, '__file__', None) or '' for module in list(sys.modules.values())]
parts = [file.split('packages/', 1)[1].split('/') for file in files if 'packages/' in file]
sorted({part[part[0].isdigit()].split('.')[0] for part in parts})`

// importedModules returns the top-level modules of packages that a new guest of an environment has. The packages could
// forge them: they run in the same process.
func importedModules(ctx context.Context, c *client, name string) ([]string, error) {
	var execution struct {
		Status string
		Result []string
	}
	config := map[string]any{"environment": name, "profile": "unrestricted"}
	err := c.call(ctx, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": listImports, "config": config},
		&execution)
	if err == nil && execution.Status != "completed" {
		err = fmt.Errorf("got the status %s, want completed", execution.Status)
	}
	return execution.Result, err
}
