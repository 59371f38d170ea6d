package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"glasshouse/sandbox"
)

// record is an execution as history stores it: its JSON, as the API returns it but for empty parts, and the exact bytes
// of the texts that JSON cannot hold because they are not UTF-8. An execution that runs has the same record with fewer
// fields set. The column has type bytea: text and jsonb refuse U+0000, and jsonb would reorder the keys of a result. To
// read a record in SQL:
//
//	SELECT convert_from(record, 'UTF8')::json ->> 'stdout' FROM executions
type record struct {
	sandbox.ExecutionAnswer
	EnforcedBy json.RawMessage `json:"enforced_by,omitempty"`
	Exact      exactTexts      `json:"exact,omitempty"`
}

// exactTexts are texts that are not UTF-8, by field. JSON has them as base64.
type exactTexts map[string][]byte

// recordOf returns the record of e.
func recordOf(e *sandbox.Execution) *record {
	return &record{e.Whole(), mechanismsOf(e), exactOf(e)}
}

// encodedMechanisms is Isolation.EnforcedBy and its JSON.
type encodedMechanisms struct {
	names map[string]string
	text  json.RawMessage
}

// lastMechanisms are those of the last record. Nearly all executions have the same, and their encoding would take a
// quarter of the time of a record.
var lastMechanisms atomic.Pointer[encodedMechanisms]

// mechanismsOf returns the JSON of e.EnforcedBy; nil: it is empty.
func mechanismsOf(e *sandbox.Execution) json.RawMessage {
	if len(e.EnforcedBy) == 0 {
		return nil
	}
	if last := lastMechanisms.Load(); last != nil && maps.Equal(last.names, e.EnforcedBy) {
		return last.text
	}
	text, _ := sandbox.AppendJSON(nil, e.EnforcedBy) // texts can be encoded
	lastMechanisms.Store(&encodedMechanisms{maps.Clone(e.EnforcedBy), text})
	return text
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
	usualRecordBytes = 640  // more than the size of a record without its texts and mechanisms
	maxYear          = 9999 // of RFC 3339; AppendJSON does not check it
)

// exactOf returns the texts of e that are not UTF-8; nil: none.
func exactOf(e *sandbox.Execution) (exact exactTexts) {
	for _, field := range textFields(e) {
		if !utf8.ValidString(*field.text) {
			if exact == nil {
				exact = exactTexts{}
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
	r := recordOf(e)
	return sandbox.AppendJSON(make([]byte, 0, usualRecordBytes+len(r.EnforcedBy)+e.TextBytes()), r)
}

// decode returns the execution of a record. It is several times as fast as json.Unmarshal would be.
func decode(text []byte) (sandbox.Execution, error) {
	var r struct {
		sandbox.Execution
		Exact exactTexts `json:"exact"`
	}
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
