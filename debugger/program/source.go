package program

import (
	"strings"
)

const maxSourceLineBytes = 500

// Split splits code into lines, as Python does.
func Split(code string) []string {
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(code, "\r\n", "\n"), "\r", "\n"), "\n")
}

// Line returns one line of code without trailing spaces, and "" if the program does not have it. Lines are
// numbered from 1.
func Line(source []string, line int64) string {
	if line < 1 || line > int64(len(source)) {
		return ""
	}
	text := strings.TrimRight(source[line-1], " \t\f")
	if len(text) > maxSourceLineBytes {
		text = strings.ToValidUTF8(text[:maxSourceLineBytes], "") + "..."
	}
	return text
}

// Clip returns at most maxBytes of text, with an ellipsis if it is longer.
func Clip(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes-3], "") + "..."
}
