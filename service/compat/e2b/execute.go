package e2b

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service"
	"glasshouse/service/compat"
)

// keepaliveInterval is the time between two lines without content, by which a client that has vanished is noticed.
const keepaliveInterval = 5 * time.Second

// interruptTimeout is how long the code of a client that has left may take to end, before it loses its variables.
const interruptTimeout = 3 * time.Second

// code returns the handler of the port that runs code.
func (a *api) code() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /health", a.withSandbox(func(w http.ResponseWriter, _ *http.Request, _ sandbox.Key, _ *box) {
		compat.WriteJSON(w, http.StatusOK, "OK")
	}))
	mux.Handle("POST /execute", a.withSandbox(a.execute))
	mux.Handle("POST /contexts", a.withSandbox(a.createContext))
	mux.Handle("GET /contexts", a.withSandbox(a.listContexts))
	mux.Handle("DELETE /contexts/{id}", a.withSandbox(a.removeContext))
	mux.Handle("POST /contexts/{id}/restart", a.withSandbox(a.restartContext))
	return mux
}

// executeRequest is the body of POST /execute.
type executeRequest struct {
	Code     string            `json:"code"`
	Context  string            `json:"context_id"`
	Language string            `json:"language"`
	Environ  map[string]string `json:"env_vars"`
}

// execute runs code, and answers with a line of JSON for each output while the code runs. A run begins when the
// sandbox's earlier ones have ended. A client that leaves, as at its timeout, cancels its run.
func (a *api) execute(w http.ResponseWriter, r *http.Request, caller sandbox.Key, b *box) {
	var in executeRequest
	err := a.readJSON(w, r, &in)
	if err == nil && in.Context != "" && in.Language != "" {
		err = errTwoContexts
	}
	for _, check := range []func() error{
		func() error { return checkLanguage(in.Language) }, func() error { return checkEnviron(in.Environ) },
	} {
		if err == nil {
			err = check()
		}
	}
	if err != nil {
		a.failContext(w, r, err)
		return
	}
	log, number, err := a.start(r.Context(), caller, b, in)
	switch fault := sandbox.FaultOf(err); {
	case err == nil:
	case fault == sandbox.FaultGone: // while it waited
		a.failSandbox(w, r, err)
		return
	default:
		a.failContext(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	s := &stream{api: a, caller: caller, out: json.NewEncoder(w), flush: http.NewResponseController(w).Flush}
	s.out.SetEscapeHTML(false)
	s.line(map[string]any{"type": "number_of_executions", "execution_count": number})
	if err := s.follow(r.Context(), log); err != nil {
		e, _ := log.Execution()
		_ = a.Service.Cancel(context.WithoutCancel(r.Context()), caller, e.ID) // it may have ended meanwhile
		if lost := lostKey(r.Context(), nil); lost != nil {
			s.fail("AuthenticationException", lost.Error(), "")
		}
	}
	s.line(map[string]any{"type": "end_of_execution"})
}

// start starts a run when the sandbox is idle. It returns the number of the run in its context.
func (a *api) start(
	ctx context.Context, caller sandbox.Key, b *box, in executeRequest,
) (log *service.EventLog, number int, err error) {
	for {
		scope, done, err := b.scope(in.Context, in.Environ)
		if err != nil {
			return nil, 0, err
		}
		job := service.Job{Code: in.Code, Kind: sandbox.KindE2B, Scope: scope, CancelTimeout: interruptTimeout}
		log, err := a.Service.Start(ctx, caller, b.id, job, nil)
		if number := done(err == nil); err == nil {
			return log, number, nil
		}
		if sandbox.FaultOf(err) != sandbox.FaultBusy {
			return nil, 0, err
		}
		a.Service.AwaitIdle(ctx, b.id)
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
	}
}

// stream writes the events of a run as lines.
type stream struct {
	api    *api
	caller sandbox.Key
	out    *json.Encoder
	flush  func() error
	broken error // the client has left
}

func (s *stream) line(v any) {
	if s.broken == nil {
		s.broken = s.out.Encode(v)
	}
	if s.broken == nil {
		s.broken = s.flush()
	}
}

// follow writes the events of a run until it ends. It returns an error if the client has left or may not go on.
func (s *stream) follow(ctx context.Context, log *service.EventLog) error {
	for after := int64(0); ; {
		wait, cancel := context.WithTimeout(ctx, keepaliveInterval)
		event, err := log.Next(wait, after)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			s.line(map[string]any{"type": "keepalive"})
		case errors.Is(err, io.EOF):
			return s.broken
		case err != nil: // of the service: the client gets it as an error of the run
			_, text := s.api.Message(discard{}, (&http.Request{}).WithContext(ctx), err)
			s.fail("SandboxException", text, "")
			return nil
		default:
			after = event.ID
			s.event(ctx, event)
		}
		if s.broken != nil {
			return s.broken
		}
	}
}

func (s *stream) event(ctx context.Context, event service.Event) {
	switch data := event.Data.(type) {
	case service.Text:
		s.text(event.Name, data.Text)
		if data.Truncated {
			s.text(event.Name, "\n[the rest of this output is left out: it exceeds max_output_size]\n")
		}
	case sandbox.Output:
		whole, err := s.api.Service.WholeOutput(ctx, s.caller, data)
		if err != nil {
			s.api.Log.WithError(err).Warn("a part of an output could not be read")
		}
		s.result(whole)
	case service.Result:
		s.end(data)
	}
}

func (s *stream) text(stream, text string) {
	if text != "" {
		s.line(map[string]any{"type": stream, "text": text, "timestamp": time.Now().UTC().Format(time.RFC3339Nano)})
	}
}

// formats are the parts of a result by the MIME types of an output.
var formats = map[string]string{
	"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg", "image/png": "png",
	"image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex", "application/json": "json",
	"application/javascript": "javascript",
}

// result writes an output. Clients expect the bare text of a string.
func (s *stream) result(o sandbox.Output) {
	line := map[string]any{"type": "result", "is_main_result": o.Role == sandbox.RoleResult}
	extra := map[string]any{}
	for kind, part := range o.Data {
		if name, ok := formats[kind]; ok {
			line[name] = part
		} else {
			extra[kind] = part
		}
	}
	var text string
	if json.Unmarshal(o.Data["text/plain"], &text) == nil {
		line["text"] = unquote(text)
	}
	if len(extra) > 0 {
		line["extra"] = extra
	}
	s.line(line)
}

// unquote removes the quotes around the repr of a string, as E2B's server does.
func unquote(text string) string {
	if n := len(text); n >= 2 && (text[0] == '\'' || text[0] == '"') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return text
}

// end writes the error of a run.
func (s *stream) end(r service.Result) {
	switch {
	case r.Status == sandbox.StatusCompleted:
	case r.Exception != nil && r.Status == sandbox.StatusFailed:
		s.fail(r.Exception.Type, r.Exception.Message, compat.Traceback(r.Exception))
	default:
		text := string(r.Status)
		if r.Error != nil {
			text = *r.Error
		}
		name := map[sandbox.Status]string{
			sandbox.StatusTimeout: "ExecutionTimeout", sandbox.StatusCancelled: "KeyboardInterrupt",
			sandbox.StatusKilled: "UnexpectedEndOfExecution",
		}[r.Status]
		s.fail(cmp.Or(name, "SandboxException"), text, strings.TrimSpace(text)+"\n")
	}
}

func (s *stream) fail(name, value, traceback string) {
	s.line(map[string]any{"type": "error", "name": name, "value": value, "traceback": traceback})
}

// discard is a ResponseWriter for an answer whose header is already sent.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
