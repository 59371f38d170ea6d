package isolatetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// escapeReport counts the results of attempts and prints them as a table of invariants
// and layers.
type escapeReport struct {
	mu      sync.Mutex
	stopped map[string]int // attempts that failed, by "INVARIANT LAYER"
	tried   map[string]int // all attempts, by "INVARIANT LAYER"
	skipped map[string]string
}

func newEscapeReport() *escapeReport {
	return &escapeReport{stopped: map[string]int{}, tried: map[string]int{}, skipped: map[string]string{}}
}

func (r *escapeReport) skip(name, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped[name] = reason
}

func (r *escapeReport) add(a attempt, escaped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := []string{a.mode}
	if a.mode == allLayers && len(a.escape.layers) == 1 {
		rows = append(rows, a.escape.layers[0]) // the escape has only this layer
	}
	for _, row := range rows {
		key := fmt.Sprint(a.escape.invariant, " ", row)
		r.tried[key]++
		if !escaped {
			r.stopped[key]++
		}
	}
}

// print shows, for each invariant, how many escapes each layer stopped on its own, and
// how many succeeded without their layers.
func (r *escapeReport) print(t *testing.T, escapes []escape) {
	layers, families := map[string]bool{}, map[string]int{}
	for _, e := range escapes {
		families[e.family]++
		for _, l := range e.layers {
			layers[l] = true
		}
	}
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"report: %d escapes; for each invariant, how many each layer stopped on its own, and how many succeeded without their layers\n",
		len(escapes),
	)
	fmt.Fprintf(&b, "%-20s", "invariant")
	for n := 1; n <= 16; n++ {
		fmt.Fprintf(&b, "%7d", n)
	}
	printRow := func(name string, count func(key string) int) {
		fmt.Fprintf(&b, "\n%-20s", name)
		for n := 1; n <= 16; n++ {
			key, cell := fmt.Sprint(n, " ", name), "."
			if r.tried[key] > 0 {
				cell = fmt.Sprintf("%d/%d", count(key), r.tried[key])
			}
			fmt.Fprintf(&b, "%7s", cell)
		}
	}
	for _, name := range append([]string{allLayers, withoutCgroups, onLandlock}, slices.Sorted(maps.Keys(layers))...) {
		printRow(name, func(key string) int { return r.stopped[key] })
	}
	printRow(noLayer, func(key string) int { return r.tried[key] - r.stopped[key] })
	b.WriteString("\n\nfamilies:")
	for _, name := range slices.Sorted(maps.Keys(families)) {
		fmt.Fprintf(&b, " %s %d", name, families[name])
	}
	fmt.Fprintf(&b, "\nnot run on this machine: %d\n", len(r.skipped))
	for _, name := range slices.Sorted(maps.Keys(r.skipped)) {
		fmt.Fprintf(&b, "  %s: %s\n", name, r.skipped[name])
	}
	for _, e := range escapes {
		if e.openOnLandlock != "" {
			fmt.Fprintf(&b, "not stopped on the level landlock: %s: %s\n", e.name, e.openOnLandlock)
		}
	}
	t.Log(b.String())
}
