package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"glasshouse/sandbox"
)

// record is how an execution is kept: its JSON, as the API shows it, and beside it
// the exact bytes of the texts that JSON cannot hold, because they are not UTF-8.
// It is stored as bytea: text and jsonb refuse U+0000, and jsonb would reorder the
// keys of a result. To read one in SQL:
//
//	SELECT convert_from(record, 'UTF8')::json ->> 'stdout' FROM executions
type record struct {
	sandbox.Execution
	Exact map[string][]byte `json:"exact,omitempty"` // base64
}

// texts are the fields that may hold any bytes: what a program printed, or was
// sent to us as code. All else came to us as JSON.
func texts(e *sandbox.Execution) map[string]*string {
	all := map[string]*string{"code": &e.Code, "stdout": &e.Stdout, "stderr": &e.Stderr}
	if e.Error != nil {
		all["error"] = e.Error
	}
	return all
}

// opening is the record of an execution that goes on: all that there is of it yet.
type opening struct {
	ID        string            `json:"execution_id"`
	SandboxID string            `json:"sandbox_id"`
	User      string            `json:"user_id"`
	Kind      sandbox.Kind      `json:"kind"`
	Status    sandbox.Status    `json:"status"`
	Code      string            `json:"code,omitempty"`
	Context   json.RawMessage   `json:"context,omitempty"`
	Timestamp time.Time         `json:"timestamp"`
	CreatedAt time.Time         `json:"created_at"`
	Error     *string           `json:"error,omitempty"` // why its row has no more of it
	Exact     map[string][]byte `json:"exact,omitempty"`
}

// encode returns the record of e as JSON: the whole execution once it has ended, and its opening before.
func encode(e *sandbox.Execution, ended bool) ([]byte, error) {
	var exact map[string][]byte
	for name, text := range texts(e) {
		if !utf8.ValidString(*text) {
			if exact == nil {
				exact = map[string][]byte{}
			}
			exact[name] = []byte(*text)
		}
	}
	var r any = opening{e.ID, e.SandboxID, e.User, e.Kind, e.Status, e.Code, e.Context, e.Timestamp, e.CreatedAt, e.Error, exact}
	if ended {
		r = record{*e, exact}
	}
	body, err := plainJSON(r)
	if err != nil {
		return nil, fmt.Errorf("write an execution's record: %w", err)
	}
	return body, nil
}

// plainJSON is v as JSON in which < is one byte, and not six.
func plainJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

func decode(body []byte) (sandbox.Execution, error) {
	var r record
	if err := json.Unmarshal(body, &r); err != nil {
		return sandbox.Execution{}, fmt.Errorf("read an execution's record: %w", err)
	}
	for name, text := range texts(&r.Execution) {
		if exact, ok := r.Exact[name]; ok {
			*text = string(exact)
		}
	}
	fill(&r.Execution)
	return r.Execution, nil
}

// fill makes lists and objects that were not there empty ones: the API's are never
// null, and a row that a crash left open has none yet.
func fill(e *sandbox.Execution) {
	if e.Result == nil {
		e.Result = json.RawMessage("null")
	}
	orEmpty(&e.Outputs)
	orEmpty(&e.Artifacts)
	orEmpty(&e.Queries)
	orEmpty(&e.Connections)
	orEmpty(&e.DebugInfo.Logs)
	for _, m := range []*map[string]string{&e.ArtifactMap, &e.Isolation.EnforcedBy} {
		if *m == nil {
			*m = map[string]string{}
		}
	}
	if e.Truncated == nil {
		e.Truncated = map[string]int64{}
	}
	if e.DebugInfo.Variables == nil {
		e.DebugInfo.Variables = map[string][]sandbox.Note{}
	}
}

func orEmpty[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

// clean makes text that PostgreSQL's text type can hold, for the columns that are
// searched; the record has it whole.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
