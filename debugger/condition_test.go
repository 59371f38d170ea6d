package debugger

import (
	"math/big"
	"slices"
	"strings"
	"testing"
)

// evaluated is what expressions come to in a frame where n = 7, f = 0.5, s = "it's",
// yes = True, none = None, list = [1, 2, 3], dict = {"k": 4}, p = <P x=9>, long is a
// list of 100 of which two are known, and many is a list of 1000.
func evaluated(t testing.TB) (*State, *Table) {
	t.Helper()
	var b []byte
	add := func(rec Record) { b = appendRecord(b, &rec) }
	add(Record{Kind: KindHead, Number: formatVersion, Text: "test"})
	names := strings.Fields("file f n s yes none list dict p long P k many")
	number := map[string]uint64{}
	for i, name := range names {
		number[name] = uint64(i + 1)
		add(Record{Kind: KindName, Text: name})
	}
	add(Record{Kind: KindCode, File: 1, Name: 2, Number: 1})
	add(Record{Kind: KindThread, Number: 1, Text: "main"})
	add(Record{Kind: KindPush, Frame: 1, Code: 1, Lane: 1})
	integer := func(n int64) Value { return Value{Tag: TagInt, Int: n} }
	text := func(s string) Value { return Value{Tag: TagText, Text: s} }
	for i, o := range []Object{
		{Type: number["list"], Form: Items, Length: 3, Values: []Value{integer(1), integer(2), integer(3)}},
		{Type: number["dict"], Form: Pairs, Length: 1, Values: []Value{text("k"), integer(4)}},
		{Type: number["P"], Form: Attributes, Length: 1, Values: []Value{text("x"), integer(9)}},
		{Type: number["list"], Form: Items, Length: 100, Exactness: Sampled, Values: []Value{integer(1), integer(2)}},
		{Type: number["list"], Form: Items, Length: 1000, Values: slices.Repeat([]Value{integer(1)}, 1000)},
	} {
		o.Number, o.Version = uint64(i+1), 1
		add(Record{Kind: KindObject, Object: o})
	}
	for name, v := range map[string]Value{
		"n": integer(7), "f": {Tag: TagFloat, Float: 0x3fe0000000000000}, "s": text("it's"), "yes": {Tag: TagTrue}, "none": {Tag: TagNone},
		"list": {Tag: TagObject, Object: 1}, "dict": {Tag: TagObject, Object: 2}, "p": {Tag: TagObject, Object: 3}, "long": {Tag: TagObject, Object: 4}, "many": {Tag: TagObject, Object: 5},
	} {
		add(Record{Kind: KindSet, Name: number[name], Value: v})
	}
	add(Record{Kind: KindLine})
	j := journal(t, b)
	s, err := j.State(1)
	if err != nil {
		t.Fatal(err)
	}
	return s, &j.table
}

func TestConditions(t *testing.T) {
	s, table := evaluated(t)
	for text, want := range map[string]string{
		"n == 7": "true", "n != 7.0": "false", "6 < n <= 7": "true", "6 < n < 7": "false", "not n > 8 and yes": "true",
		"n + 2 * 3 == 13": "true", "(n + 2) * 3 == 27": "true", "-n // 2 == -4": "true", "-n % 4 == 1": "true", "n / 2 == 3.5": "true", "abs(-n) == 7": "true",
		"f < 1": "true", "f == 1/2": "true", "f > 10 ** 2": "error", "1e3 == 1_000": "true",
		`s == "it's"`: "true", `s == 'it\'s'`: "true", "'t' in s": "true", "'x' not in s": "true", "s < 'z'": "true", "len(s) == 4": "true", "s + '!' == \"it's!\"": "true",
		"none is None": "true", "n is not None": "true", "yes is True": "true", "none == 0": "false", "yes == 1": "true",
		"list == [1, 2, 3]": "true", "list == (1, 2)": "false", "2 in list": "true", "9 in list": "false", "list[0] == 1 and list[-1] == 3": "true", "len(list) == 3": "true", "list": "true",
		"dict['k'] == 4": "true", "'k' in dict": "true", "'z' in dict": "false", "p.x == 9": "true", "n in (1, 7)": "true", "[] or n": "true",
		"list[9]": "error", "p.y": "error", "missing": "error", "n < 'a'": "error", "n / 0": "error", "9 in long": "error", "long[1] == 2": "true", "long[50] == 1": "error", "len(long) == 100": "true",
		"dict == dict": "error", "n.x": "error", "8 < n < missing": "false", "6 < n < missing": "error", "1 < 2 < 3 != 4": "true",
		strings.Repeat("9 in many or ", 5) + "yes": "true", strings.Repeat("9 in many or ", 50) + "yes": "error",
	} {
		c, err := ParseCondition(text)
		got := ""
		if err == nil {
			var holds bool
			if holds, err = c.Holds(s, table); holds {
				got = "true"
			} else {
				got = "false"
			}
		}
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s is %s (%v), not %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "n ==", "f()", "import os", "n = 1", "(n", "'no end", "n n", "__import__('os')", "not", "[1, 2", "a.1", "1.2.3", "$", strings.Repeat("(", 500), strings.Repeat("not ", 450) + "n"} {
		if _, err := ParseCondition(text); err == nil {
			t.Errorf("%.40q was taken", text)
		}
	}
	if c, err := ParseCondition("n * 10000000000000000000000"); err != nil {
		t.Error(err)
	} else if v, err := c.Value(s, table, 1); err != nil || v.(*big.Int).String() != "70000000000000000000000" {
		t.Errorf("%v, %v", v, err)
	}
}

// However deep comparisons are nested, each operand is worked out once.
func TestAChainIsWorkedOutOnce(t *testing.T) {
	s, table := evaluated(t)
	text := "n"
	for range 45 {
		text = "-1 < (" + text + ") < 2"
	}
	c, err := ParseCondition(text)
	if err != nil {
		t.Fatal(err)
	}
	e := evaluator{s, table, s.Frames[1], new(int)}
	if v, err := e.eval(c.node); err != nil || v != true || *e.done > len(text) {
		t.Errorf("%v, %v, with %d operations", v, err, *e.done)
	}
}

func FuzzCondition(f *testing.F) {
	s, table := evaluated(f)
	for _, text := range []string{"n == 7 and s in ('a', 'b')", "list[0] + -2.5e3 // 3 < len(dict)", "not p.x is None or f", `"\n" + 's' != s`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseCondition(text); err == nil {
			_, _ = c.Holds(s, table)
		}
	})
}
