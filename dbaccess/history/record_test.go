package history

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"glasshouse/sandbox"
)

// fill sets a value and all values in it, so that about a third stay empty.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	if r.IntN(3) == 0 {
		return
	}
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(4e9), r.Int64N(1e9)).UTC()))
		return
	case json.RawMessage:
		texts := []string{`{"a":[1,2.5,"<\u00e9>"]}`, `null`, `"text"`, `-0.5e3`}
		v.Set(reflect.ValueOf(json.RawMessage(texts[r.IntN(len(texts))])))
		return
	}
	texts := []string{
		"text", "<a href=\"x\">&\\</a>", "é\u2028\u2029\x00\x01\x7f\n\t\r", "\xff\xfe half a character: \xc3",
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[r.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64N(1<<31) - 1<<30)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64N(1 << 7))
	case reflect.Float64:
		v.SetFloat([]float64{1e-7, 0.1, 123456.789, 1e21, -3}[r.IntN(5)])
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for n := range v.NumField() {
			if v.Field(n).CanSet() {
				fill(r, v.Field(n), depth+1)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for n := range v.Len() {
			fill(r, v.Index(n), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key, depth+1)
			fill(r, value, depth+1)
			if value.Kind() == reflect.Slice && value.Type() == reflect.TypeFor[json.RawMessage]() && value.Len() == 0 {
				value.Set(reflect.ValueOf(json.RawMessage("1")))
			}
			v.SetMapIndex(key, value)
		}
	}
}

// The library that encodes records is not that of the rest of the service. It writes the same for all values that an
// execution may have.
func TestRecordsAreWhatEncodingJSONWrites(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var e sandbox.Execution
		for n := range reflect.TypeFor[sandbox.Execution]().NumField() {
			fill(r, reflect.ValueOf(&e).Elem().Field(n), 0)
		}
		for n := range e.Outputs { // it is left out if it is zero, which the library does not do
			e.Outputs[n].ShownAt = time.Unix(1, 0)
		}
		got, err := encode(&e)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(recordOf(&e)); err != nil {
			t.Fatal(err)
		}
		if text := bytes.TrimSpace(want.Bytes()); !bytes.Equal(got, text) {
			t.Fatalf("got\n%s\nwant\n%s", got, text)
		}
		decoded, err := decode(got)
		if err != nil || decoded.Code != e.Code || decoded.Stdout != e.Stdout {
			t.Fatalf("a record is read as %+v, %v; want the execution %+v", decoded, err, e)
		}
		// A record leaves out empty parts only.
		whole, err := sandbox.AppendJSON(nil, struct {
			sandbox.Execution
			Exact exactTexts `json:"exact"`
		}{e, exactOf(&e)})
		if err != nil {
			t.Fatal(err)
		}
		if want, err := decode(whole); err != nil || !reflect.DeepEqual(decoded, want) {
			t.Fatalf("a record is read as\n%+v\nwant, as from JSON with all parts,\n%+v, %v", decoded, want, err)
		}
	}
}
