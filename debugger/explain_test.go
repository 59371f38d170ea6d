package debugger

import (
	"strings"
	"testing"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording/recordingtest"
	"glasshouse/debugger/why"
)

func TestExplainKeepsToItsBudget(t *testing.T) {
	t.Parallel()
	r := recordingOf(t, recordingtest.Loop(30_000), "for x in range(30_000):", "    y[0] = x", "    pass")
	for _, budget := range []int{60, 200, 1000} {
		if text, err := r.Explain(budget); err != nil || len(text) > budget*why.BytesPerToken {
			t.Errorf("%d tokens: got %d bytes, %v, want at most %d", budget, len(text), err, budget*why.BytesPerToken)
		}
	}
	text, err := r.Explain(1000)
	for _, want := range []string{"90000 steps", "x = 0, 1, ..., 29998, 29999", "x30000"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("got %s, %v, want it to contain %q", text, err, want)
		}
	}
}

func TestNamesInALineOfCode(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"total += cost('a b', i)  # names here": "total cost i", "a.b.c = d['e'].f": "a d",
		`print(f"{x} and {y.z}", "no {n}")`: "x y",
		"for k, v in items.items():":        "k v items", "return": "", "a b c": "a b c",
	} {
		if got := strings.Join(program.NamesIn(line), " "); got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}
