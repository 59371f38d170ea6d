package httpapi

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/sandbox"
)

const requestIDKey = "request_id"

// Problem is an error as RFC 9457 has it; type is stable.
type Problem struct {
	Type      string           `json:"type"`
	Title     string           `json:"title"`
	Status    int              `json:"status"`
	Detail    string           `json:"detail"`
	Errors    []FieldProblem   `json:"errors,omitempty"`
	Refusal   *sandbox.Refusal `json:"refusal,omitempty"`
	RequestID string           `json:"request_id,omitempty"`
}

// FieldProblem names a field of the input and what is wrong with it.
type FieldProblem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (p *Problem) Error() string { return p.Detail }

// GetStatus is what huma answers with.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType says that a problem is one.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

var statuses = map[sandbox.Fault]int{
	sandbox.FaultMalformed: http.StatusBadRequest, sandbox.FaultUnauthorized: http.StatusUnauthorized, sandbox.FaultForbidden: http.StatusForbidden, sandbox.FaultNotFound: http.StatusNotFound,
	sandbox.FaultMethod: http.StatusMethodNotAllowed, sandbox.FaultBusy: http.StatusConflict, sandbox.FaultGone: http.StatusGone, sandbox.FaultTooLarge: http.StatusRequestEntityTooLarge,
	sandbox.FaultInvalid: http.StatusUnprocessableEntity, sandbox.FaultRefused: http.StatusUnprocessableEntity, sandbox.FaultLimit: http.StatusTooManyRequests, sandbox.FaultInternal: http.StatusInternalServerError,
	sandbox.FaultFull: http.StatusServiceUnavailable, sandbox.FaultUnavailable: http.StatusServiceUnavailable,
}

func fault(err error) sandbox.Fault {
	var known *sandbox.Error
	if errors.As(err, &known) {
		return known.Fault
	}
	return sandbox.FaultInternal
}

// toProblem says an error in the caller's terms; retry is seconds or 0.
func toProblem(err error, id string) (p *Problem, retry int) {
	p = &Problem{RequestID: id, Detail: "the service failed; its log has the request id"}
	var known *sandbox.Error
	var no *sandbox.Refusal
	kind := sandbox.FaultInternal
	switch {
	case errors.As(err, &no):
		kind, p.Detail, p.Refusal = sandbox.FaultRefused, no.Error(), no
	case errors.As(err, &known):
		kind, p.Detail, retry = known.Fault, known.Detail, known.RetryAfter
		if known.Field != "" {
			p.Errors = []FieldProblem{{known.Field, known.Detail}}
			p.Detail = known.Field + ": " + known.Detail
		}
	}
	p.Status = statuses[kind]
	p.Type, p.Title = "urn:glasshouse:problem:"+string(kind), strings.ReplaceAll(string(kind), "-", " ")
	return p, retry
}

// problem answers with an error outside huma.
func (a *api) problem(g *gin.Context, err error) {
	p, retry := toProblem(err, g.GetString(requestIDKey))
	if p.Status == http.StatusInternalServerError {
		a.log.WithError(err).WithField("request_id", p.RequestID).Error("a request failed")
	}
	if retry > 0 {
		g.Header("Retry-After", strconv.Itoa(retry))
	}
	g.Header("Content-Type", "application/problem+json")
	g.AbortWithStatusJSON(p.Status, p)
}

// newProblem is huma's own errors, for bodies that do not fit the schema.
func newProblem(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
	kind := sandbox.FaultInvalid
	for f, s := range statuses {
		if s == status && status != http.StatusUnprocessableEntity && status != http.StatusServiceUnavailable {
			kind = f
		}
	}
	p := &Problem{Type: "urn:glasshouse:problem:" + string(kind), Title: strings.ReplaceAll(string(kind), "-", " "), Status: status, Detail: message}
	if ctx != nil {
		p.RequestID, _ = ctx.Context().Value(ctxRequestID{}).(string)
	}
	more := max(len(errs)-maxErrors, 0)
	for _, err := range errs[:len(errs)-more] {
		var detail *huma.ErrorDetail
		if errors.As(err, &detail) {
			p.Errors = append(p.Errors, FieldProblem{strings.TrimPrefix(detail.Location, "body."), inPlain.Replace(detail.Message)})
		} else if err != nil {
			p.Errors = append(p.Errors, FieldProblem{"", err.Error()})
			if strings.Contains(err.Error(), "too large") {
				p.Status, p.Type, p.Title = http.StatusRequestEntityTooLarge, "urn:glasshouse:problem:too-large", "too large"
			}
		}
	}
	for _, e := range p.Errors {
		p.Detail += "; " + strings.TrimPrefix(e.Field+": "+e.Message, ": ")
	}
	if more > 0 {
		p.Detail += fmt.Sprintf("; and %d more", more)
	}
	return p
}

// inPlain says in the caller's words what huma says in Go's.
var inPlain = strings.NewReplacer(
	"invalid date/time for format "+time.RFC3339Nano, "expected a time as RFC 3339 has it, such as 2026-01-31T12:00:00Z",
	"unknown content type: ", "send Content-Type: application/json, and a body of that; this was ",
)

// maxErrors is how many of a request's errors are told: a body can have a million.
const maxErrors = 20

// newRequestID keeps a sane id of the caller's, or makes one.
func newRequestID(given string) string {
	if len(given) > 0 && len(given) <= 64 && strings.IndexFunc(given, func(r rune) bool { return r <= ' ' || r > '~' }) < 0 {
		return given
	}
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
