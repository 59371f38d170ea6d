package replaytext

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// The text names the grade, each difference, the request that diverged, the sources and what ran before.
func TestDescribeNamesAllOfAReplay(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]sandbox.Replay{
		"identical: the same output, result, error, files and statements": {
			Grade: sandbox.ReplayIdentical, Rows: "log",
		},
		"identical: the same output, result, error, files and statements (with the rows of now)": {
			Grade: sandbox.ReplayIdentical, Rows: "now",
		},
		"identical: the same output, result, error, files and statements " +
			"(with other code or rows, and the rows of now)": {
			Grade: sandbox.ReplayIdentical, Rows: "now", IsEdited: true,
		},
		"identical: the same output, result, error, files and statements (with some rows of now: statement 3)": {
			Grade: sandbox.ReplayIdentical, Rows: "mixed", StatementsNow: []int{3},
		},
		"identical: the same output, result, error, files and statements (with some rows of now)": {
			Grade: sandbox.ReplayIdentical, Rows: "mixed",
		},
		"identical: the same output, result, error, files and statements " +
			"(with other code or rows, and some rows of now: statements 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, " +
			"14, 15, 16, 17, 18, 19, 20, ...)": {
			Grade: sandbox.ReplayIdentical, Rows: "mixed", IsEdited: true,
			StatementsNow: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21},
		},
		"differs: the code sent fewer requests than the original": {Grade: sandbox.ReplayDiffers},
		`differs: not all is as in the original (with other code or rows)
  stdout, line 3
    original  41
    replay    (empty)
  statements[1].rows
    original  a
    replay    b
What may differ although the code is the same:
  clock       readings of clocks that the log does not have
  database    rows as they are in the database now`: {
			Grade: sandbox.ReplayDiffers, IsEdited: true, Sources: []string{"database", "clock"},
			Differences: []sandbox.Difference{
				{Part: "stdout", Line: 3, Original: "41"}, {Part: "statements[1].rows", Original: "a", Replay: "b"},
			},
		},
		`diverged: the code sent another request than the original, and got no answer
  request 2 of the code
    original  (no more requests)
    replay    SELECT 2
Before it ran 2 earlier executions of the session (12 ms of CPU time), not with the same end as at first.
  left out: 1 that a limit or a caller had ended
What may differ in them:
  rows        answers that were too large for the log`: {
			Grade: sandbox.ReplayDiverged, Diverged: &sandbox.Divergence{Request: 2, Replay: "SELECT 2"},
			Restored: &sandbox.Restored{Executions: 2, Left: 1, CPUMS: 12.3, Sources: []string{"rows"}},
		},
		`identical: the same output, result, error, files and statements
Before it ran 1 earlier execution of the session (1 ms of CPU time), with the same end as at first.`: {
			Grade: sandbox.ReplayIdentical, Restored: &sandbox.Restored{Executions: 1, CPUMS: 1, IsExact: true},
		},
	} {
		if got := Describe(&sandbox.Execution{Status: sandbox.StatusCompleted, Replay: &r}); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// An identical replay that did not complete says so in its first line, in which an error is short.
func TestDescribeSaysThatBothFailed(t *testing.T) {
	t.Parallel()
	const same = "identical: the same output, result, error, files and statements"
	long := "ValueError: a\x1bb\n" + strings.Repeat("é", 300)
	for want, e := range map[string]sandbox.Execution{
		same + " (both failed: TypeError: no)": {Status: sandbox.StatusFailed, Error: new("TypeError: no")},
		same + ` (both failed: ValueError: a\x1bb\n` + strings.Repeat("é", 177) + "...)": {
			Status: sandbox.StatusFailed, Error: &long,
		},
		same + " (both failed)":                        {Status: sandbox.StatusFailed},
		same + " (both ended with the status timeout)": {Status: sandbox.StatusTimeout},
		same: {Status: sandbox.StatusCompleted},
	} {
		e.Replay = &sandbox.Replay{Grade: sandbox.ReplayIdentical, Rows: "log"}
		if got := Describe(&e); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	e := sandbox.Execution{Status: sandbox.StatusFailed, Replay: &sandbox.Replay{Grade: sandbox.ReplayDiffers}}
	if got := Describe(&e); strings.Contains(got, "both failed") {
		t.Errorf("got %s, want no word about the original", got)
	}
}

// The line of a suite has the first difference of the code's work, without control characters, and how many follow.
func TestFirstDifferenceIsOneLine(t *testing.T) {
	t.Parallel()
	rows := sandbox.Difference{Part: "statements[1].rows", Original: "a", Replay: "b"}
	stdout := sandbox.Difference{Part: "stdout", Line: 2, Original: "a\x1b[2J\nb"}
	long := sandbox.Difference{Part: "result", Original: strings.Repeat("é", 61), Replay: strings.Repeat("é", 60)}
	for want, r := range map[string]sandbox.Replay{
		"": {Grade: sandbox.ReplayIdentical, Rows: "log"},
		"the code sent fewer requests than the original": {Grade: sandbox.ReplayDiffers},
		"statements[1].rows: a -> b": {
			Grade: sandbox.ReplayDiffers, Differences: []sandbox.Difference{rows},
		},
		`stdout, line 2: a\x1b[2J\nb -> (empty) (and 1 more)`: {
			Grade: sandbox.ReplayDiffers, Differences: []sandbox.Difference{rows, stdout},
		},
		"result: " + strings.Repeat("é", 57) + "... -> " + strings.Repeat("é", 60): {
			Grade: sandbox.ReplayDiffers, Differences: []sandbox.Difference{long},
		},
		"request 2: (no more requests) -> SELECT 2": {
			Grade: sandbox.ReplayDiverged, Differences: []sandbox.Difference{stdout},
			Diverged: &sandbox.Divergence{Request: 2, Replay: "SELECT 2"},
		},
	} {
		if got := FirstDifference(&r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A terminal gets no control character of the code, and a difference in one is visible.
func TestDescribeShowsControlCharacters(t *testing.T) {
	t.Parallel()
	got := Describe(&sandbox.Execution{Replay: &sandbox.Replay{
		Grade: sandbox.ReplayDiffers, Differences: []sandbox.Difference{{
			Part: "artifacts/\x1b]0;title\a", Original: "\x1b[31mred\r\u202e\u009b2J", Replay: "é\tred\nnext",
		}},
	}})
	want := "\n  artifacts/\\x1b]0;title\\a\n    original  \\x1b[31mred\\r\\u202e\\u009b2J\n    replay    é\tred\\nnext"
	if !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want the end %q", got, want)
	}
}

// Each source that package run can name has a description.
func TestEverySourceIsDescribed(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../run/inputs.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Source") {
			return true
		}
		found++
		if name := strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`); sources[name] == "" {
			t.Errorf("got no description of the source %s", name)
		}
		return true
	})
	if found != len(sources) {
		t.Errorf("got %d sources in package run, want %d", found, len(sources))
	}
}
