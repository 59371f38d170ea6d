package debugger

import (
	"strings"

	"glasshouse/debugger/program"
)

const sourceContextLines = 3 // on each side of a line

// SourceView is one line of the program.
type SourceView struct {
	Line    int64  `json:"line_number"`
	Code    string `json:"line_code"`
	Current bool   `json:"current,omitempty"`
}

// SourceContext returns a line of the program and those around it.
func SourceContext(source []string, line int64) []SourceView {
	out := []SourceView{}
	for n := max(1, line-sourceContextLines); n <= min(int64(len(source)), line+sourceContextLines); n++ {
		out = append(out, SourceView{n, program.Line(source, n), n == line})
	}
	return out
}

// noBreakpointReason returns why a line cannot have a breakpoint, and "" if it can.
func noBreakpointReason(source []string, line int) string {
	text := strings.TrimSpace(program.Line(source, int64(line)))
	switch {
	case line < 1 || line > len(source):
		return "the program has no such line"
	case text == "" || strings.HasPrefix(text, "#"):
		return "this line has no code"
	}
	return ""
}
