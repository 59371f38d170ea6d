package policy_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"glasshouse/policy"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 62)
	for _, c := range []struct {
		name  string
		among []string
		want  string
	}{
		{"totl", []string{"total", "subtotal"}, "total"},
		{"naem", []string{"game", "name"}, "name"},
		{"price", []string{"quantity"}, ""},
		{"", []string{"a"}, "a"},
		{long + "a", []string{long + "b"}, long + "b"},
		{long + "aa", []string{long + "ab"}, ""}, // longer than a name of PostgreSQL
		{long + "a", []string{long + "ab"}, ""},
	} {
		if got := policy.Nearest(c.name, slices.Values(c.among)); got != c.want {
			t.Errorf("Nearest(%q, %q): got %q, want %q", c.name, c.among, got, c.want)
		}
	}
}

// TestNearestComparesFewNames expects that names without an end are not all compared.
func TestNearestComparesFewNames(t *testing.T) {
	t.Parallel()
	asked := 0
	var endless iter.Seq[string] = func(yield func(string) bool) {
		for yield(fmt.Sprintf("%08d", asked)) {
			asked++
		}
	}
	if got := policy.Nearest("column_x", endless); got != "" || asked > 10_000 {
		t.Errorf("got %q after %d names, want none after at most 10000", got, asked)
	}
}
