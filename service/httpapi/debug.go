package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/sandbox"
	"glasshouse/service"
)

// stepStream queues the steps of a run for its client. At most maxQueued wait: a
// client that reads slower holds the program up.
type stepStream struct {
	ctx   context.Context
	steps chan sandbox.Step
}

const maxQueued = 1024

// Step hands one step over; it waits for a slow client, until that has gone: false.
func (s *stepStream) Step(step sandbox.Step) bool {
	select {
	case s.steps <- step:
	case <-s.ctx.Done():
	}
	return s.ctx.Err() == nil
}

func (a *api) debug(router *gin.Engine, at place) {
	schemas := at.api.OpenAPI().Components.Schemas
	at.api.OpenAPI().AddOperation(&huma.Operation{
		Method: "POST", Path: at.prefix + "/sandbox/{id}/debug", OperationID: "POST" + at.prefix + "/sandbox/{id}/debug", Summary: "Run code and stream each line that ran; needs a developer's or an admin's key",
		Parameters:  []*huma.Param{{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: "string"}}},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(reflect.TypeFor[CodeBody](), true, "")}}},
		Responses: map[string]*huma.Response{"200": {Description: "One data line a step, the last with the whole execution as its result, then data: [DONE]",
			Content: map[string]*huma.MediaType{"text/event-stream": {Schema: schemas.Schema(reflect.TypeFor[sandbox.Step](), true, "")}}}},
	})
	router.POST(at.prefix+"/sandbox/:id/debug", func(g *gin.Context) {
		caller := callerFrom(g.Request.Context())
		raw, err := io.ReadAll(g.Request.Body)
		if err != nil {
			a.problem(g, sandbox.Errorf(sandbox.FaultTooLarge, "the body has more than %d bytes", maxBody))
			return
		}
		var body struct {
			Code        *string `json:"code"`
			Context     object  `json:"context"`
			Breakpoints []any   `json:"breakpoints"`
		}
		if err := decodeStrict(raw, &body); err != nil {
			a.problem(g, err)
			return
		}
		if body.Code == nil {
			a.problem(g, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "code", Detail: "expected required property code to be present"})
			return
		}
		ctx, cancel := context.WithCancel(g.Request.Context())
		defer cancel()
		stream := &stepStream{ctx: ctx, steps: make(chan sandbox.Step, maxQueued)}
		type end struct {
			e   *sandbox.Execution
			err error
		}
		ended := make(chan end, 1)
		go func() {
			e, err := a.service.Execute(ctx, caller, g.Param("id"), service.Job{Code: *body.Code, Context: json.RawMessage(body.Context), Kind: sandbox.KindDebug, Steps: stream.Step})
			close(stream.steps)
			ended <- end{e, err}
		}()
		var last *sandbox.Step // held back: the last one carries the execution
		for step := range stream.steps {
			if last != nil && event(g, last) != nil {
				cancel() // nobody reads: what is queued is let go, and the run ends
			}
			last = &step
		}
		done := <-ended
		if done.err != nil {
			if !g.Writer.Written() {
				a.problem(g, done.err)
				return
			}
			p, _ := toProblem(done.err, g.GetString(requestIDKey))
			_ = event(g, p) // the client may have gone
		} else {
			if last == nil { // no line ran: a syntax error, or no code
				last = &sandbox.Step{State: sandbox.StepState{Variables: map[string]string{}, Changed: []string{}}, Timestamp: time.Now().UTC()}
				if done.e.Exception != nil {
					last.LineNumber = done.e.Exception.Line
				}
			}
			last.Result, _ = json.Marshal(done.e)
			_ = event(g, last)
		}
		_, _ = io.WriteString(g.Writer, "data: [DONE]\n\n")
		g.Writer.Flush()
	})
}

// patience is how long a client may take to read one event. Without it, one that
// stops reading would hold its run, and one place among all runs, for ever.
const patience = 5 * time.Second

// event writes one event; the error says that the client does not read.
func event(g *gin.Context, v any) error {
	if !g.Writer.Written() {
		g.Header("Content-Type", "text/event-stream")
		g.Header("Cache-Control", "no-cache")
		g.Status(http.StatusOK)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	out := http.NewResponseController(g.Writer)
	if err := out.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := g.Writer.Write(append(append([]byte("data: "), text...), "\n\n"...)); err != nil {
		return err
	}
	return out.Flush()
}
