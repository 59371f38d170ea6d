package sandbox

import (
	"errors"
	"fmt"
)

// Fault is the class of an Error. It is the last part of the problem's type URI.
type Fault string

// The faults, each with its HTTP status.
const (
	FaultRange         Fault = "range-not-satisfiable" // 416
	FaultUpgrade       Fault = "upgrade-required"      // 426
	FaultInvalid       Fault = "invalid-input"         // 422
	FaultMalformed     Fault = "malformed"             // 400
	FaultTooLarge      Fault = "too-large"             // 413
	FaultUnauthorized  Fault = "unauthorized"          // 401
	FaultForbidden     Fault = "forbidden"             // 403
	FaultNotFound      Fault = "not-found"             // 404
	FaultMethod        Fault = "method-not-allowed"    // 405
	FaultBusy          Fault = "busy"                  // 409
	FaultNotConfigured Fault = "not-configured"        // 409: the operator has not configured what this needs
	FaultGone          Fault = "gone"                  // 410
	FaultPrecondition  Fault = "precondition-failed"   // 412
	FaultRefused       Fault = "query-refused"         // 422, for a Refusal
	FaultFull          Fault = "full"                  // 503 with Retry-After
	FaultLimit         Fault = "limit-reached"         // 429 with Retry-After
	FaultUnavailable   Fault = "unavailable"           // 503: the database is down
	FaultInternal      Fault = "internal-error"        // 500
)

// Error is an error that a caller can act on. Any other error, except a Refusal, is an
// internal error with status 500.
type Error struct {
	Fault      Fault
	Detail     string // what is wrong and what to do
	Field      string // the field of the input that is wrong, or ""
	RetryAfter int    // seconds; 0 if a retry cannot succeed
	Cause      error  // for the log only
}

func (e *Error) Error() string {
	if e.Field != "" {
		return e.Field + ": " + e.Detail
	}
	return e.Detail
}

func (e *Error) Unwrap() error { return e.Cause }

// FaultOf returns the fault of an Error in err's chain, or FaultInternal if it has none.
func FaultOf(err error) Fault {
	if known, ok := errors.AsType[*Error](err); ok {
		return known.Fault
	}
	return FaultInternal
}

// Errorf returns an Error with a formatted detail.
func Errorf(f Fault, format string, args ...any) *Error {
	return &Error{Fault: f, Detail: fmt.Sprintf(format, args...)}
}

// Refusal says why a statement did not run, or why it failed. Positions are in the caller's
// text. In Python it is a ReadOnlyError (reason "read-only") or a DatabaseError (all other
// reasons).
type Refusal struct {
	Reason   string `json:"reason"`             // a stable code: read-only, function-not-allowed, unknown-table, ...
	Message  string `json:"message"`            // names the statement and the rule
	SQLState string `json:"sqlstate,omitempty"` // of the server's error, if there is one
	Position int    `json:"position,omitempty"` // in characters from 1, in the caller's text; 0 if it is not known
	Line     int    `json:"line,omitempty"`     // from 1
	Nearest  string `json:"nearest,omitempty"`  // the most similar name that exists
	Hint     string `json:"hint,omitempty"`
	Failed   bool   `json:"failed,omitempty"` // the statement ran, and the server failed it
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
