package hatch

import (
	"encoding/binary"
	"math"
	"testing"

	"glasshouse/sandbox"
)

func TestPack(t *testing.T) {
	least := int64(math.MinInt64)
	for _, c := range []struct {
		kind   string
		column []any
		values []int64 // nil: not packed
		nulls  string
	}{
		{"int", []any{int64(1), int64(-1), least}, []int64{1, -1, least}, ""},
		{"int", []any{int64(1), nil}, []int64{1, 0}, "\x00\x01"},
		{"int", []any{"1"}, nil, ""},
		{"float", []any{1.5}, []int64{int64(math.Float64bits(1.5))}, ""},
		{"float", []any{nil}, []int64{int64(math.Float64bits(math.NaN()))}, ""},
		{"timestamp", []any{"1970-01-01T00:00:01", nil, "1969-12-31T23:59:59.5"}, []int64{1_000_000, least, -500_000}, ""},
		{"timestamptz", []any{"2024-02-29T12:34:56.000001+00:00"}, []int64{1709210096000001}, ""},
		{"timestamptz", []any{"0001-01-01T00:00:00+00:00"}, []int64{-62135596800000000}, ""},
		{"timestamptz", []any{"infinity"}, nil, ""},
		{"timestamptz", []any{"0044-03-15T01:02:03+00 BC"}, nil, ""},
		{"timestamp", []any{"0044-03-15T01:02:03 BC"}, nil, ""},
		{"timestamp", []any{"12024-01-01T00:00:00"}, nil, ""},
		{"timestamp", []any{"2024-01-01T00:00:00.-5"}, nil, ""},
		{"timestamp", []any{"2024-01-01T00:00:00."}, nil, ""},
		{"string", []any{"x"}, nil, ""},
	} {
		values, nulls, ok := pack(sandbox.Column{Kind: c.kind}, c.column)
		if ok != (c.values != nil) || string(nulls) != c.nulls || ok && len(values) != 8*len(c.values) {
			t.Errorf("%s %v: %v %v %v", c.kind, c.column, values, nulls, ok)
			continue
		}
		for i, want := range c.values {
			if got := int64(binary.LittleEndian.Uint64(values[8*i:])); got != want {
				t.Errorf("%s %v: %d, want %d", c.kind, c.column[i], got, want)
			}
		}
	}
	if values, nulls, ok := pack(sandbox.Column{Kind: "bool"}, []any{true, nil, false}); !ok || string(values) != "\x01\x00\x00" || string(nulls) != "\x00\x01\x00" {
		t.Errorf("bools: %v %v %v", values, nulls, ok)
	}
	if _, _, ok := pack(sandbox.Column{Kind: "int", Array: true}, []any{[]any{int64(1)}}); ok {
		t.Error("an array is packed")
	}
}
