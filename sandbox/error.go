package sandbox

import "fmt"

// Fault is the class of an Error: the last part of the problem's type URI.
type Fault string

// The faults, each with one HTTP status (httpapi has the table).
const (
	FaultInvalid      Fault = "invalid-input"      // 422
	FaultMalformed    Fault = "malformed"          // 400
	FaultTooLarge     Fault = "too-large"          // 413
	FaultUnauthorized Fault = "unauthorized"       // 401
	FaultForbidden    Fault = "forbidden"          // 403
	FaultNotFound     Fault = "not-found"          // 404
	FaultMethod       Fault = "method-not-allowed" // 405
	FaultBusy         Fault = "busy"               // 409
	FaultGone         Fault = "gone"               // 410
	FaultRefused      Fault = "query-refused"      // 422, a Refusal asked for directly
	FaultFull         Fault = "full"               // 503 with Retry-After
	FaultLimit        Fault = "limit-reached"      // 429 with Retry-After
	FaultUnavailable  Fault = "unavailable"        // 503: the database is down
	FaultInternal     Fault = "internal-error"     // 500
)

// Error is an error that a caller can act on: what is wrong and what to do.
// Any error that is not one (nor a Refusal) is the service's own fault, 500.
type Error struct {
	Fault      Fault
	Detail     string // says what to do
	Field      string // the input's field it is about, "" where none
	RetryAfter int    // seconds, 0 where a retry is no use
	Cause      error  // for the log only
}

func (e *Error) Error() string {
	if e.Field != "" {
		return e.Field + ": " + e.Detail
	}
	return e.Detail
}

func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an Error of a fault with a formatted detail.
func Errorf(f Fault, format string, args ...any) *Error {
	return &Error{Fault: f, Detail: fmt.Sprintf(format, args...)}
}

// Refusal says that a statement was not run, or that it failed, and why, in
// terms of the caller's own text. It is the Go side of the Python exceptions
// ReadOnlyError (reason "read-only") and DatabaseError (all others).
type Refusal struct {
	Reason   string `json:"reason"`             // a stable code: read-only, function-not-allowed, unknown-table, ...
	Message  string `json:"message"`            // names the statement and the rule
	SQLState string `json:"sqlstate,omitempty"` // where the server said it
	Position int    `json:"position,omitempty"` // in characters from 1, in the caller's text; 0 unknown
	Line     int    `json:"line,omitempty"`     // from 1
	Nearest  string `json:"nearest,omitempty"`  // the nearest name that exists
	Hint     string `json:"hint,omitempty"`     // one hint
	Failed   bool   `json:"failed,omitempty"`   // the server's failure, not our refusal
}

func (r *Refusal) Error() string {
	if r.Hint != "" {
		return r.Message + " (hint: " + r.Hint + ")"
	}
	return r.Message
}

// Refusef returns a Refusal with a formatted message.
func Refusef(reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
