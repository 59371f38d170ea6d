package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"glasshouse/sandbox"
	"glasshouse/service"
)

// Accepts says in which form a caller wants an execution.
type Accepts struct {
	Accept string `header:"Accept" doc:"text/event-stream: what the run does as it does it"`
	Prefer string `header:"Prefer" doc:"respond-async: 202 and where to look; with wait=SECONDS, only if it takes longer"`
}

func (h Accepts) events() bool { return strings.Contains(h.Accept, "text/event-stream") }

func (h Accepts) plain() bool { return !h.events() && !strings.Contains(h.Prefer, "respond-async") }

// patience is how long the caller waits before it wants an answer without the end.
func (h Accepts) patience() time.Duration {
	for part := range strings.FieldsFuncSeq(h.Prefer, func(r rune) bool { return r == ',' || r == ';' || r == ' ' }) {
		if text, ok := strings.CutPrefix(part, "wait="); ok {
			if n, err := strconv.Atoi(text); err == nil {
				return time.Duration(min(max(n, 0), maxWait)) * time.Second
			}
		}
	}
	return 0
}

const (
	maxWait   = 300                   // seconds that an answer may wait for an end
	pace      = 20 * time.Millisecond // between pieces of text, so that many small ones come as one
	heartbeat = 15 * time.Second      // of a stream that has nothing to tell, so that no proxy cuts it
)

type followInput struct {
	ID   string `path:"id"`
	Wait int    `query:"wait" minimum:"0" maximum:"300" doc:"Seconds to wait for its end, if it is still running"`
	Accepts
	LastEventID string `header:"Last-Event-ID" doc:"With text/event-stream: go on after this event"`
}

// runAnswer is an execution in the form that was asked for.
type runAnswer struct{ Body func(huma.Context) }

// accepted is the answer to a run that goes on without its caller.
type accepted struct {
	ExecutionID string         `json:"execution_id"`
	SandboxID   string         `json:"sandbox_id"`
	Status      sandbox.Status `json:"status"`
	Location    string         `json:"location" doc:"GET it: as it is, with ?wait=SECONDS when it has ended, or with Accept: text/event-stream as it goes on"`
}

// runRoute registers an operation that answers an execution in any of its forms.
func runRoute[I any](a *api, at place, method, path, summary string, handle func(context.Context, sandbox.Key, *I) (*runAnswer, error)) {
	schemas := at.api.OpenAPI().Components.Schemas
	content := func(kind string, t reflect.Type) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{kind: {Schema: schemas.Schema(t, true, "")}}
	}
	responses := map[string]*huma.Response{"200": {
		Description: "The execution; or, as events with ids: started, then stdout, stderr, debug, output, query as they come, result, and done with the whole execution",
		Content:     content("application/json", reflect.TypeFor[sandbox.Execution]()),
	}}
	responses["200"].Content["text/event-stream"] = &huma.MediaType{Schema: &huma.Schema{Type: "string"}}
	if method == http.MethodPost {
		responses["202"] = &huma.Response{Description: "It runs; Location says where to look", Content: content("application/json", reflect.TypeFor[accepted]())}
	}
	operation := huma.Operation{Method: method, Path: at.prefix + path, Summary: summary, OperationID: method + at.prefix + path, MaxBodyBytes: maxBody, Responses: responses}
	huma.Register(at.api, operation, func(ctx context.Context, in *I) (*runAnswer, error) {
		out, err := handle(ctx, callerFrom(ctx), in)
		if err != nil {
			return nil, a.refuse(ctx, err)
		}
		return out, nil
	})
}

// inJSON answers with v.
func inJSON(status int, v any) *runAnswer {
	return &runAnswer{func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", "application/json")
		ctx.SetStatus(status)
		enc := json.NewEncoder(ctx.BodyWriter())
		enc.SetEscapeHTML(false)
		_ = enc.Encode(v) // the client may have gone
	}}
}

func whole(e *sandbox.Execution, err error) (*runAnswer, error) {
	if err != nil {
		return nil, err
	}
	return inJSON(http.StatusOK, e), nil
}

