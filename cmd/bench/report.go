package main

import (
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

// report is all that a run found.
type report struct {
	Started time.Time         `json:"started"`
	Quick   bool              `json:"quick"`
	Machine map[string]string `json:"machine"`
	Rows    []row             `json:"rows"`
	Peers   []row             `json:"peers"`
	Stopped string            `json:"stopped,omitempty"`
}

// row is one line. A latency is in milliseconds and in B, a throughput in
// requests a second and within one B; Value is a verdict's or a count's.
type row struct {
	Name      string   `json:"name"`
	Samples   int      `json:"samples,omitempty"`
	P50       *float64 `json:"p50_ms,omitempty"`
	P99       *float64 `json:"p99_ms,omitempty"`
	B         float64  `json:"b_ms,omitempty"`
	Ratio     *float64 `json:"p50_in_b,omitempty"`
	RatioP99  *float64 `json:"p99_in_b,omitempty"`
	PerSecond *float64 `json:"per_second,omitempty"`
	PerB      *float64 `json:"per_b,omitempty"`
	Value     string   `json:"value,omitempty"`
	Goal      string   `json:"goal,omitempty"`
	Met       *bool    `json:"met,omitempty"`
	Note      string   `json:"note,omitempty"`
}

func (r *report) add(one row) { r.Rows = append(r.Rows, one) }

// failed adds a row that could not be measured; its goal is not met.
func (r *report) failed(name string, err error) {
	r.add(row{Name: name, Value: "could not be measured", Met: new(false), Note: err.Error()})
}

func (r *report) print(w io.Writer) {
	fmt.Fprintln(w, "Glasshouse over HTTP, wall and history on. B is `/usr/bin/python3 -c pass`, taken beside each sample.")
	for _, k := range slices.Sorted(maps.Keys(r.Machine)) {
		fmt.Fprintf(w, "  %-8s %s\n", k, r.Machine[k])
	}
	if r.Quick {
		fmt.Fprintln(w, "  --quick: few samples; p99 says little")
	}
	fmt.Fprintln(w)
	table(w, "", r.Rows)
	fmt.Fprintln(w)
	table(w, "peers", r.Peers)
	met, of := 0, 0
	for _, one := range r.Rows {
		if one.Met != nil {
			of++
			if *one.Met {
				met++
			}
		}
	}
	fmt.Fprintf(w, "\n%d of %d goals met\n", met, of)
	if r.Stopped != "" {
		fmt.Fprintln(w, r.Stopped)
	}
}

func table(w io.Writer, title string, rows []row) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight|tabwriter.DiscardEmptyColumns)
	width := len(title)
	for _, r := range rows {
		width = max(width, len(r.Name))
	}
	fmt.Fprintf(t, "%-*s\tn\tp50 ms\tp99 ms\tB ms\tp50/B\tp99/B\tper s\tin B\tgoal\t \t\n", width, title)
	var notes []string
	for _, r := range rows {
		verdict := ""
		if r.Met != nil {
			verdict = map[bool]string{true: "met", false: "MISSED"}[*r.Met]
		}
		if r.Value != "" {
			verdict = strings.TrimSpace(r.Value + " " + verdict)
		}
		n := ""
		if r.Samples > 0 {
			n = fmt.Sprint(r.Samples)
		}
		fmt.Fprintf(t, "%-*s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", width, r.Name, n, number(r.P50, 2), number(r.P99, 2), number(&r.B, 1),
			number(r.Ratio, 3), number(r.RatioP99, 3), number(r.PerSecond, 0), number(r.PerB, 2), r.Goal, verdict)
		if r.Note != "" {
			notes = append(notes, fmt.Sprintf("  %s: %s", r.Name, r.Note))
		}
	}
	_ = t.Flush() // stdout's own errors have nowhere to go
	if len(notes) > 0 {
		fmt.Fprintln(w, strings.Join(notes, "\n"))
	}
}

func number(f *float64, digits int) string {
	if f == nil || *f == 0 {
		return ""
	}
	return fmt.Sprintf("%.*f", digits, *f)
}

// machine says where this was measured.
func machine(python string) map[string]string {
	m := map[string]string{
		"cpu":    fmt.Sprintf("%s, %d cores", firstOf("/proc/cpuinfo", "model name"), runtime.NumCPU()),
		"memory": firstOf("/proc/meminfo", "MemTotal"),
		"go":     runtime.Version() + " " + runtime.GOARCH,
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m["kernel"] = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m["load"] = strings.TrimSpace(string(b)) + " (before)"
	}
	for name, p := range map[string]string{"python": python, "B": baseline} {
		if out, err := exec.Command(p, "-V").Output(); err == nil {
			m[name] = strings.TrimSpace(string(out))
		}
	}
	return m
}

// firstOf returns the value of the first "key : value" line of a file.
func firstOf(file, key string) string {
	text, _ := os.ReadFile(file) // a fact that is not there is left out
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}
