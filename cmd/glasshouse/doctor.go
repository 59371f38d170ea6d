package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox/isolate"
)

// doctor tries what the service needs of this machine and says what it found. Its
// error, and so the exit code, is that the service would not start.
func doctor(_ context.Context, args []string) error {
	var asJSON bool
	c, rest, err := parse("doctor", args, func(f *flag.FlagSet) { f.BoolVar(&asJSON, "json", false, "print JSON") })
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("doctor takes no argument, and there is %q", rest[0])
	}
	report := isolate.ProbeMachine(c.wall(nil))
	report.Probes = append(report.Probes, findPostgres(c))
	if asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(report)
	} else {
		err = printReport(os.Stdout, report)
	}
	if err == nil && report.Error != "" {
		err = errors.New(report.Error)
	}
	return err
}

func findPostgres(c config) isolate.Probe {
	p := isolate.Probe{Name: "PostgreSQL binaries", OK: true}
	if c.databaseURL != "" && c.knowledgeURL != "" {
		p.Found = "not needed: both databases are named"
		return p
	}
	var err error
	if p.Found, err = embedded.Find(c.dataDir); err != nil {
		p.OK, p.Found, p.Remedy = false, err.Error(), "install PostgreSQL, or name databases with --database-url and --knowledge-url"
	}
	return p
}

func printReport(out io.Writer, r isolate.Report) error {
	rows := func(title string, probes []isolate.Probe) {
		fmt.Fprintf(out, "%s\n", title)
		for _, p := range probes {
			result := "ok"
			if !p.OK {
				result = "--"
			}
			fmt.Fprintf(out, "  %s  %s: %s\n", result, p.Name, strings.ReplaceAll(p.Found, "\n", " "))
			if p.Remedy != "" {
				fmt.Fprintf(out, "      remedy: %s\n", p.Remedy)
			}
		}
	}
	rows("What this machine has", r.Probes)
	rows("\nLevels of the wall, each raised and tried, strongest first", r.Levels)
	if r.Error != "" {
		fmt.Fprintf(out, "\nNo level is taken: the least that is accepted is %s\n", r.MinLevel)
		return nil
	}
	fmt.Fprintf(out, "\nTaken: %s (the least that is accepted is %s)\n  loses: %s\n\n", r.Isolation.Level, r.MinLevel, r.MissingProtection)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "limit\tenforced by")
	limits := make([]string, 0, len(r.Isolation.EnforcedBy))
	for key := range r.Isolation.EnforcedBy {
		limits = append(limits, key)
	}
	slices.Sort(limits)
	for _, key := range limits {
		fmt.Fprintf(table, "%s\t%s\n", key, r.Isolation.EnforcedBy[key])
	}
	return table.Flush()
}