// begun answers for a run that goes on by itself.
func (a *api) begun(ctx context.Context, at place, how Accepts, f *service.EventLog, err error) (*runAnswer, error) {
	if err != nil {
		return nil, err
	}
	e, _ := f.Execution()
	location := at.prefix + "/executions/" + e.ID
	if how.events() {
		return &runAnswer{func(ctx huma.Context) {
			ctx.SetHeader("Location", location)
			a.stream(ctx, f, 0)
		}}, nil
	}
	if wait := how.patience(); wait > 0 {
		select {
		case <-f.Over():
			e, _ := f.Execution()
			return whole(e, f.Err())
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	answer := inJSON(http.StatusAccepted, accepted{e.ID, e.SandboxID, sandbox.StatusRunning, location})
	return &runAnswer{func(ctx huma.Context) {
		ctx.SetHeader("Location", location)
		ctx.SetHeader("Preference-Applied", "respond-async")
		answer.Body(ctx)
	}}, nil
}

// follow streams an execution that was begun before.
func (a *api) follow(ctx context.Context, caller sandbox.Key, in *followInput) (*runAnswer, error) {
	after := int64(0)
	if in.LastEventID != "" {
		var err error
		if after, err = strconv.ParseInt(in.LastEventID, 10, 64); err != nil {
			return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "Last-Event-ID", Detail: "no event of this execution has this id"}
		}
	}
	f, after, err := a.service.Follow(ctx, caller, in.ID, after)
	if err == nil {
		err = f.Check(after)
	}
	switch {
	case errors.Is(err, io.EOF): // all has been had: an EventSource comes no more after this
		return &runAnswer{func(ctx huma.Context) { ctx.SetStatus(http.StatusNoContent) }}, nil
	case err != nil:
		return nil, err
	}
	return &runAnswer{func(ctx huma.Context) { a.stream(ctx, f, after) }}, nil
}

// stream writes the events after the one with this id until there are no more, or
// the client does not read; neither holds up the run.
func (a *api) stream(to huma.Context, f *service.EventLog, after int64) {
	g := humagin.Unwrap(to)
	out := http.NewResponseController(g.Writer)
	// The connection may serve other requests afterwards.
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }()
	write := func(text []byte) bool {
		if out.SetWriteDeadline(time.Now().Add(patience)) != nil {
			return false
		}
		_, err := g.Writer.Write(text)
		return err == nil && out.Flush() == nil
	}
	to.SetHeader("Content-Type", "text/event-stream")
	to.SetHeader("Cache-Control", "no-cache")
	to.SetHeader("X-Accel-Buffering", "no") // what nginx must not do
	to.SetStatus(http.StatusOK)
	if !write([]byte("retry: 1000\n\n")) {
		return
	}
	gone := g.Request.Context()
	for {
		ctx, cancel := context.WithTimeout(gone, heartbeat)
		event, err := f.Next(ctx, after)
		cancel()
		switch {
		case err == nil:
			if !write(encode(event)) {
				return
			}
			after = event.ID
		case gone.Err() != nil || errors.Is(err, io.EOF):
			return
		case errors.Is(err, context.DeadlineExceeded):
			if !write([]byte(": it still runs\n\n")) {
				return
			}
		default: // the service's own, in the middle of the stream
			a.log.WithError(err).WithField("request_id", g.GetString(requestIDKey)).Error("a stream failed")
			p, _ := toProblem(err, g.GetString(requestIDKey))
			write(encode(service.Event{ID: after, Name: "error", Data: p}))
			return
		}
		if event.Name == "stdout" || event.Name == "stderr" {
			select {
			case <-time.After(pace):
			case <-f.Over():
			case <-gone.Done():
				return
			}
		}
	}
}

// encode is an event as text/event-stream has it; its data is one line of JSON.
func encode(e service.Event) []byte {
	data, err := json.Marshal(e.Data)
	if err != nil {
		data = []byte("null")
	}
	b := strconv.AppendInt([]byte("id: "), e.ID, 10)
	b = append(append(b, "\nevent: "...), e.Name...)
	b = append(append(b, "\ndata: "...), data...)
	return append(b, "\n\n"...)
}
