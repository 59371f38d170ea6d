package sandbox

import (
	"errors"
	"fmt"
	"net/http"

	"glasshouse/policy"
)

// Fault is the class of an Error. It is the last part of the problem's type URI.
type Fault string

// The faults. FaultStatus has the HTTP status of each.
const (
	FaultRange         Fault = "range-not-satisfiable"
	FaultUpgrade       Fault = "upgrade-required"
	FaultInvalid       Fault = "invalid-input"
	FaultMalformed     Fault = "malformed"
	FaultTooLarge      Fault = "too-large"
	FaultUnauthorized  Fault = "unauthorized"
	FaultForbidden     Fault = "forbidden"
	FaultNotFound      Fault = "not-found"
	FaultMethod        Fault = "method-not-allowed"
	FaultBusy          Fault = "busy"
	FaultNotConfigured Fault = "not-configured" // the operator has not configured what this needs
	FaultGone          Fault = "gone"
	FaultPrecondition  Fault = "precondition-failed"
	FaultRefused       Fault = "query-refused" // for a Refusal
	FaultFull          Fault = "full"          // with Retry-After
	FaultLimit         Fault = "limit-reached" // with Retry-After
	FaultUnavailable   Fault = "unavailable"   // the database is down
	FaultInternal      Fault = "internal-error"
)

// FaultStatus has the HTTP statuses of the faults.
var FaultStatus = map[Fault]int{
	FaultRange:         http.StatusRequestedRangeNotSatisfiable,
	FaultUpgrade:       http.StatusUpgradeRequired,
	FaultInvalid:       http.StatusUnprocessableEntity,
	FaultMalformed:     http.StatusBadRequest,
	FaultTooLarge:      http.StatusRequestEntityTooLarge,
	FaultUnauthorized:  http.StatusUnauthorized,
	FaultForbidden:     http.StatusForbidden,
	FaultNotFound:      http.StatusNotFound,
	FaultMethod:        http.StatusMethodNotAllowed,
	FaultBusy:          http.StatusConflict,
	FaultNotConfigured: http.StatusConflict,
	FaultGone:          http.StatusGone,
	FaultPrecondition:  http.StatusPreconditionFailed,
	FaultRefused:       http.StatusUnprocessableEntity,
	FaultFull:          http.StatusServiceUnavailable,
	FaultLimit:         http.StatusTooManyRequests,
	FaultUnavailable:   http.StatusServiceUnavailable,
	FaultInternal:      http.StatusInternalServerError,
}

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

// PolicyFault returns the fault for an error of package policy that names a field; it returns any other error as it is.
func PolicyFault(err error) error {
	field, ok := errors.AsType[*policy.FieldError](err)
	if !ok {
		return err
	}
	fault := FaultInvalid
	if field.Kind == policy.KindForbidden {
		fault = FaultForbidden
	}
	return &Error{Fault: fault, Field: field.Field, Detail: field.Detail}
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
