package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// debugBody is the body of POST /sandbox/{id}/debug. gin decodes it, with any content type.
type debugBody struct {
	Code    *string        `json:"code" nullable:"false" maxLength:"4000000"`
	Context sandbox.Object `json:"context,omitempty"`
	sandbox.Annotations
	Breakpoints []any `json:"breakpoints,omitempty" doc:"Accepted and ignored: a stream does not stop"`
}

func (a *api) routeDebug(r *routes) {
	op := r.describe("POST", "/sandbox/{id}/debug", "debugCode", tagDebugger,
		"Execute code and stream each line that ran; needs a developer's or an admin's key",
		http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusForbidden, http.StatusConflict,
		http.StatusGone)
	op.Parameters = []*huma.Param{stringParam("path", "id", "The sandbox's id")}
	op.RequestBody = &huma.RequestBody{Required: true, Content: jsonContent[debugBody](r)}
	op.Responses["200"] = &huma.Response{
		Description: "One data line for each step; the last has the whole execution as its result. " +
			"data: [DONE] ends the stream",
		Content: map[string]*huma.MediaType{"text/event-stream": eventSchema(
			"A step as JSON: " + jsonContent[sandbox.Step](r)["application/json"].Schema.Ref + "; the last is [DONE]")},
	}
	r.handle(r.keyed, op, a.debugCode)
}

// debugCode executes code and streams its steps.
func (a *api) debugCode(g *gin.Context) {
	raw, err := io.ReadAll(g.Request.Body)
	if err != nil {
		a.fail(g, readError(err))
		return
	}
	var body debugBody
	if err := decodeStrict(raw, &body); err != nil {
		a.fail(g, err)
		return
	}
	if body.Code == nil {
		a.fail(g, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "code",
			Detail: "expected required property code to be present"})
		return
	}
	a.streamSteps(g, sandbox.Request{
		Code: *body.Code, Context: body.Context, Annotations: body.Annotations, Kind: sandbox.KindDebug,
	})
}

// maxQueuedSteps is the maximum number of steps that wait for the client. A client that reads more slowly delays the
// program.
const maxQueuedSteps = 1024

// streamSteps executes a request in its own goroutine and writes its steps as they come.
func (a *api) streamSteps(g *gin.Context, request sandbox.Request) {
	ctx, cancel := context.WithCancel(g.Request.Context())
	defer cancel()
	steps := make(chan sandbox.Step, maxQueuedSteps)
	queue := func(step sandbox.Step) bool {
		select {
		case steps <- step:
		case <-ctx.Done():
		}
		return ctx.Err() == nil
	}
	type outcome struct {
		execution *sandbox.Execution
		err       error
	}
	ended := make(chan outcome, 1)
	go func() {
		e, err := a.runs.ExecuteSteps(ctx, callerFrom(ctx), g.Param("id"), request, queue)
		close(steps)
		ended <- outcome{e, err}
	}()
	stream := newEventStream(g)
	defer stream.close()
	send := func(data any) error {
		if err := stream.event("", "", data); err != nil {
			return err
		}
		return stream.flush()
	}
	var last *sandbox.Step // is sent with the execution as its result
	for step := range steps {
		if last != nil && send(last) != nil {
			cancel() // the client does not read: end the execution, and drop the queued steps
		}
		last = &step
	}
	end := <-ended
	if lost := access.LostKey(ctx); lost != nil { // that is why the execution was cancelled
		end.err = lost
	}
	if end.err != nil {
		if !stream.begun {
			a.fail(g, end.err)
			return
		}
		p, _ := toProblem(end.err, infoFrom(ctx).id)
		a.logInternal(ctx, p, end.err)
		_ = send(p) // fails if the client has left
	} else {
		if last != nil && last.LineNumber == 0 { // a gap, whose result is its reason
			_ = send(last)
		}
		if last == nil { // no line ran: a syntax error, or no code
			last = &sandbox.Step{State: sandbox.StepState{Variables: map[string]string{}, Changed: []string{}},
				Timestamp: time.Now().UTC()}
			if end.execution.Exception != nil {
				last.LineNumber = end.execution.Exception.Line
			}
		}
		last.Result, _ = json.Marshal(end.execution.Answer())
		_ = send(last)
	}
	_ = stream.text("data: [DONE]")
	_ = stream.flush()
}
