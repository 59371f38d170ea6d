package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"glasshouse/service/run"
)

func TestTerminalText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"plain", "a\nb\n", "a\nb\n"},
		{"lines of Windows", "a\r\nb\r\n", "a\nb\n"},
		{"bar", "\r  0%|  |\r 50%|# |\r100%|##|\ndone\n", "100%|##|\ndone\n"},
		{"a shorter state keeps the rest", "\rabcdef\rxy", "xycdef"},
		{"a state that erases", "\rabcdef\r\x1b[Kxy", "xy"},
		{"two bars", "a 0%\nb 0%\x1b[A\ra 9%\n\rb 9%\n", "a 9%\nb 9%\n"},
		{"backspaces", "12%\b\b\b34%", "34%"},
		{"more backspaces than text", "a\b\b\bb", "b"},
		{"colours", "\x1b[1;31mred\x1b[0m and \x1b[38;5;12mblue\x1b[m", "red and blue"},
		{"a link", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\ \x1b]0;title\aend", "text end"},
		{"cut sequences", "a\x1b", "a"},
		{"cut colour", "a\x1b[31", "a"},
		{"cut link", "a\x1b]8;;http://x", "a"},
		{"columns", "abc\x1b[2Dx\x1b[1Gy\x1b[9Cz", "yxcz"},
		{"up and down stay on the screen", "a\x1b[99Ab\x1b[99Bc\nd", "abc\nd"},
		{"erase the screen", "old\n\x1b[2J\x1b[Hnew", "new"},
		{"erase below", "a\nb\nc\x1b[2A\r\x1b[J", ""},
		{"not ASCII", "日本\r中", "中本"},
		{"huge numbers", "a\x1b[99999999999Cb", "ab"},
	} {
		if got := run.TerminalText(c.text); got != c.want {
			t.Errorf("%s: %q: got %q, want %q", c.name, c.text, got, c.want)
		}
	}
}

// Text that moves the cursor without end takes linear time.
func TestTerminalTextIsLinear(t *testing.T) {
	t.Parallel()
	took := func(n int) time.Duration {
		text := strings.Repeat("\x1b[1000C\x1b[1A\rabc\x1b[2K\n\x1b[0J", n)
		began := time.Now()
		run.TerminalText(text)
		return time.Since(began)
	}
	took(1000)
	if small, large := took(2000), took(16000); large > 40*small+100*time.Millisecond {
		t.Errorf("8 times the text took %v after %v", large, small)
	}
}

// A long text is cut between its lines, where it has some: half a number would be read as a whole one.
func TestTextsAreCutBetweenLines(t *testing.T) {
	t.Parallel()
	numbers := ""
	for n := range 1000 {
		numbers += fmt.Sprintln(1_000_000 + n)
	}
	for _, text := range []string{
		numbers, strings.Repeat("é", 8000), strings.Repeat("\n", 8000), "1\n" + strings.Repeat("x", 8000),
	} {
		var from, left int
		got := run.CutMiddle(text, 1000, func(head, n int) string {
			from, left = head, n
			return "[cut]"
		})
		begin, end, _ := strings.Cut(got, "\n[cut]\n")
		runes := []rune(text)
		kept := utf8.RuneCountInString(begin + end)
		if begin != string(runes[:from]) || end != string(runes[from+left:]) || kept > 1000 || kept < 745 {
			t.Errorf("got %d characters of %.20q, cut at %d; want 745 to 1000 of it", kept, text, from)
		}
		if text == numbers && (len(begin)%8 != 7 || len(end)%8 != 0) {
			t.Errorf("got an end of %q and a beginning of %q, want whole numbers", begin[len(begin)-9:], end[:9])
		}
	}
	if text := strings.Repeat("x", 1000); run.CutMiddle(text, 1000, nil) != text {
		t.Error("a text that fits was cut")
	}
}
