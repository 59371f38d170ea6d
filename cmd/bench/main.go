// Bench measures a running Glasshouse from outside, over HTTP, as its callers
// see it: with the wall and history on.
//
// The unit is B, the time of `/usr/bin/python3 -c pass`, taken beside every
// single sample, so that a figure carries over from one noisy machine to
// another. Peers that can be had are measured in the same run; the others are
// quoted in B and marked as not run.
//
// One goroutine does the measuring; a throughput row or the count of wrong
// statuses has its own clients, which end with it. The service is this
// program's child and is stopped when main returns; each peer that is a server is stopped when its
// rows are done. Nothing is written but stdout; what goes on is told on stderr.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the command line's.
type options struct {
	binary, python, dataDir string
	peers                   string
	quick, json             bool
	wrongRuns, soakRuns     int
	suite                   string
	limit                   time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/glasshouse", "the service's binary")
	flag.StringVar(&o.python, "python", os.Getenv("GLASSHOUSE_PYTHON"), "the Python that sandboxes use, which has pandas")
	flag.StringVar(&o.peers, "peers", "", "a Python that has what cmd/bench/peers/requirements.txt names; without it these servers are not run")
	flag.StringVar(&o.dataDir, "data-dir", "", "where the service keeps its data (default: a temporary folder, removed afterwards)")
	flag.BoolVar(&o.quick, "quick", false, "fewer samples: two minutes; its p99 says little")
	flag.BoolVar(&o.json, "json", false, "print the report as JSON")
	flag.IntVar(&o.wrongRuns, "wrong-runs", 0, "runs in the count of wrong statuses (default 10000, with --quick 500)")
	flag.IntVar(&o.soakRuns, "soak-runs", 100_000, "runs of the soak")
	flag.DurationVar(&o.limit, "limit", 15*time.Minute, "stop after this long, whatever is left")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "bench [SUITE] [OPTION...]; suites: %s; none: the API, over HTTP\n", strings.Join(names(), ", "))
		flag.PrintDefaults()
	}
	flag.Parse()
	if o.suite = flag.Arg(0); o.suite != "" { // options may stand on both sides of it
		_ = flag.CommandLine.Parse(flag.Args()[1:]) // exits by itself
	}
	if suites[o.suite] == nil || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if o.wrongRuns <= 0 {
		o.wrongRuns = 10_000
		if o.quick {
			o.wrongRuns = 500
		}
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.python == "" {
		return fmt.Errorf("--python is needed: start it by scripts/bench, which finds it")
	}
	for _, p := range []string{o.binary, o.python, baseline} {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%s can't be run: %w", p, err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()

	progress("starting the service")
	s, err := startService(ctx, o.binary, o.python, o.dataDir)
	if err != nil {
		return err
	}
	defer s.Close()

	r := &report{Machine: machine(o.python), Quick: o.quick, Started: time.Now().UTC()}
	b := &bench{client: s.client, report: r, size: full, servers: o.peers, start: func(ctx context.Context, settings ...string) (*service, error) {
		return startService(ctx, o.binary, o.python, "", settings...)
	}}
	if o.quick {
		b.size = quick
	}
	b.size.wrong, b.size.soak = o.wrongRuns, o.soakRuns
	suites[o.suite](b, ctx, s, o.python)
	if err := ctx.Err(); err != nil {
		r.Stopped = "stopped early: " + context.Cause(ctx).Error()
	}
	if o.json {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	r.print(os.Stdout)
	return nil
}

// suites are what can be measured, by the command's first argument.
var suites = map[string]func(b *bench, ctx context.Context, s *service, python string){
	"": func(b *bench, ctx context.Context, _ *service, python string) {
		b.service(ctx)
		b.asynchronously(ctx, func() { b.stateful(ctx); b.statefulRate(ctx) })
		b.versus(ctx)
		b.peers(ctx, python)
		b.quoted()
	},
	"peers": func(b *bench, ctx context.Context, _ *service, _ string) { b.versus(ctx) },
	"isolation": func(b *bench, ctx context.Context, s *service, python string) {
		b.isolation(ctx, s)
		b.isolationPeers(ctx, python)
	},
	"work":  func(b *bench, ctx context.Context, _ *service, _ string) { b.work(ctx) },
	"debug": func(b *bench, ctx context.Context, _ *service, _ string) { b.debug(ctx) },
	"soak":  func(b *bench, ctx context.Context, s *service, _ string) { b.soak(ctx, s) },
}

// names are the suites that have one.
func names() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(suites)), func(name string) bool { return name == "" })
}

var begun = time.Now()

// progress tells on stderr what goes on.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%5.1fs] %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
}
