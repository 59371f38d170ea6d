package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"glasshouse/sandbox"
)

// record is an execution as history stores it: its JSON, as the API returns it, and the exact bytes of the texts that
// JSON cannot hold because they are not UTF-8. An execution that runs has the same record with fewer fields set. The
// column has type bytea: text and jsonb refuse U+0000, and jsonb would reorder the keys of a result. To read a record
// in SQL:
//
//	SELECT convert_from(record, 'UTF8')::json ->> 'stdout' FROM executions
type record struct {
	sandbox.Execution
	Exact map[string][]byte `json:"exact,omitempty"` // base64, by field
}

// textFields returns the fields that may hold any bytes: printed output, and code as a client sent it. All
// other fields came as JSON.
func textFields(e *sandbox.Execution) map[string]*string {
	fields := map[string]*string{"code": &e.Code, "stdout": &e.Stdout, "stderr": &e.Stderr}
	if e.Error != nil {
		fields["error"] = e.Error
	}
	return fields
}

// recordOf returns the record of e.
func recordOf(e *sandbox.Execution) record {
	var exact map[string][]byte
	for name, text := range textFields(e) {
		if !utf8.ValidString(*text) {
			if exact == nil {
				exact = map[string][]byte{}
			}
			exact[name] = []byte(*text)
		}
	}
	return record{*e, exact}
}

// marshalPlain returns v as JSON without HTML escapes: "<" takes one byte and not six.
func marshalPlain(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// decode returns the execution of a record. It is several times as fast as json.Unmarshal would be.
func decode(text []byte) (sandbox.Execution, error) {
	var r record
	if err := jsonv2.Unmarshal(text, &r, jsonv1.DefaultOptionsV1()); err != nil {
		return sandbox.Execution{}, fmt.Errorf("decode the record of an execution: %w", err)
	}
	for name, field := range textFields(&r.Execution) {
		if exact, ok := r.Exact[name]; ok {
			*field = string(exact)
		}
	}
	r.Execution.FillEmpty()
	return r.Execution, nil
}

// clean returns text that PostgreSQL's type text can hold, for the columns that are searched. The record has the
// text as it is.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
