package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// FuzzRowJSONString compares a string with what encoding/json makes of it, and checks that a limit holds.
func FuzzRowJSONString(f *testing.F) {
	for _, s := range []string{
		"", "plain", "\x00\x01\x1f\x7f", "\b\f\n\r\t\"\\/", "<a&b>",
		"é€😀", "\u2028\u2029\u2027\ufffd", "\xff\xc3(\xe2\x82", "a\xf0\x9f",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var encoded bytes.Buffer
		encoder := json.NewEncoder(&encoded)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(s); err != nil {
			t.Fatal(err)
		}
		want := bytes.TrimSuffix(encoded.Bytes(), []byte("\n"))
		j := RowJSON{Max: len(want)}
		if j.String(s); j.Err != nil || string(j.Bytes()) != string(want) {
			t.Errorf("%q: got %s, %v, want %s", s, j.Bytes(), j.Err, want)
		}
		j = RowJSON{Max: len(want) - 1}
		if j.String(s); j.Err == nil || j.Len() > j.Max {
			t.Errorf("%q in %d bytes: got %s, want an error", s, j.Max, j.Bytes())
		}
	})
}

// TestRowJSONStaysWithinItsLimit encodes values whose JSON is larger than the limit.
func TestRowJSONStaysWithinItsLimit(t *testing.T) {
	t.Parallel()
	format := ArrayFormat{',', func(text []byte) any { return string(text) }}
	for name, v := range map[string]any{
		"control characters": strings.Repeat("\x01", 1000), "bytes": make([]byte, 1000),
		"text":            strings.Repeat("a", 1000),
		"array":           Array{[]byte("{" + strings.Repeat("a,", 1000) + "}"), &format},
		"array of arrays": Array{[]byte("{" + strings.Repeat("{a},", 1000) + "}"), &format},
		"array of NULL":   Array{[]byte("{" + strings.Repeat("NULL,", 1000) + "}"), &format},
	} {
		j := RowJSON{Max: 500}
		if j.Value(v, "string"); j.Err == nil || j.Len() > j.Max {
			t.Errorf("%s: got %d bytes, want at most 500 and an error", name, j.Len())
		}
	}
}

// TestRowJSONHoldsWhatItTakes writes texts of several chunks, and counts the memory that is held for them.
func TestRowJSONHoldsWhatItTakes(t *testing.T) {
	t.Parallel()
	held := 0
	j := RowJSON{Max: 10 << 20, Hold: func(n int) error { held += n; return nil }}
	var want strings.Builder
	for _, s := range []string{"a", strings.Repeat("b", 3<<20), strings.Repeat("c", 900<<10),
		strings.Repeat("d", 200<<10)} {
		j.String(s)
		want.WriteString(`"` + s + `"`)
	}
	var got strings.Builder
	if n, err := j.WriteTo(&got); err != nil || got.String() != want.String() || n != int64(j.Len()) {
		t.Errorf("got %d of %d bytes, %v", n, want.Len(), err)
	}
	if string(j.Bytes()) != want.String() {
		t.Errorf("Bytes differs from what WriteTo writes")
	}
	if held < j.Len() || held > j.Len()+chunkBytes {
		t.Errorf("held %d bytes for %d", held, j.Len())
	}
	full := errors.New("full")
	j.Hold = func(int) error { return full }
	if j.String(strings.Repeat("e", 3<<20)); !errors.Is(j.Err, full) {
		t.Errorf("got %v, want the error of Hold", j.Err)
	}
}
