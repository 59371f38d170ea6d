package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

func newDoctorCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "doctor", Short: "Show what this machine supports, its isolation level, and what would help", Args: arguments(0, 0),
		Long: "Test what the service needs of this machine and print the result. The exit code is 1 if the service would not start.",
		Example: `  glasshouse doctor
  glasshouse doctor --json
  glasshouse doctor --isolation landlock`,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return withSettings(cmd, func(ctx context.Context, s settings, _ []string) error {
		report := isolate.ProbeMachine(s.isolateConfig(nil, nil))
		report.Probes = append(report.Probes, findPostgres(s), findServerCheck(ctx, s), findMasks(ctx, s))
		var err error
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
	})
}

func findPostgres(s settings) isolate.Probe {
	p := isolate.Probe{Name: "PostgreSQL binaries", OK: true}
	if s.databases.historyURL != "" && s.databases.knowledgeURL != "" {
		p.Found = "not needed: both databases are named"
		return p
	}
	var err error
	if p.Found, err = embedded.FindPrograms(s.server.dataDir); err != nil {
		p.OK, p.Found, p.Remedy = false, err.Error(), "install PostgreSQL, or name databases with --database-url and --knowledge-url"
	}
	return p
}

// databaseProbeTimeout bounds the connection to one database and the queries of a probe.
const databaseProbeTimeout = 3 * time.Second

// findServerCheck returns a probe that lists the databases with --server-check and those without. The probe fails if a
// database writes its analysis of queries to its log, or does not answer.
func findServerCheck(ctx context.Context, s settings) isolate.Probe {
	p := isolate.Probe{Name: "queries analysed by PostgreSQL first", OK: true}
	var on, off, logging []string
	knowledge := namedURL{sandbox.DefaultDatabase, s.databases.knowledgeURL}
	for _, n := range append([]namedURL{knowledge}, s.databases.named.list...) {
		config := s.readerConfig(n.name, n.url)
		if !config.ServerCheck {
			off = append(off, n.name)
			continue
		}
		on = append(on, n.name)
		if config.URL == "" { // the embedded database's role is set up at each start
			continue
		}
		if logs, err := logsTrees(ctx, config); err != nil {
			logging = append(logging, fmt.Sprintf("%s: %v", n.name, withCause(err)))
		} else if logs {
			logging = append(logging, n.name+": "+treesAreLogged)
		}
	}
	p.Found = "on for " + cmp.Or(strings.Join(on, ", "), "none")
	if len(off) > 0 {
		p.Found += "; off for " + strings.Join(off, ", ") + ": --server-check NAME turns it on"
	}
	p.OK, p.Remedy = len(logging) == 0, strings.Join(logging, "; ")
	return p
}

// logsTrees reports whether the server of a database writes its analysis of queries to its log.
func logsTrees(ctx context.Context, config dbaccess.Config) (logs bool, err error) {
	err = withReader(ctx, config, func(ctx context.Context, r *dbaccess.Reader) (err error) {
		logs, err = r.LogsTrees(ctx)
		return err
	})
	return logs, err
}

// findMasks returns a probe that says of each database who keeps its masked columns from agents. The probe fails if a
// database does not answer.
func findMasks(ctx context.Context, s settings) isolate.Probe {
	p := isolate.Probe{Name: "masked columns", OK: true}
	var found, failed []string
	knowledge := namedURL{sandbox.DefaultDatabase, s.databases.knowledgeURL}
	for _, n := range append([]namedURL{knowledge}, s.databases.named.list...) {
		config := s.readerConfig(n.name, n.url)
		switch {
		case len(config.MaskColumns) == 0:
			continue
		case config.URL == "":
			found = append(found, n.name+": only the service masks "+strings.Join(config.MaskColumns, ", "))
			continue
		}
		err := withReader(ctx, config, func(ctx context.Context, r *dbaccess.Reader) error {
			masks, err := r.LoginMasks(ctx)
			found = append(found, n.name+": "+masks.String())
			return err
		})
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", n.name, withCause(err)))
		}
	}
	p.Found = cmp.Or(strings.Join(found, "; "), "none")
	p.OK, p.Remedy = len(failed) == 0, strings.Join(failed, "; ")
	return p
}

// withReader calls use with a reader of a database, within databaseProbeTimeout.
func withReader(
	ctx context.Context, config dbaccess.Config, use func(ctx context.Context, r *dbaccess.Reader) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, databaseProbeTimeout)
	defer cancel()
	reader, err := dbaccess.Open(ctx, config)
	if err != nil {
		return err
	}
	defer reader.Close()
	return use(ctx, reader)
}

func printReport(out io.Writer, r isolate.Report) error {
	printProbes := func(title string, probes []isolate.Probe) {
		fmt.Fprintln(out, title)
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
	printProbes("Features of this machine", r.Probes)
	printProbes("\nIsolation levels, each built and tested, strongest first", r.Levels)
	if r.Error != "" {
		fmt.Fprintf(out, "\nNo level can be used: the weakest accepted level is %s\n", r.MinLevel)
		return nil
	}
	fmt.Fprintf(out, "\nLevel in use: %s (the weakest accepted level is %s)\n  lacks: %s\n\n", r.Isolation.Level,
		r.MinLevel, r.MissingProtection)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "limit\tenforced by")
	for _, limit := range slices.Sorted(maps.Keys(r.Isolation.EnforcedBy)) {
		fmt.Fprintf(table, "%s\t%s\n", limit, r.Isolation.EnforcedBy[limit])
	}
	return table.Flush()
}
