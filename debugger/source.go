package debugger

import "strings"

const (
	maxSourceLineBytes = 500
	sourceContextLines = 3 // on each side of a line
)

// SourceView is one line of the program.
type SourceView struct {
	Line    int64  `json:"line_number"`
	Code    string `json:"line_code"`
	Current bool   `json:"current,omitempty"`
}

// SplitSource splits code into lines, as Python does.
func SplitSource(code string) []string {
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(code, "\r\n", "\n"), "\r", "\n"), "\n")
}

// SourceLine returns one line of code without trailing spaces, and "" if the program does not have it. Lines are
// numbered from 1.
func SourceLine(source []string, line int64) string {
	if line < 1 || line > int64(len(source)) {
		return ""
	}
	text := strings.TrimRight(source[line-1], " \t\f")
	if len(text) > maxSourceLineBytes {
		text = strings.ToValidUTF8(text[:maxSourceLineBytes], "") + "..."
	}
	return text
}

// SourceContext returns a line of the program and those around it.
func SourceContext(source []string, line int64) []SourceView {
	out := []SourceView{}
	for n := max(1, line-sourceContextLines); n <= min(int64(len(source)), line+sourceContextLines); n++ {
		out = append(out, SourceView{n, SourceLine(source, n), n == line})
	}
	return out
}

// noBreakpointReason returns why a line cannot have a breakpoint, and "" if it can.
func noBreakpointReason(source []string, line int) string {
	text := strings.TrimSpace(SourceLine(source, int64(line)))
	switch {
	case line < 1 || line > len(source):
		return "the program has no such line"
	case text == "" || strings.HasPrefix(text, "#"):
		return "this line has no code"
	}
	return ""
}
