package history

import (
	"fmt"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	fastjson "github.com/segmentio/encoding/json"

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

// textField is a field of an execution that may hold any bytes.
type textField struct {
	name string
	text *string
}

// textFields returns the fields that may hold any bytes: printed output, and code as a client sent it. All
// other fields came as JSON.
func textFields(e *sandbox.Execution) []textField {
	fields := []textField{{"code", &e.Code}, {"stdout", &e.Stdout}, {"stderr", &e.Stderr}}
	if e.Error != nil {
		fields = append(fields, textField{"error", e.Error})
	}
	return fields
}

const (
	usualRecordBytes = 2 << 10 // more than the size of a record without its texts
	maxYear          = 9999    // of RFC 3339; appendJSON does not check it
)

// exactOf returns the texts of e that are not UTF-8; nil: none.
func exactOf(e *sandbox.Execution) (exact map[string][]byte) {
	for _, field := range textFields(e) {
		if !utf8.ValidString(*field.text) {
			if exact == nil {
				exact = map[string][]byte{}
			}
			exact[field.name] = []byte(*field.text)
		}
	}
	return exact
}

// encode returns the record of e.
func encode(e *sandbox.Execution) ([]byte, error) {
	if year := e.CreatedAt.Year(); year > maxYear {
		return nil, fmt.Errorf("the year %d has more digits than a time in JSON may have", year)
	}
	return appendJSON(make([]byte, 0, usualRecordBytes+e.TextBytes()), record{*e, exactOf(e)})
}

// appendJSON appends v as JSON without HTML escapes: "<" takes one byte and not six. Each run waits for two records.
// encoding/json would take three times as long for them, 20 microseconds more in each run. Raw JSON keeps its spaces,
// and fields with omitzero are there.
func appendJSON(b []byte, v any) ([]byte, error) { return fastjson.Append(b, v, fastjson.SortMapKeys) }

// decode returns the execution of a record. It is several times as fast as json.Unmarshal would be.
func decode(text []byte) (sandbox.Execution, error) {
	var r record
	if err := jsonv2.Unmarshal(text, &r, jsonv1.DefaultOptionsV1()); err != nil {
		return sandbox.Execution{}, fmt.Errorf("decode the record of an execution: %w", err)
	}
	for _, field := range textFields(&r.Execution) {
		if exact, ok := r.Exact[field.name]; ok {
			*field.text = string(exact)
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
