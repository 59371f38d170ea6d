package run

import (
	"strings"
	"unicode/utf8"
)

// TextStream splits printed bytes into whole characters, up to max_output_size.
type TextStream struct {
	IsFull    bool   // the rest of the text is left out
	Partial   []byte // the beginning of a character
	bytesLeft int
}

// NewTextStreams returns the streams stdout and stderr, each up to so many bytes.
func NewTextStreams(maxOutput int) map[string]*TextStream {
	return map[string]*TextStream{"stdout": {bytesLeft: maxOutput}, "stderr": {bytesLeft: maxOutput}}
}

// Take adds printed bytes and returns a copy of the whole characters so far.
func (s *TextStream) Take(text []byte) []byte {
	text = append(s.Partial, text...)
	s.Partial = nil
	if len(text) > s.bytesLeft {
		s.IsFull = true
		text = text[:s.bytesLeft]
	}
	whole := len(text) - partialBytes(text)
	if !s.IsFull {
		s.Partial = append(s.Partial, text[whole:]...)
	}
	s.bytesLeft -= whole
	return text[:whole]
}

// takeApart counts a whole text that another way brings, between the bytes of two calls of Take, and returns a copy.
func (s *TextStream) takeApart(text string) []byte {
	if len(text) > s.bytesLeft {
		s.IsFull = true
		text = strings.ToValidUTF8(text[:s.bytesLeft], "")
	}
	s.bytesLeft -= len(text)
	return []byte(text)
}

// partialBytes returns the number of bytes at the end of text that belong to an incomplete character.
func partialBytes(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
