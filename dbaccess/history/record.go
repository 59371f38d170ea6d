package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"glasshouse/sandbox"
)

// record is an execution as history stores it: its JSON, as the API returns it, and the exact bytes of the texts that
// JSON cannot hold because they are not UTF-8. The column has type bytea: text and jsonb refuse U+0000, and jsonb
// would reorder the keys of a result. To read a record in SQL:
//
//	SELECT convert_from(record, 'UTF8')::json ->> 'stdout' FROM executions
type record struct {
	sandbox.Execution
	Exact map[string][]byte `json:"exact,omitempty"` // base64, by field
}

// openingRecord is the record of an execution that runs: the fields that are known by then.
type openingRecord struct {
	ID        string            `json:"execution_id"`
	SandboxID string            `json:"sandbox_id"`
	User      string            `json:"user_id"`
	Kind      sandbox.Kind      `json:"kind"`
	Status    sandbox.Status    `json:"status"`
	Code      string            `json:"code,omitempty"`
	Context   json.RawMessage   `json:"context,omitempty"`
	Timestamp time.Time         `json:"timestamp"`
	CreatedAt time.Time         `json:"created_at"`
	Error     *string           `json:"error,omitempty"` // set if the row was refused and this one points to its file
	Exact     map[string][]byte `json:"exact,omitempty"`
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

// recordOf returns the record of e: a record, or an openingRecord if e runs.
func recordOf(e *sandbox.Execution) any {
	var exact map[string][]byte
	for name, text := range textFields(e) {
		if !utf8.ValidString(*text) {
			if exact == nil {
				exact = map[string][]byte{}
			}
			exact[name] = []byte(*text)
		}
	}
	if e.CompletedAt == nil {
		return openingRecord{e.ID, e.SandboxID, e.User, e.Kind, e.Status, e.Code, e.Context, e.Timestamp, e.CreatedAt,
			e.Error, exact}
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

func decode(text []byte) (sandbox.Execution, error) {
	var r record
	if !utf8.Valid(text) { // of an earlier version, which kept any result; one record must not spoil a list
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	err := jsonv2.Unmarshal(text, &r, jsonv1.DefaultOptionsV1()) // several times as fast as json.Unmarshal
	if err != nil {
		r = record{}
		err = json.Unmarshal(text, &r)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && strings.HasSuffix(wrong.Field, "isolation") { // the rest is decoded
		// Records had an object with level and enforced_by here before the level had the field for itself.
		var old struct {
			Isolation struct {
				Level      string            `json:"level"`
				EnforcedBy map[string]string `json:"enforced_by"`
			} `json:"isolation"`
		}
		err = json.Unmarshal(text, &old)
		r.Isolation = sandbox.Isolation(old.Isolation)
	}
	if err != nil {
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
