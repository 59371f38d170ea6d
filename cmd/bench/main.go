// Command bench measures a Glasshouse service over HTTP, as its callers see it, with isolation and
// history on.
//
//	bench [SUITE...]        measure the suites and print a table; without one: api and peers
//	bench compare           measure two binaries in turn (--old and --binary) and print the ratios
//	bench best              print the revisions of best.txt, each on a line
//	bench report            measure all suites on a quiet machine and write Markdown tables of rows that have peers
//	bench soak              make many executions, and check that the service does not grow
//
// Machines differ, and a shared machine differs from one hour to the next. Most rows are therefore
// measured in pairs: a sample of the service, then one of a peer, which is `/usr/bin/python3 -c pass`
// unless the row names another. The ratio of a row is the median of the ratios of its pairs.
//
// measurement.go has the type of a row, and the tables of rows are in api.go, isolation.go, sql.go, compat.go,
// debug.go, density.go, fairness.go, history.go, mcp.go, peers.go and replay.go. This module imports nothing of the
// service. The services and peers that it starts end with it. Progress goes to stderr.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	binary, python       string
	old, oldPython       string
	peers                string
	only                 *regexp.Regexp
	quick, json, best    bool
	pairs                int
	threshold            float64
	wrongRuns, soakRuns  int
	sessions             int
	timeout              time.Duration
	out, oldName, suites string
}

func main() {
	var o options
	only := ""
	flag.StringVar(&o.binary, "binary", "bin/glasshouse", "binary of the service")
	flag.StringVar(&o.python, "python", os.Getenv("GLASSHOUSE_PYTHON"), "interpreter that sandboxes use; it needs pandas and matplotlib")
	flag.StringVar(&o.peers, "peers", "", "interpreter with the packages of cmd/bench/peers/requirements.txt; empty: the peers that need them are not run")
	flag.StringVar(&only, "only", "", "measure only rows whose name matches this regular expression")
	flag.BoolVar(&o.quick, "quick", false, "take a tenth of the samples; the p99 is then the slowest sample")
	flag.BoolVar(&o.json, "json", false, "print the table as JSON")
	flag.DurationVar(&o.timeout, "limit", time.Hour, "stop after this time and print the rows that were measured")
	flag.IntVar(&o.wrongRuns, "wrong-runs", 10_000, "executions of the row that counts wrong answers; --quick: a twentieth")
	flag.IntVar(&o.sessions, "sessions", 1000, "density: idle sessions, each with some 5 MB")
	flag.IntVar(&o.soakRuns, "soak-runs", 100_000, "soak: executions")
	flag.StringVar(&o.old, "old", "", "compare: binary of the revision to compare with")
	flag.StringVar(&o.oldPython, "old-python", "", "compare: interpreter for --old, with the C extensions of its revision; empty: --python")
	flag.StringVar(&o.oldName, "old-name", "old", "compare: name of the revision in the table")
	flag.BoolVar(&o.best, "best", false, "compare: only the rows for which best.txt has the revision --old-name")
	flag.StringVar(&o.suites, "suites", "api,isolation,sql,debug", "compare: suites to measure, separated by commas")
	flag.IntVar(&o.pairs, "pairs", 0, "compare: pairs of samples of each row; 0: 20, and for slow rows 8")
	flag.Float64Var(&o.threshold, "threshold", 10, "compare: percentage by which a row may be worse")
	flag.StringVar(&o.out, "out", "docs/benchmarks.md", "report: file to write")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "Usage: bench [SUITE...] | compare | best | report | soak [FLAGS]\nSuites: %s\n\n", strings.Join(suiteNames(), ", "))
		flag.PrintDefaults()
	}
	words, err := parseInterspersed(os.Args[1:])
	if err == nil {
		o.only, err = regexp.Compile(only)
	}
	if err == nil {
		err = run(o, words)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// parseInterspersed parses flags before and after arguments and returns the arguments.
func parseInterspersed(args []string) (words []string, err error) {
	for {
		if err := flag.CommandLine.Parse(args); err != nil {
			return nil, err
		}
		if args = flag.Args(); len(args) == 0 {
			return words, nil
		}
		words, args = append(words, args[0]), args[1:]
	}
}

func run(o options, words []string) error {
	if len(words) == 2 && words[0] == floodCommand {
		return runFlood(context.Background(), words[1])
	}
	if len(words) == 1 && words[0] == "best" {
		best, err := readBest(bestText)
		if err == nil {
			fmt.Println(strings.Join(best.revisions(), "\n"))
		}
		return err
	}
	if o.python == "" {
		return errors.New("--python is needed; scripts/bench sets it")
	}
	for _, program := range []string{o.binary, o.python, baselineProgram} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s cannot be run: %w", program, err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := ""
	if len(words) > 0 && slices.Contains([]string{"compare", "report", "soak"}, words[0]) {
		command, words = words[0], words[1:]
		if len(words) > 0 {
			return fmt.Errorf("%s takes no argument, got %q", command, words[0])
		}
	}
	if command == "report" { // before the limit, which is for the measurements
		if err := waitForQuiet(ctx, runtime.NumCPU(), loadOfMinute, pause); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	switch command {
	case "compare":
		return compare(ctx, o)
	case "soak":
		return soak(ctx, o)
	case "report":
		// A million executions, and what PostgreSQL then does about them, would slow down the suites after it.
		isHistory := func(suite string) bool { return suite == "history" }
		words = append(slices.DeleteFunc(suiteNames(), isHistory), "history")
	}
	if len(words) == 0 {
		words = []string{"api", "peers"}
	}
	rows, err := selectRows(o, words)
	if err != nil {
		return err
	}
	b := newBench(o)
	defer b.close()
	table := newTable(o)
	for _, m := range rows {
		if ctx.Err() != nil {
			table.Stopped = fmt.Sprintf("stopped early: %v", context.Cause(ctx))
			break
		}
		progress("%s: %s", m.suite, m.name)
		table.Rows = append(table.Rows, b.measure(ctx, m))
	}
	switch {
	case command == "report":
		return table.writeMarkdown(o.out)
	case o.json:
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(table)
	}
	table.print(os.Stdout)
	return nil
}

var begun = time.Now()

// progress prints a line to stderr, with the seconds since the start.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%5.1fs] %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
}
