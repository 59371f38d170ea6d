package main

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// table has the rows of a run.
type table struct {
	Started time.Time         `json:"started"`
	Quick   bool              `json:"quick"`
	Machine map[string]string `json:"machine"`
	Rows    []row             `json:"rows"`
	Stopped string            `json:"stopped,omitempty"`
}

// row is a measured row. Median and P99 are ours in the unit; Ratio is the median of ours to the peer's
// figure in each pair.
type row struct {
	Suite      string   `json:"suite"`
	Name       string   `json:"name"`
	Unit       string   `json:"unit"`
	Samples    int      `json:"samples,omitempty"`
	Median     *float64 `json:"median,omitempty"`
	P99        *float64 `json:"p99,omitempty"`
	Peer       string   `json:"peer,omitempty"`
	PeerMedian *float64 `json:"peer_median,omitempty"`
	Ratio      *float64 `json:"ratio,omitempty"`
	Goal       string   `json:"goal,omitempty"`
	Met        *bool    `json:"met,omitempty"`
	Error      string   `json:"error,omitempty"`
	digits     int
}

func newTable(o options) *table {
	return &table{Started: time.Now().UTC(), Quick: o.quick, Machine: describeMachine(o.python)}
}

// cells returns the columns of a row: name, ours, p99, peer, its figure, ratio, goal, verdict.
func (r row) cells() []string {
	verdict := ""
	switch {
	case r.Error != "":
		verdict = "could not be measured: " + r.Error
	case r.Met != nil && *r.Met:
		verdict = "met"
	case r.Met != nil:
		verdict = "MISSED"
	}
	p99 := ""
	if r.Samples >= 3 && r.Unit == milliseconds.label {
		p99 = number(r.P99, r.digits)
	}
	ours, peer := withUnit(number(r.Median, r.digits), r.Unit), withUnit(number(r.PeerMedian, r.digits), r.Unit)
	return []string{r.Name, ours, p99, r.Peer, peer, number(r.Ratio, 3), r.Goal, verdict}
}

var columns = []string{"what", "ours", "p99", "peer", "its figure", "ratio", "goal", ""}

func withUnit(text, unit string) string {
	if text == "" {
		return ""
	}
	return text + " " + unit
}

func number(f *float64, digits int) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%.*f", digits, *f)
}

// goals returns how many rows with a goal reach it, and how many there are.
func (t *table) goals() (met, all int) {
	for _, r := range t.Rows {
		if r.Met != nil {
			all++
			if *r.Met {
				met++
			}
		}
	}
	return met, all
}

// bySuite calls visit with the rows of each suite.
func (t *table) bySuite(visit func(suite string, rows []row)) {
	for rest := t.Rows; len(rest) > 0; {
		suite := rest[0].Suite
		n := slices.IndexFunc(rest, func(r row) bool { return r.Suite != suite })
		if n < 0 {
			n = len(rest)
		}
		visit(suite, rest[:n])
		rest = rest[n:]
	}
}

// print writes the table for a terminal.
func (t *table) print(w io.Writer) {
	for _, key := range slices.Sorted(maps.Keys(t.Machine)) {
		fmt.Fprintf(w, "%-8s %s\n", key, t.Machine[key])
	}
	if t.Quick {
		fmt.Fprintln(w, "--quick: few samples; the p99 is the slowest of them")
	}
	t.bySuite(func(suite string, rows []row) {
		fmt.Fprintf(w, "\n%s\n", suite)
		out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(out, strings.Join(columns, "\t"))
		for _, r := range rows {
			fmt.Fprintln(out, strings.Join(r.cells(), "\t"))
		}
		_ = out.Flush() // an error of stdout cannot be reported
	})
	met, all := t.goals()
	fmt.Fprintf(w, "\n%d of %d goals are met\n", met, all)
	if t.Stopped != "" {
		fmt.Fprintln(w, t.Stopped)
	}
}

// howToRead is the fixed part of docs/benchmarks.md.
//
//go:embed report.md
var howToRead string

// suiteTitles are the headings of the suites in docs/benchmarks.md.
var suiteTitles = map[string]string{
	"api": "The API", "compat": "Compatibility APIs", "debug": "The debugger", "density": "Many live sessions",
	"fairness": "Fairness between users", "history": "History", "isolation": "Isolation",
	"mcp": "The Model Context Protocol", "peers": "Compared with other servers", "replay": "Replays", "sql": "SQL",
}

// reportColumns are the columns of docs/benchmarks.md. Its readers compare; goals are for developers, and print shows
// them.
var reportColumns = columns[:6]

// compared returns the rows with a peer, even if they could not be measured.
func (t *table) compared() *table {
	some := *t
	some.Rows = slices.DeleteFunc(slices.Clone(t.Rows), func(r row) bool { return r.Peer == "" })
	return &some
}

// writeMarkdown writes docs/benchmarks.md.
func (t *table) writeMarkdown(file string) error {
	var out strings.Builder
	out.WriteString(howToRead)
	fmt.Fprintf(&out, "\n## Results\n\n`./scripts/bench report` wrote this on %s", t.Started.Format("2006-01-02, 15:04 UTC"))
	if t.Quick {
		out.WriteString(" with `--quick`, so each p99 is the slowest of few samples")
	}
	out.WriteString(".\n\n| machine | |\n|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(t.Machine)) {
		fmt.Fprintf(&out, "| %s | %s |\n", key, t.Machine[key])
	}
	if t.Stopped != "" {
		fmt.Fprintf(&out, "\nThe run was %s.\n", t.Stopped)
	}
	t.compared().bySuite(func(suite string, rows []row) {
		fmt.Fprintf(&out, "\n### %s\n\n| %s |\n|%s\n",
			suiteTitles[suite], strings.Join(reportColumns, " | "), strings.Repeat("---|", len(reportColumns)))
		for _, r := range rows {
			cells := r.cells()[:len(reportColumns)]
			if r.Error != "" {
				cells[1] = "could not be measured: " + r.Error
			}
			line := strings.Join(cells, " | ")
			fmt.Fprintf(&out, "| %s |\n", strings.ReplaceAll(line, "\n", " "))
		}
	})
	return os.WriteFile(file, []byte(out.String()), 0o644)
}

// describeMachine returns facts on which the figures depend.
func describeMachine(python string) map[string]string {
	facts := map[string]string{
		"CPU":    fmt.Sprintf("%s, %d cores", firstValue("/proc/cpuinfo", "model name"), runtime.NumCPU()),
		"memory": firstValue("/proc/meminfo", "MemTotal"),
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		facts["kernel"] = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		facts["load"] = strings.Join(strings.Fields(string(b))[:3], ", ") + " before"
	}
	if out, err := exec.Command(python, "-V").Output(); err == nil {
		facts["Python"] = strings.TrimPrefix(strings.TrimSpace(string(out)), "Python ")
	}
	return facts
}

// firstValue returns the value of the first line "key : value" of a file.
func firstValue(file, key string) string {
	text, _ := os.ReadFile(file) // a fact that cannot be read is unknown
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}
