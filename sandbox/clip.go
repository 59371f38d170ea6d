package sandbox

import (
	"fmt"
	"unicode/utf8"
)

// Shorten cuts text to so many characters, and says so.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := 0
	for at := range text {
		if n == most {
			return fmt.Sprintf("%s\n[... %d more characters were cut ...]\n", text[:at], utf8.RuneCountInString(text[at:]))
		}
		n++
	}
	return text
}
