package dbaccess

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"glasshouse/sandbox"
)

// FuzzArray encodes a list as a parameter and decodes it as a value.
func FuzzArray(f *testing.F) {
	for _, list := range []string{`[]`, `["a", null, "NULL", "", "b\"c\\d", "{}", "x,y"]`, `[[1, 2], [3, null]]`, `[true, false]`, `[[["deep"]]]`, `["é\n\t"]`} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, given string) {
		var list []any
		if json.Unmarshal([]byte(given), &list) != nil {
			return
		}
		list, ok := texts(list, 0).([]any)
		if !ok {
			return
		}
		out, _, err := encodeParameter("p", list)
		if err != nil {
			return
		}
		var got []any
		text := arrayJSON(out, decoderByKind[""])
		if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, list) {
			t.Errorf("%s: encoded as %s and decoded as %s, %v", given, out, text, err)
		}
	})
}

// arrayJSON returns the JSON of PostgreSQL's text of an array.
func arrayJSON(text []byte, element decoder) []byte {
	column := sandbox.ColumnValues{
		Text: text, Ends: []int{len(text)}, Array: &sandbox.ArrayFormat{Separator: ',', Element: element},
	}
	j := sandbox.RowJSON{Max: math.MaxInt}
	j.At(&column, 0, "string")
	return j.Bytes()
}

// texts returns v if it consists of lists, strings and nulls only, and nil otherwise.
func texts(v any, depth int) any {
	switch v := v.(type) {
	case nil, string:
		return v
	case []any:
		for i := range v {
			if v[i] != nil {
				if v[i] = texts(v[i], depth+1); v[i] == nil {
					return nil
				}
			}
		}
		return v
	}
	return nil
}

// FuzzValue decodes any text as each kind of value. No decoder may panic.
func FuzzValue(f *testing.F) {
	for _, s := range []string{"", "P1Y2M3DT4H5M6.789S", "P-1Y-2M3DT-4H-5M-6.7S", "PT0S", `{1,2}`, `[0:1]={"a b",NULL}`, `{{`, `{"`, `\x00`, "infinity", "2024-01-01 00:00:00+00", "P99999999999999999999Y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, one := range decoderByKind {
			one([]byte(s))
			if text := arrayJSON([]byte(s), one); !json.Valid(text) && len(s) > 0 && s[0] == '{' {
				t.Errorf("%q: decoded as %s, want JSON", s, text)
			}
		}
	})
}
