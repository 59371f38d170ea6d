package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"time"

	"glasshouse/policy"
)

// Request is a piece of code to run, with what it gets. HTTP decodes its body into it, and other transports fill it.
// The record of the execution has its code, context, kind and annotations; the supervisor runs it.
type Request struct {
	Code    string `json:"code" maxLength:"4000000" doc:"The body of one module"`
	Context Object `json:"context,omitempty" doc:"Each key is a variable of the code; context is the whole object"`

	Files []RequestFile `json:"files,omitempty" doc:"Uploads that are in /data before the code runs"`

	Timeout float64 `json:"timeout,omitempty" minimum:"0.1" maximum:"86400" doc:"Seconds; lowers max_execution_time"`
	Record  bool    `json:"record,omitempty" doc:"Record the run, so that its values can be explained"`

	Annotations

	// A client cannot set these in a body: the transport does.

	// IdempotencyKey tells a repeat of a request of the user from a new one, which has another key. It is "" for a
	// request that always runs.
	IdempotencyKey string `json:"-"`
	ExecutionID    string `json:"-"` // of a request with an idempotency key; else ""

	Kind            Kind  `json:"-"`
	WithoutDatabase bool  `json:"-"` // refuse every request of the code
	Scope           Scope `json:"-"` // of the code's variables
	// Facts has the first and the last line of each statement whose values the run looks at, for Outcome.Facts.
	Facts [][2]int64 `json:"-"`
	// Cell is the path of a value whose origin the run follows, for Outcome.Cell, such as rows[3]["x"]. It needs Facts.
	Cell string `json:"-"`
	// CancelTimeout is how long the code may take to end after its run was cancelled; then its process is killed. 0: as
	// long as the supervisor's default.
	CancelTimeout time.Duration `json:"-"`
	// Interrupts has the interrupts that follow the cancellation: each interrupts the code again, and gives it another
	// CancelTimeout. nil: there are none.
	Interrupts <-chan struct{} `json:"-"`
}

// RequestFile is an upload that comes with code: either a text or bytes.
type RequestFile struct {
	Path    string  `json:"path" format:"file-path" doc:"Path below /data"`
	Content *string `json:"content,omitempty" maxLength:"4000000" doc:"Text; either this or content_base64"`
	Base64  Base64  `json:"content_base64,omitempty"`
}

// Base64 is bytes that JSON has in base64.
type Base64 []byte

// Body returns the bytes of f.
func (f *RequestFile) Body() []byte {
	if f.Content != nil {
		return []byte(*f.Content)
	}
	return f.Base64
}

// CheckCodeSize returns FaultTooLarge for code that is longer than a policy allows.
func CheckCodeSize(code string, p policy.Policy) error {
	if n := len(code); n > p.MaxCodeSize {
		return &Error{
			Fault: FaultTooLarge, Field: "code",
			Detail: fmt.Sprintf("the code has %d bytes; max_code_size is %d", n, p.MaxCodeSize),
		}
	}
	return nil
}

// CheckFiles returns FaultInvalid for a file that has a text and bytes, or neither.
func (r Request) CheckFiles() error {
	for n, f := range r.Files {
		if (f.Content == nil) == (f.Base64 == nil) {
			return &Error{
				Fault: FaultInvalid, Field: fmt.Sprintf("files[%d]", n),
				Detail: "give either content (text) or content_base64",
			}
		}
	}
	return nil
}

// TimeLimit returns Timeout as a duration; 0: there is no such limit.
func (r Request) TimeLimit() time.Duration {
	return time.Duration(math.Round(max(r.Timeout, 0) * float64(time.Second)))
}

// Object is a JSON object as the client sent it, so that its numbers keep all digits. It is nil if the client sent null
// or nothing.
type Object json.RawMessage

// UnmarshalJSON keeps a copy of the text, and rejects other JSON types.
func (o *Object) UnmarshalJSON(text []byte) error {
	other := map[byte]string{'[': "array", '"': "string", 't': "bool", 'f': "bool"}
	switch text[0] {
	case '{':
		*o = bytes.Clone(text)
		return nil
	case 'n':
		*o = nil
		return nil
	}
	value := other[text[0]]
	if value == "" {
		value = "number"
	}
	return &json.UnmarshalTypeError{Value: value, Type: reflect.TypeFor[Object]()}
}
