package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestDebugStepsForwardAndBack types commands into a session and looks for their output, in order.
func TestDebugStepsForwardAndBack(t *testing.T) {
	t.Parallel()
	_, c := start(t, binary(t), dataDir(t))
	const code = "def double(n):\n    return n * 2\ntotal = 0\nfor i in range(4):\n    total += double(i)\nprint('all', total)\n"
	typed := strings.Join([]string{
		"next", "", "break 2 if n == 2", "break 99", "continue", "print n * 10", "where", "list", "back", "reverse-continue", "continue",
		"continue", "print total", "out", "clear 2", "break", "continue", "goto 1", "goto x", "print 1 +", "help", "quit", "never",
	}, "\n")
	var out bytes.Buffer
	if err := c.debug(t.Context(), code, strings.NewReader(typed), &out); err != nil {
		t.Fatal(err)
	}
	rest := out.String()
	for _, want := range []string{
		"entry, line 1 in <module>", "step, line 3 in <module>", "  total = 0\nstep 3 of 3, step, line 4", "  break 2 n == 2\n",
		"line 99: the program has no such line\n", "breakpoint, line 2 in double: return n * 2", "> 20\n",
		"line 2, in double: return n * 2\n  line 5, in <module>", "=>    2      return n * 2", "step, line 5 in <module>",
		"entry, line 1 in <module>", "breakpoint, line 2 in double", "all 12\nthe program has ended: completed\n",
		"goto, line 1 in <module>", "goto needs the number of a step", "422", "reverse-continue (rc)",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("got no %q at its place in the output:\n%s", want, out.String())
		}
		rest = after
	}
}
