package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"
	"github.com/gin-gonic/gin"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// Problem is the body of every error, after RFC 9457. Type does not change between versions.
type Problem struct {
	Type      string           `json:"type"`
	Title     string           `json:"title"`
	Status    int              `json:"status"`
	Detail    string           `json:"detail"`
	Errors    []FieldProblem   `json:"errors,omitempty"`
	Refusal   *sandbox.Refusal `json:"refusal,omitempty"`
	RequestID string           `json:"request_id,omitempty"`
}

// FieldProblem says what is wrong with one field of the input.
type FieldProblem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// maxProblemText is how many characters a problem has of a field's name, which a client chooses, and of its message.
const maxProblemText = 500

func (p *Problem) addField(field, message string) {
	p.Errors = append(p.Errors,
		FieldProblem{sandbox.Shorten(field, maxProblemText), sandbox.Shorten(message, maxProblemText)})
}

func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return problemType }

const problemType = "application/problem+json"

func (p *Problem) setFault(fault sandbox.Fault, status int) {
	p.Type, p.Status = "urn:glasshouse:problem:"+string(fault), status
	p.Title = strings.ReplaceAll(string(fault), "-", " ")
}

// statusFault returns the fault for the status of an error that huma itself reports.
func statusFault(status int) sandbox.Fault {
	switch status { // of two faults
	case http.StatusServiceUnavailable, http.StatusUnprocessableEntity:
		return sandbox.FaultInvalid
	case http.StatusConflict:
		return sandbox.FaultBusy
	}
	for fault, s := range sandbox.FaultStatus {
		if s == status {
			return fault
		}
	}
	return sandbox.FaultInvalid
}

// toProblem turns the service's error into a problem. retryAfter is in seconds, 0 if there is none.
// An error that is not a sandbox.Error or sandbox.Refusal may hold internals, so its text stays in the log.
func toProblem(err error, requestID string) (p *Problem, retryAfter int) {
	p = &Problem{RequestID: requestID, Detail: "internal error; the service's log has the error under this request id"}
	fault := sandbox.FaultInternal
	var known *sandbox.Error
	var refusal *sandbox.Refusal
	switch {
	case errors.As(err, &refusal):
		fault, p.Detail, p.Refusal = sandbox.FaultRefused, refusal.Error(), refusal
	case errors.As(err, &known):
		fault, p.Detail, retryAfter = known.Fault, known.Detail, known.RetryAfter
		if known.Field != "" {
			field := sandbox.Shorten(known.Field, maxProblemText)
			p.Errors = []FieldProblem{{field, known.Detail}}
			p.Detail = field + ": " + known.Detail
		}
	}
	p.setFault(fault, sandbox.FaultStatus[fault])
	return p, retryAfter
}

// fail answers with an error, outside huma, and ends the chain of handlers.
func (a *api) fail(g *gin.Context, err error) {
	ctx := g.Request.Context()
	if lost := access.LostKey(ctx); lost != nil {
		err = lost
	}
	p, retryAfter := toProblem(err, infoFrom(ctx).id)
	a.logInternal(ctx, p, err)
	if retryAfter > 0 {
		g.Header("Retry-After", strconv.Itoa(retryAfter))
	}
	writeProblem(g, p)
}

func writeProblem(g *gin.Context, p *Problem) {
	g.Header("Content-Type", problemType)
	g.AbortWithStatusJSON(p.Status, p)
}

// plainErrors is a writer that holds back an error of another package, which has no problem for it.
type plainErrors struct {
	gin.ResponseWriter
	keepJSON bool // errors in JSON are sent as they are
	status   int  // of the error; 0: none
	text     strings.Builder
}

// WriteHeader sends the status, unless it is an error's.
func (w *plainErrors) WriteHeader(status int) {
	if status < 400 || w.keepJSON && strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.status = status
}

// Write writes b, or keeps it if it is the text of an error.
func (w *plainErrors) Write(b []byte) (int, error) {
	if w.status > 0 {
		return w.text.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

// humaError turns the service's error into one that huma answers with. If the request's key was lost, that is the
// error.
func (a *api) humaError(ctx context.Context, err error) error {
	if lost := access.LostKey(ctx); lost != nil {
		err = lost
	}
	if err == nil {
		return nil
	}
	p, retryAfter := toProblem(err, infoFrom(ctx).id)
	a.logInternal(ctx, p, err)
	if retryAfter > 0 {
		return huma.ErrorWithHeaders(p, http.Header{"Retry-After": {strconv.Itoa(retryAfter)}})
	}
	return p
}

// logInternal logs the error behind an internal problem, unless the client has left.
func (a *api) logInternal(ctx context.Context, p *Problem, err error) {
	if p.Status == http.StatusInternalServerError && !errors.Is(err, context.Canceled) {
		a.log.WithError(err).WithField("request_id", infoFrom(ctx).id).Error("a request failed")
	}
}

// maxFieldProblems is the number of validation errors that a problem lists; a body can have a million.
const maxFieldProblems = 20

// newProblem returns the problem for a request that huma rejects.
func newProblem(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
	p := &Problem{Detail: message}
	p.setFault(statusFault(status), status)
	if ctx != nil {
		p.RequestID = infoFrom(ctx.Context()).id
	}
	unlisted := max(len(errs)-maxFieldProblems, 0)
	for _, err := range errs[:len(errs)-unlisted] {
		if detail, ok := errors.AsType[*huma.ErrorDetail](err); ok {
			if field, ok := strings.CutPrefix(detail.Message, repeatedKey); ok { // from decode
				p.setFault(sandbox.FaultInvalid, http.StatusUnprocessableEntity)
				repeated := repeatedKeyError(field)
				p.addField(repeated.Field, repeated.Detail)
				continue
			}
			text := plainMessage.Replace(detail.Message)
			if detail.Message == validation.MsgUnexpectedProperty && ctx != nil {
				text = unknownField(ctx.Operation(), detail.Location)
			}
			p.addField(strings.TrimPrefix(detail.Location, "body."), text)
		} else if known, ok := errors.AsType[*sandbox.Error](err); ok { // from requestBody
			read, retryAfter := toProblem(known, p.RequestID)
			if retryAfter > 0 && ctx != nil {
				ctx.SetHeader("Retry-After", strconv.Itoa(retryAfter))
			}
			return read
		} else if err != nil {
			p.addField("", err.Error())
			if strings.Contains(err.Error(), "too large") {
				p.setFault(sandbox.FaultTooLarge, http.StatusRequestEntityTooLarge)
			}
		}
	}
	for _, e := range p.Errors {
		p.Detail += "; " + strings.TrimPrefix(e.Field+": "+e.Message, ": ")
	}
	if unlisted > 0 {
		p.Detail += fmt.Sprintf("; and %d more", unlisted)
	}
	return p
}

// plainMessage replaces messages of huma that name Go's formats or suggest no remedy.
var plainMessage = strings.NewReplacer(
	"invalid value: ", "", // of UnmarshalText, whose error says more
	"expected value to match exactly one schema but matched multiple",
	"expected exactly one of the forms that GET /openapi.json describes",
	"expected value to match exactly one schema but matched none",
	"expected one of the forms that GET /openapi.json describes",
	"unknown content type: ", "send a JSON body with the header Content-Type: application/json, not ",
)
