package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/klauspost/compress/zstd"

	"glasshouse/sandbox"
)

// answerFrames returns an answer with count rows of numbers and texts, in batches of at most size rows.
func answerFrames(t testing.TB, count, size int) []byte {
	t.Helper()
	w := NewRowEncoder(FormFrame, false)
	columns := []sandbox.Column{
		{Name: "id", Type: "int8", Kind: "int"}, {Name: "at", Type: "timestamptz", Kind: "timestamptz"},
		{Name: "price", Type: "float8", Kind: "float"}, {Name: "is_open", Type: "bool", Kind: "bool"},
		{Name: "name", Type: "text", Kind: "string"}, {Name: "other", Type: "json", Kind: "json"},
	}
	for at := 0; at < count; at += size {
		data := make([]sandbox.ColumnValues, len(columns))
		for n := at; n < min(at+size, count); n++ {
			data[0].Ints = append(data[0].Ints, int64(n)*7)
			data[1].Ints = append(data[1].Ints, 1_800_000_000_000_000+int64(n)*60_000_000)
			data[2].Floats = append(data[2].Floats, float64(n*n%101)/4)
			data[3].Bools = append(data[3].Bools, n%2 == 0)
			data[4].Text = fmt.Appendf(data[4].Text, "row %d", n)
			data[4].Ends = append(data[4].Ends, len(data[4].Text))
			var other any
			if n < 10 {
				other = []any{nil, true, int64(n) << 40, math.Pi, "text", []byte{1, 2}}
			}
			data[5].Others = append(data[5].Others, other)
		}
		if err := w.WriteBatch(sandbox.RowBatch{Columns: columns, Data: data, Count: min(size, count-at)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(false); err != nil {
		t.Fatal(err)
	}
	return w.Frames()
}

func TestPackedNumbersComeBackAndTakeLessRoom(t *testing.T) {
	t.Parallel()
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, count := range []int{1, 7, 8, 9, 5000} {
		frames := answerFrames(t, count, 2000)
		packed := bytes.Clone(frames)
		PackNumbers(packed)
		before, after := len(encoder.EncodeAll(frames, nil)), len(encoder.EncodeAll(packed, nil))
		if count == 5000 && after > before/2 {
			t.Errorf("%d rows take %d bytes, %d if they are packed", count, before, after)
		}
		UnpackNumbers(packed)
		if !bytes.Equal(packed, frames) {
			t.Errorf("%d rows: got other frames back", count)
		}
	}
}

func TestIntegersOfAllSizesArePacked(t *testing.T) {
	t.Parallel()
	var numbers []int64
	for shift := range 64 {
		numbers = append(numbers, 1<<shift, -1<<shift, 1<<shift-1, math.MaxInt64-1<<shift)
	}
	for count := range len(numbers) {
		var raw frames
		for _, n := range numbers[:count] {
			raw.tail = binary.LittleEndian.AppendUint64(raw.tail, uint64(n))
		}
		raw.tail = append(raw.tail, make([]byte, count%8)...) // RowWriter writes whole numbers; others stay
		packed, back := make([]byte, len(raw.tail)), make([]byte, len(raw.tail))
		packIntegers(packed, raw.tail)
		unpackIntegers(back, packed)
		if !bytes.Equal(back, raw.tail) {
			t.Fatalf("%d numbers: got %x, want %x", count, back, raw.tail)
		}
	}
}

// Floats come back with their bits, as integers if all have few decimals.
func TestFloatsComeBack(t *testing.T) {
	t.Parallel()
	many := func(value func(i int) float64) (list []float64) {
		for i := range 3000 {
			list = append(list, value(i))
		}
		return list
	}
	negativeZero, tenth := math.Copysign(0, -1), 0.1
	for name, c := range map[string]struct {
		floats []float64
		form   byte
	}{
		"whole":                  {[]float64{1, -2, 1 << 52}, '0'},
		"prices":                 {many(func(i int) float64 { return float64(i*37%10000) / 100 }), '2'},
		"nine digits":            {[]float64{0.000000001, -123456.123456789, math.NaN(), 7}, '9'},
		"NULL only":              {[]float64{math.NaN()}, '0'},
		"ten digits":             {[]float64{0.0000000001}, 'd'},
		"thirds":                 {many(func(i int) float64 { return float64(i) / 3 }), 'd'},
		"more digits in one":     {many(func(i int) float64 { return float64(i) + float64(i/2999)/8 }), 'd'},
		"too large":              {[]float64{1 << 53}, 'd'},
		"infinity":               {[]float64{math.Inf(1), 1}, 'd'},
		"negative zero":          {[]float64{negativeZero}, 'd'},
		"NaN with other bits":    {[]float64{math.Float64frombits(math.Float64bits(math.NaN()) + 1)}, 'd'},
		"smallest and largest":   {[]float64{5e-324, math.MaxFloat64}, 'd'},
		"sum with a rounded end": {[]float64{tenth + 2*tenth}, 'd'},
	} {
		w := NewRowEncoder(FormPlain, false)
		batch := sandbox.RowBatch{
			Columns: []sandbox.Column{{Name: "x", Type: "float8", Kind: "float"}},
			Data:    []sandbox.ColumnValues{{Floats: c.floats}}, Count: len(c.floats),
		}
		if err := errors.Join(w.WriteBatch(batch), w.End(false)); err != nil {
			t.Fatal(err)
		}
		frames := bytes.Clone(w.Frames())
		PackNumbers(frames)
		var forms []byte
		for form := range numberColumns(frames) {
			forms = append(forms, form...)
		}
		if string(forms) != string(c.form) {
			t.Errorf("%s: got the forms %q, want %q", name, forms, c.form)
		}
		UnpackNumbers(frames)
		if !bytes.Equal(frames, w.Frames()) {
			t.Errorf("%s: other floats come back", name)
		}
	}
}

// A log may come from an archive that somebody has changed.
func FuzzPackNumbers(f *testing.F) {
	f.Add(answerFrames(f, 3, 2))
	f.Add(answerFrames(f, 40, 9))
	f.Add([]byte{0, 0, 0, 9, 'M', 0, 0, 0, 0, '(', 2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, frames []byte) {
		for form := range numberColumns(frames) {
			if form[0] != 'q' && form[0] != 'd' {
				return // RowWriter writes no such form
			}
		}
		changed := bytes.Clone(frames)
		PackNumbers(changed)
		UnpackNumbers(changed)
		if !bytes.Equal(changed, frames) {
			t.Errorf("%x: got %x back", frames, changed)
		}
	})
}
