package dbaccess

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
)

// longArrays returns arrays of n elements, by what they are made of.
func longArrays(n int) map[string][]any {
	numbers, texts := make([]any, n), make([]any, n)
	for i := range n {
		numbers[i], texts[i] = json.Number(strconv.Itoa(i)), `a "text" \ `+strconv.Itoa(i)
	}
	return map[string][]any{"numbers": numbers, "texts": texts}
}

// TestLongArraysAreCheap shows that an element of an array costs about as much as its text, in an array of any length.
func TestLongArraysAreCheap(t *testing.T) { // not parallel: AllocsPerRun counts those of other tests, too
	for _, n := range []int{1000, 100_000} {
		for kind, list := range longArrays(n) {
			allocations := testing.AllocsPerRun(1, func() {
				if _, _, err := encodeParameter("ids", list); err != nil {
					t.Error(err)
				}
			})
			if allocations > float64(2*n) {
				t.Errorf("%d %s: got %.0f allocations, want at most two for each", n, kind, allocations)
			}
		}
	}
}

func TestArraysHaveTheTypeOfTheirElements(t *testing.T) {
	t.Parallel()
	n := func(digits string) json.Number { return json.Number(digits) }
	for _, c := range []struct {
		list []any
		text string
		oid  uint32
	}{
		{[]any{}, `{}`, 0},
		{[]any{nil}, `{NULL}`, 0},
		{[]any{true, nil}, `{"true",NULL}`, oidBools},
		{[]any{n("1"), n("-2147483648")}, `{"1","-2147483648"}`, oidInt4s},
		{[]any{n("1"), n("2147483648")}, `{"1","2147483648"}`, oidInt8s},
		{[]any{n("9223372036854775807")}, `{"9223372036854775807"}`, oidInt8s},
		{[]any{n("9223372036854775808"), n("1")}, `{"9223372036854775808","1"}`, oidNumerics},
		{[]any{n("9223372036854775808"), n("1e3")}, `{"9223372036854775808","1e3"}`, oidFloat8s},
		{[]any{"", `a"b\c`, "ä,{}"}, `{"","a\"b\\c","ä,{}"}`, 0},
		{[]any{"a", n("1")}, `{"a","1"}`, oidInt4s},
		{[]any{[]any{}, []any{n("1"), nil}, []any{n("1.5")}}, `{{},{"1",NULL},{"1.5"}}`, oidFloat8s},
	} {
		text, oid, err := encodeParameter("p", c.list)
		if err != nil || string(text) != c.text || oid != c.oid {
			t.Errorf("%v: got %s of type %d, %v; want %s of type %d", c.list, text, oid, err, c.text, c.oid)
		}
	}
}

func BenchmarkLongArrays(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		for kind, list := range longArrays(n) {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := encodeParameter("ids", list); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
