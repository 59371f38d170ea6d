package run

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// TerminalText returns what a terminal shows at the end of a text: a carriage return and a backspace move back, what
// follows replaces what was there, and escape sequences move the cursor, erase, or are left out, as colours are. So a
// bar of progress has its last state only. Nothing scrolls away, and what is written beyond the end of a line comes at
// its end, so the text does not grow. It is returned as it is if it has none of these.
func TerminalText(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.ContainsAny(text, "\r\b\x1b") {
		return text
	}
	t := terminal{lines: [][]rune{nil}}
	for len(text) > 0 {
		if sequence := escapeSequence(text); sequence > 0 {
			t.control(text[:sequence])
			text = text[sequence:]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		t.put(r)
		text = text[size:]
	}
	lines := make([]string, len(t.lines))
	for i, line := range t.lines {
		lines[i] = string(line)
	}
	return strings.Join(lines, "\n")
}

// maxMove bounds the number of a sequence.
const maxMove = 1 << 20

// terminal is a screen without an end, and the place of its cursor.
type terminal struct {
	lines       [][]rune // at least one
	row, column int      // of the cursor
}

func (t *terminal) put(r rune) {
	switch r {
	case '\n':
		if t.row++; t.row == len(t.lines) {
			t.lines = append(t.lines, nil)
		}
		t.column = 0
	case '\r':
		t.column = 0
	case '\b':
		t.column = max(0, t.column-1)
	default:
		line := t.lines[t.row]
		if t.column < len(line) {
			line[t.column] = r
		} else {
			line = append(line, r)
		}
		t.lines[t.row] = line
		t.column = min(t.column, len(line)-1) + 1
	}
}

// control carries out an escape sequence that moves the cursor by lines or columns, or erases.
func (t *terminal) control(sequence string) {
	if len(sequence) < 3 || sequence[1] != '[' {
		return
	}
	n := 0
	for _, c := range sequence[2 : len(sequence)-1] {
		if c < '0' || c > '9' {
			return
		}
		n = min(10*n+int(c-'0'), maxMove)
	}
	count := max(n, 1)
	switch sequence[len(sequence)-1] {
	case 'A', 'F':
		t.row = max(0, t.row-count)
	case 'B', 'E':
		t.row = min(len(t.lines)-1, t.row+count)
	case 'C':
		t.column += count
	case 'D':
		t.column = max(0, t.column-count)
	case 'G':
		t.column = count - 1
	case 'K':
		t.eraseLine(n)
	case 'J':
		switch n {
		case 0:
			t.eraseLine(0)
			t.lines = t.lines[:t.row+1]
		case 2, 3: // the whole screen; programs then write at its beginning
			*t = terminal{lines: [][]rune{nil}}
		}
	}
	if last := sequence[len(sequence)-1]; last == 'E' || last == 'F' {
		t.column = 0
	}
}

// eraseLine erases the line of the cursor: 0 from the cursor on, 1 up to it, 2 all of it.
func (t *terminal) eraseLine(which int) {
	line := t.lines[t.row]
	at := min(t.column, len(line))
	switch which {
	case 0:
		line = line[:at]
	case 1:
		line = slices.Concat(slices.Repeat([]rune{' '}, at), line[at:])
	case 2:
		line = nil
	}
	t.lines[t.row] = line
}

// escapeSequence returns the length in bytes of the escape sequence at the beginning of a text (ECMA-48): 0 if there is
// none. One that is not complete ends with the text.
func escapeSequence(text string) int {
	if text[0] != '\x1b' {
		return 0
	}
	if len(text) == 1 {
		return 1
	}
	switch text[1] {
	case '[': // parameters and intermediate bytes, then one from @ to ~
		for i := 2; i < len(text); i++ {
			if c := text[i]; c >= '@' && c <= '~' {
				return i + 1
			} else if c < ' ' || c > '?' {
				return i
			}
		}
		return len(text)
	case ']': // a command of the operating system, such as a title or a link, up to BEL or ST
		for i := 2; i < len(text); i++ {
			if text[i] == '\a' {
				return i + 1
			} else if strings.HasPrefix(text[i:], "\x1b\\") {
				return i + 2
			} else if text[i] == '\n' {
				return i
			}
		}
		return len(text)
	case '(', ')': // a character set
		return min(3, len(text))
	}
	if text[1] >= '0' && text[1] <= '~' {
		return 2
	}
	return 1
}
