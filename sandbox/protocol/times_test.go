package protocol

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"glasshouse/sandbox"
)

func TestTimesAreEncodedForNumpy(t *testing.T) {
	texts := func(all ...string) sandbox.ColumnValues {
		var v sandbox.ColumnValues
		for i, s := range all {
			v.Text = append(v.Text, s...)
			v.Ends = append(v.Ends, len(v.Text))
			if s == "" {
				v.Nulls = append(append(v.Nulls, make([]bool, i-len(v.Nulls))...), true)
			}
		}
		if v.Nulls != nil {
			v.Nulls = append(v.Nulls, make([]bool, len(all)-len(v.Nulls))...)
		}
		return v
	}
	span := func(parts ...int64) sandbox.ColumnValues {
		return sandbox.ColumnValues{Others: []any{[]any{parts[0], parts[1], parts[2]}, nil}, Nulls: []bool{false, true}}
	}
	const day = 24 * 3600 * 1_000_000
	for _, c := range []struct {
		kind   string
		values sandbox.ColumnValues
		want   []int64 // nil: a value does not fit
	}{
		{"timestamp", texts("1970-01-01T00:00:01", "", "1969-12-31T23:59:59.5"), []int64{1_000_000, notATime, -500_000}},
		{"timestamptz", texts("2024-02-29T12:34:56.000001+00:00"), []int64{1709210096000001}},
		{"timestamptz", texts("0001-01-01T00:00:00+00:00"), []int64{-62135596800000000}},
		{"timestamptz", texts("9999-12-31T23:59:59.999999+00:00"), []int64{253402300799999999}},
		{"timestamptz", texts("2024-01-01T00:00:00+00:00", "infinity"), nil},
		{"timestamptz", texts("0044-03-15T01:02:03+00 BC"), nil},
		{"timestamp", texts("0044-03-15T01:02:03 BC"), nil},
		{"timestamp", texts("12024-01-01T00:00:00"), nil},
		{"timestamp", texts("2024-01-01T00:00:00.-5"), nil},
		{"timestamp", texts("2024-01-01T00:00:00."), nil},
		{"timestamp", texts("2024-01-01T00:00:00.1234567"), nil},
		{"date", texts("1970-01-02", ""), []int64{86400, notATime}},
		{"date", texts("0001-01-01", "9999-12-31"), []int64{-62135596800, 253402214400}},
		{"date", texts("0044-03-15 BC"), nil},
		{"date", texts("20240-01-01"), nil},
		{"date", texts("-infinity"), nil},
		{"timedelta", span(14, -2, 3), []int64{(365+60-2)*day + 3, notATime}},
		{"timedelta", span(-14, 0, -3), []int64{-(365+60)*day - 3, notATime}},
		{"timedelta", span(0, 1_000_000_000, 0), nil},
		{"timedelta", span(math.MaxInt64, 0, 0), nil},
		{"timedelta", span(0, 0, math.MaxInt64), nil},
		{"timedelta", span(0, math.MinInt64, math.MinInt64), nil},
		{"string", texts("2024-01-01"), nil},
	} {
		var got, header frames
		ok := got.times(sandbox.Column{Kind: c.kind}, &c.values)
		header.tuple(3, "q", 8*len(c.want))
		raw := got.tail[min(len(header.tail), len(got.tail)):]
		if ok != (c.want != nil) || len(raw) != 8*len(c.want) {
			t.Errorf("%s %q: got ok %v, % x; want %v", c.kind, c.values.Text, ok, raw, c.want)
			continue
		}
		for i, want := range c.want {
			if got := int64(binary.LittleEndian.Uint64(raw[8*i:])); got != want {
				t.Errorf("%s %q: got %d, want %d", c.kind, c.values.Text, got, want)
			}
		}
	}
	dates := texts("2024-01-01")
	var f frames
	if f.times(sandbox.Column{Kind: "date", Array: true}, &dates) {
		t.Error("got an array of dates encoded as times, want it encoded as a list")
	}
}

// FuzzTimes compares every text that is accepted with package time.
func FuzzTimes(f *testing.F) {
	for _, s := range []string{"", "2024-02-29T12:34:56.000001+00:00", "2024-01-01T00:00:00", "2024-01-01", "infinity", "0044-03-15 BC", "2024-01-01T00:00:00.-5", "9999-99-99"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, ok := parseTimestamp([]byte(s)); ok {
			want, err := time.Parse("2006-01-02T15:04:05", strings.TrimSuffix(s, "+00:00"))
			if err == nil && got != want.UnixMicro() {
				t.Errorf("%q: got %d, want %d", s, got, want.UnixMicro())
			}
		}
		if got, ok := parseDate([]byte(s)); ok {
			want, err := time.Parse("2006-01-02", s)
			if err == nil && got != want.Unix() {
				t.Errorf("%q: got %d, want %d", s, got, want.Unix())
			}
		}
	})
}
