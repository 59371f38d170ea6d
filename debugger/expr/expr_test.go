package expr

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
)

// variables returns a state with n = 7, f = 0.5, s = "it's", yes = True, none = None, list = [1, 2, 3], dict = {"k":
// 4}, p = <P x=9>, long, a list of 100 with two recorded items, and many, a list of 1000.
func variables(t testing.TB) (*recording.State, *recording.Table) {
	t.Helper()
	ints := func(list ...int) (out []recording.Value) {
		for _, n := range list {
			out = append(out, recordingtest.Int(n))
		}
		return out
	}
	text, ref := recordingtest.Text, recordingtest.Ref
	b := recordingtest.New("list", "dict", "P")
	long := recordingtest.List(4, 3, ints(1, 2)...)
	long.Length, long.Exactness = 100, recording.Sampled
	for _, o := range []recording.Object{
		recordingtest.List(1, 3, ints(1, 2, 3)...),
		{Number: 2, Type: 4, Form: recording.Pairs, Length: 1,
			Values: []recording.Value{text("k"), recordingtest.Int(4)}},
		{Number: 3, Type: 5, Form: recording.Attributes, Length: 1,
			Values: []recording.Value{text("x"), recordingtest.Int(9)}},
		long,
		recordingtest.List(5, 3, slices.Repeat(ints(1), 1000)...),
	} {
		b.Object(o)
	}
	next := uint64(6)
	for name, v := range map[string]recording.Value{
		"n": recordingtest.Int(7), "f": {Tag: recording.TagFloat, Float: math.Float64bits(0.5)}, "s": text("it's"),
		"yes": {Tag: recording.TagTrue}, "none": {Tag: recording.TagNone},
		"list": ref(1), "dict": ref(2), "p": ref(3), "long": ref(4), "many": ref(5),
	} {
		b.Add(recording.Record{Kind: recording.KindName, Text: name})
		b.Add(recording.Record{Kind: recording.KindSet, Name: next, Value: v})
		next++
	}
	b.Line(0)
	j, err := recording.NewJournal()
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(b.Stream); err != nil {
		t.Fatal(err)
	}
	r := j.Snapshot()
	s, err := r.State(1)
	if err != nil {
		t.Fatal(err)
	}
	return s, r.Table()
}

func TestConditionsHoldAsInPython(t *testing.T) {
	t.Parallel()
	s, table := variables(t)
	manySearches := func(n int) string { return strings.Repeat("9 in many or ", n) + "yes" }
	for want, conditions := range map[string][]string{
		"true": {
			"n == 7", "6 < n <= 7", "not n > 8 and yes", "n + 2 * 3 == 13", "(n + 2) * 3 == 27", "-n // 2 == -4",
			"-n % 4 == 1",
			"n / 2 == 3.5", "abs(-n) == 7", "f < 1", "f == 1/2", "1e3 == 1_000", `s == "it's"`, `s == 'it\'s'`,
			"'t' in s",
			"'x' not in s", "s < 'z'", "len(s) == 4", `s + '!' == "it's!"`, "none is None", "n is not None",
			"yes is True", "yes == 1",
			"list == [1, 2, 3]", "2 in list", "list[0] == 1 and list[-1] == 3", "len(list) == 3", "list",
			"dict['k'] == 4",
			"'k' in dict", "p.x == 9", "n in (1, 7)", "[] or n", "long[1] == 2", "len(long) == 100", "1 < 2 < 3 != 4",
			manySearches(5),
		},
		"false": {"n != 7.0", "6 < n < 7", "none == 0", "list == (1, 2)", "9 in list", "'z' in dict",
			"8 < n < missing"},
		"error": {
			"f > 10 ** 2", "list[9]", "p.y", "missing", "n < 'a'", "n / 0", "9 in long", "long[50] == 1",
			"dict == dict", "n.x",
			"6 < n < missing", manySearches(50),
		},
	} {
		for _, text := range conditions {
			got, holds := "error", false
			c, err := Parse(text)
			if err == nil {
				holds, err = c.Holds(s, table)
			}
			if err == nil {
				got = map[bool]string{true: "true", false: "false"}[holds]
			}
			if got != want {
				t.Errorf("%.100s: got %s (%v), want %s", text, got, err, want)
			}
		}
	}
}

func TestInvalidConditionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "n ==", "f()", "import os", "n = 1", "(n", "'no end", "n n", "__import__('os')", "not", "[1, 2", "a.1",
		"1.2.3", "$",
		strings.Repeat("(", 500), strings.Repeat("not ", 450) + "n", strings.Repeat("n + ", 1000) + "n",
	} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%.40q: got no error", text)
		}
	}
}

func TestValueIsARecordedValue(t *testing.T) {
	t.Parallel()
	s, table := variables(t)
	for text, want := range map[string]string{
		"n * 10000000000000000000000": "70000000000000000000000", "none": "None", "n > 1": "True", "not yes": "False",
		"n / 2":   "3.5",
		"s + '!'": `"it's!"`, "list": "[1, 2, 3]", "long[0]": "1",
	} {
		c, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		v, err := c.Value(s, table, 1)
		if got := s.Preview(table, v, 100); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	c, err := Parse("[n, 2]")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Value(s, table, 1); !errors.Is(err, ErrNewList) {
		t.Errorf("got %v, want %v", err, ErrNewList)
	}
}

func TestChainedOperandsAreEvaluatedOnce(t *testing.T) {
	t.Parallel()
	s, table := variables(t)
	text := "n"
	for range 45 {
		text = "-1 < (" + text + ") < 2"
	}
	c, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	e := evaluator{state: s, table: table, frame: s.Current, operations: new(int)}
	if v, err := e.eval(c.node); err != nil || v != true || *e.operations > len(text) {
		t.Errorf("got %v, %v, with %d operations, want true with at most %d", v, err, *e.operations, len(text))
	}
}

// TestLargeIntegersCountAsManyOperations expects an evaluation of few operations on large integers to end early.
func TestLargeIntegersCountAsManyOperations(t *testing.T) {
	t.Parallel()
	s, table := variables(t)
	large := strings.Repeat("9", 1200) // 4000 bits
	e := evaluator{state: s, table: table, frame: s.Current, operations: new(int)}
	square := node{op: "*", operands: []node{parsed(t, large), parsed(t, large)}}
	for range 2 { // 16 000 bits
		square = node{op: "*", operands: []node{square, square}}
	}
	sum := square
	for range 100 {
		sum = node{op: "+", operands: []node{sum, node{op: "%", operands: []node{square, parsed(t, large)}}}}
	}
	if _, err := e.eval(square); err != nil || *e.operations > 2000 {
		t.Errorf("one product: got %v after %d operations, want a value after at most 2000", err, *e.operations)
	}
	if _, err := e.eval(sum); !errors.Is(err, errTooLong) {
		t.Errorf("a hundred products: got %v, want %v", err, errTooLong)
	}
}

func parsed(t *testing.T, text string) node {
	t.Helper()
	c, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return c.node
}

func FuzzParse(f *testing.F) {
	s, table := variables(f)
	for _, text := range []string{"n == 7 and s in ('a', 'b')", "list[0] + -2.5e3 // 3 < len(dict)",
		"not p.x is None or f", `"\n" + 's' != s`} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		if c, err := Parse(text); err == nil {
			_, _ = c.Holds(s, table)
		}
	})
}
