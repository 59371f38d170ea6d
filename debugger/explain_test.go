package debugger

import (
	"slices"
	"strings"
	"testing"
)

// However long the recording, the answer keeps to its budget and has both ends of it.
func TestExplainKeepsToItsBudget(t *testing.T) {
	j := journal(t, long(100_000))
	source := []string{"for x in range(100_000):", "    y[0] = x", "    pass"}
	for _, budget := range []int{60, 200, 1000} {
		text, err := j.Explain(source, budget)
		if err != nil || len(text) > budget*bytesPerToken {
			t.Errorf("%d tokens: %d bytes, %v", budget, len(text), err)
		}
	}
	text, err := j.Explain(source, 1000)
	if err != nil || !strings.Contains(text, "300000 steps") || !strings.Contains(text, "x = 0, 1, ..., 99998, 99999") || !strings.Contains(text, "x100000") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestNamesInALine(t *testing.T) {
	for line, want := range map[string]string{
		"total += cost('a b', i)  # names here": "total cost i", "a.b.c = d['e'].f": "a d", `print(f"{x} and {y.z}", "no {n}")`: "x y", "for k, v in items.items():": "k v items", "return": "",
	} {
		if got := strings.Join(namesIn(line), " "); got != want {
			t.Errorf("%s: %s, not %s", line, got, want)
		}
	}
	if !slices.IsSorted(namesIn("a b c")) {
		t.Error("the order is lost")
	}
}
