package sandbox

import (
	"bytes"
	"iter"
)

// ArrayFormat says how the text of an array column is read.
type ArrayFormat struct {
	Separator byte                  // between elements
	Element   func(text []byte) any // decodes an element that is not NULL; it keeps no part of text
}

// Array is a value of an array column, as PostgreSQL's text. It is decoded while it is encoded for a client: a list of
// Go values would take many times the memory of the text.
type Array struct {
	text   []byte
	format *ArrayFormat
}

// ArrayToken is a part of an array.
type ArrayToken byte

// The parts of an array. Arrays nest.
const (
	ArrayBegin   ArrayToken = '['
	ArrayEnd     ArrayToken = ']'
	ArrayElement ArrayToken = 'e'
)

// Tokens yields the tokens of an array, each element with its value: nil, or as the format decodes it. Explicit bounds
// such as [0:1]= are left out, because a list cannot have them. For every ArrayBegin an ArrayEnd is yielded, even if
// the text is cut.
func (a Array) Tokens() iter.Seq2[ArrayToken, any] {
	return func(yield func(ArrayToken, any) bool) {
		s, depth := a.text, 0
		if bytes.HasPrefix(s, []byte("[")) {
			_, s, _ = bytes.Cut(s, []byte("="))
		}
		var unescaped []byte
		for len(s) > 0 {
			token, value, size := ArrayElement, any(nil), 1
			switch s[0] {
			case a.format.Separator:
				s = s[1:]
				continue
			case '{':
				token = ArrayBegin
				depth++
			case '}':
				if token = ArrayEnd; depth == 0 {
					return
				}
				depth--
			case '"':
				unescaped, size = unquote(unescaped[:0], s)
				value = a.format.Element(unescaped)
			default:
				for size < len(s) && s[size] != a.format.Separator && s[size] != '}' {
					size++
				}
				if string(s[:size]) != "NULL" {
					value = a.format.Element(s[:size])
				}
			}
			s = s[size:]
			if !yield(token, value) {
				return
			}
		}
		for ; depth > 0; depth-- {
			if !yield(ArrayEnd, nil) {
				return
			}
		}
	}
}

// unquote appends the text of the quoted element at the beginning of s, and returns the element's size in s.
func unquote(b, s []byte) (text []byte, size int) {
	i := 1
	for ; i < len(s) && s[i] != '"'; i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b = append(b, s[i])
	}
	return b, min(i+1, len(s))
}
