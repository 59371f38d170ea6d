package service

import "unicode/utf8"

// textStream cuts what a run prints into whole characters, up to max_output_size.
type textStream struct {
	bytesLeft int
	isFull    bool
	partial   []byte // the beginning of a character
}

func newTextStreams(maxOutput int) map[string]*textStream {
	return map[string]*textStream{"stdout": {bytesLeft: maxOutput}, "stderr": {bytesLeft: maxOutput}}
}

// take returns the whole characters of what was printed, as a copy.
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

// partialBytes returns how many bytes at the end of text begin a character without ending it.
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
