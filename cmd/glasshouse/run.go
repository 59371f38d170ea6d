package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"glasshouse/sandbox"
	"glasshouse/service"
)

func newRunCommand() *cobra.Command {
	return withSettings(&cobra.Command{
		Use: "run [flags] FILE.py", Short: "Run a file in a sandbox", Args: arguments(1, 1),
		Long: "Run a file in a sandbox, and print its output and the value of its last expression.\n\n" +
			"The service that runs on the data folder runs the file. Without one, a service is started for this run.",
		Example: `  glasshouse run report.py
  echo '6 * 7' | glasshouse run -`,
	}, runFile)
}

func runFile(ctx context.Context, s settings, args []string) error {
	code, err := readFile(args[0])
	if err != nil {
		return err
	}
	e, err := runOnce(ctx, s, string(code))
	if err != nil {
		return err
	}
	fmt.Print(e.Stdout)
	fmt.Fprint(os.Stderr, e.Stderr)
	for name, n := range e.Truncated {
		fmt.Fprintf(os.Stderr, "glasshouse: %s is truncated: %d are missing\n", name, n)
	}
	if string(e.Result) != "null" && len(e.Result) > 0 {
		fmt.Println(formatResult(e.Result))
	}
	if files := describeOutputs(e); files != "" {
		fmt.Fprintf(os.Stderr, "glasshouse: the run also made %s; execution %s in history has them\n", files, e.ID)
	}
	if e.Exception != nil {
		for n, f := range e.Exception.Traceback {
			if n == 0 {
				fmt.Fprintln(os.Stderr, "Traceback (most recent call last):")
			}
			fmt.Fprintf(os.Stderr, "  line %d, in %s\n    %s\n", f.Line, f.Function, f.Code)
		}
		if len(e.Exception.Traceback) == 0 && e.Exception.Line > 0 {
			fmt.Fprintf(os.Stderr, "line %d, column %d\n", e.Exception.Line, max(e.Exception.Column, 1))
		}
		if hint := e.Exception.Hint; hint != "" && !strings.Contains(e.Exception.Message, hint) {
			defer fmt.Fprintln(os.Stderr, "hint:", hint)
		}
	}
	if e.Error != nil {
		return fmt.Errorf("%s: %s", e.Status, *e.Error)
	}
	return nil
}

// runOnce runs code in a sandbox of the running service, or of one that it starts for this run.
func runOnce(ctx context.Context, s settings, code string) (*sandbox.Execution, error) {
	if c := dial(s.server.dataDir); c != nil {
		e := &sandbox.Execution{}
		return e, c.call(ctx, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code}, e)
	}
	a, err := buildForCode(ctx, s, code)
	if err != nil {
		return nil, err
	}
	defer a.close(context.WithoutCancel(ctx), s)
	return a.service.QuickExecute(ctx, admin, service.Job{Code: code, Kind: sandbox.KindQuick}, nil)
}

// formatResult returns a result as JSON, or its repr if JSON cannot represent it.
func formatResult(result json.RawMessage) string {
	var object struct{ Type, Repr string }
	if json.Unmarshal(result, &object) == nil && object.Type != "" && object.Repr != "" {
		return object.Repr
	}
	return string(result)
}

// describeOutputs lists the pictures and files of a run, because a terminal does not show them.
func describeOutputs(e *sandbox.Execution) string {
	var all []string
	for _, o := range e.Outputs {
		for _, kind := range slices.Sorted(maps.Keys(o.Data)) {
			if strings.HasPrefix(kind, "image/") {
				all = append(all, "a picture ("+kind+")")
				break
			}
		}
	}
	for _, a := range e.Artifacts {
		all = append(all, a.Path)
	}
	return strings.Join(all, ", ")
}
