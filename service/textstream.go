package service

import (
	"strings"
	"unicode/utf8"
)

// textStream splits printed bytes into whole characters, up to max_output_size.
type textStream struct {
	bytesLeft int
	isFull    bool
	partial   []byte // the beginning of a character
}

func newTextStreams(maxOutput int) map[string]*textStream {
	return map[string]*textStream{"stdout": {bytesLeft: maxOutput}, "stderr": {bytesLeft: maxOutput}}
}

// take adds printed bytes and returns a copy of the whole characters so far.
func (s *textStream) take(text []byte) []byte {
	text = append(s.partial, text...)
	s.partial = nil
	if len(text) > s.bytesLeft {
		s.isFull = true
		text = text[:s.bytesLeft]
	}
	whole := len(text) - partialBytes(text)
	if !s.isFull {
		s.partial = append(s.partial, text[whole:]...)
	}
	s.bytesLeft -= whole
	return text[:whole]
}

// takeApart counts a whole text that another way brings, between the bytes of two calls of take, and returns a copy.
func (s *textStream) takeApart(text string) []byte {
	if len(text) > s.bytesLeft {
		s.isFull = true
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
