package isolatetest

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
)

// tally counts what came of the attempts, and prints the table of invariants and
// walls.
type tally struct {
	mu      sync.Mutex
	held    map[string]int // "invariant wall" to attempts that failed there, as they should
	tried   map[string]int
	skipped map[string]string
}

func newTally() *tally {
	return &tally{held: map[string]int{}, tried: map[string]int{}, skipped: map[string]string{}}
}

func (r *tally) skip(name, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped[name] = why
}

func (r *tally) note(a attempt, escaped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	columns := []string{a.mode}
	if a.mode == "all on" && len(a.escape.walls) == 1 {
		columns = append(columns, a.escape.walls[0]) // it is alone as it is
	}
	for _, column := range columns {
		key := fmt.Sprint(a.escape.invariant, " ", column)
		r.tried[key]++
		if !escaped {
			r.held[key]++
		}
	}
}

// print shows, for each invariant and each wall, how many escapes that wall alone
// held of how many, and how many escaped with none.
func (r *tally) print(t *testing.T, all []escape) {
	walls, families := []string{}, map[string]int{}
	for _, e := range all {
		families[e.family]++
		for _, w := range e.walls {
			if !slices.Contains(walls, w) {
				walls = append(walls, w)
			}
		}
	}
	sort.Strings(walls)
	var b strings.Builder
	fmt.Fprintf(&b, "report: %d escapes; for each invariant how many of them each wall held on its own, and how many succeeded with their walls out\n", len(all))
	fmt.Fprintf(&b, "%-20s", "invariant")
	for n := 1; n <= 16; n++ {
		fmt.Fprintf(&b, "%7d", n)
	}
	row := func(name string, cell func(key string) string) {
		fmt.Fprintf(&b, "\n%-20s", name)
		for n := 1; n <= 16; n++ {
			fmt.Fprintf(&b, "%7s", cell(fmt.Sprint(n, " ", name)))
		}
	}
	for _, name := range append([]string{"all on", "without cgroups", "level landlock"}, walls...) {
		row(name, func(key string) string {
			if r.tried[key] == 0 {
				return "."
			}
			return fmt.Sprintf("%d/%d", r.held[key], r.tried[key])
		})
	}
	row("all out", func(key string) string {
		if r.tried[key] == 0 {
			return "."
		}
		return fmt.Sprintf("%d/%d", r.tried[key]-r.held[key], r.tried[key])
	})
	b.WriteString("\n\nfamilies: ")
	names := make([]string, 0, len(families))
	for name, n := range families {
		names = append(names, fmt.Sprintf("%s %d", name, n))
	}
	sort.Strings(names)
	b.WriteString(strings.Join(names, ", "))
	fmt.Fprintf(&b, "\nnot run on this machine: %d\n", len(r.skipped))
	for name, why := range r.skipped {
		fmt.Fprintf(&b, "  %s: %s\n", name, why)
	}
	for _, e := range all {
		if e.open != "" {
			fmt.Fprintf(&b, "not held at the level landlock: %s: %s\n", e.name, e.open)
		}
	}
	t.Log(b.String())
}
