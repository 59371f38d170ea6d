package service

import "unicode/utf8"

// stream is stdout or stderr of a run that is told as it goes on, in whole characters.
type stream struct {
	room    int    // bytes that may still be told
	over    bool   // and none may
	partial []byte // of a character whose end has not come
}

// take returns what is to be told of what was printed: the caller's own copy.
func (s *stream) take(text []byte) []byte {
	text = append(s.partial, text...)
	s.partial = nil
	if len(text) > s.room {
		s.over = true
		text = text[:s.room]
	}
	whole := len(text) - cutOff(text)
	if !s.over {
		s.partial = append(s.partial, text[whole:]...)
	}
	s.room -= whole
	return text[:whole]
}

// cutOff is how many bytes at the end of text begin a character that is not whole.
func cutOff(text []byte) int {
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
