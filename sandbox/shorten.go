package sandbox

import (
	"fmt"
	"unicode/utf8"
)

// Shorten returns the first maxRunes characters of text. If it cuts any, it appends a line
// with the number of cut characters.
func Shorten(text string, maxRunes int) string {
	if len(text) <= maxRunes {
		return text
	}
	n := 0
	for i := range text {
		if n == maxRunes {
			return fmt.Sprintf(
				"%s\n[... %d more characters were cut ...]\n",
				text[:i],
				utf8.RuneCountInString(text[i:]),
			)
		}
		n++
	}
	return text
}
