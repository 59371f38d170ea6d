// Package code serves the port of E2B's sandboxes that runs code: POST /execute, and the contexts in which it runs.
package code

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/run"
)

// interruptTimeout is how long the code of a client that has left may take to end, before it loses its variables.
const interruptTimeout = 3 * time.Second

// Runner runs code in the contexts of sandboxes.
type Runner struct {
	compat.Config
	contexts *compat.Live[*contexts]
}

// New returns a Runner.
func New(c compat.Config) *Runner {
	return &Runner{Config: c, contexts: compat.NewLive[*contexts](c.Live)}
}

// SetEnviron sets the environment variables of all code in a sandbox that has run none.
func (r *Runner) SetEnviron(id string, environ map[string]string) {
	r.contexts.Put(id, newContexts(id, environ))
}

// Fork gives a sandbox that was forked the contexts and the environment variables of another one.
func (r *Runner) Fork(from, to string) { r.contexts.Put(to, r.contextsOf(from).copyFor(to)) }

// contextsOf returns the contexts of a live sandbox. One that another API created gets its default context.
func (r *Runner) contextsOf(id string) *contexts {
	return r.contexts.GetOrPut(id, newContexts(id, nil))
}

// Routes returns the handlers of the port.
func (r *Runner) Routes() map[string]compat.SandboxHandler {
	return map[string]compat.SandboxHandler{
		"POST /execute":               r.execute,
		"POST /contexts":              r.createContext,
		"GET /contexts":               r.listContexts,
		"DELETE /contexts/{id}":       r.removeContext,
		"POST /contexts/{id}/restart": r.restartContext,
	}
}

// CheckEnviron returns FaultMalformed for names and values that no process can have, and FaultInvalid if the variables
// of a field of a request have too many bytes.
func CheckEnviron(field string, variables map[string]string) error {
	for name, value := range variables {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return sandbox.Errorf(sandbox.FaultMalformed, "%.100q cannot be an environment variable: a name is not "+
				"empty and has no =, and neither name nor value has a null character", name)
		}
	}
	return sandbox.CheckMapSize(field, sandbox.MaxVariablesBytes, variables)
}

// request is the body of POST /execute.
type request struct {
	Code     string            `json:"code"`
	Context  string            `json:"context_id"`
	Language string            `json:"language"`
	Environ  map[string]string `json:"env_vars"`
}

func (in request) check() error {
	if err := sandbox.CheckNames(map[string]string{"context_id": in.Context, "language": in.Language}); err != nil {
		return err
	}
	if in.Context != "" && in.Language != "" {
		return sandbox.Errorf(sandbox.FaultMalformed, "give one of context_id and language, not both")
	}
	if err := checkLanguage(in.Language); err != nil {
		return err
	}
	return CheckEnviron("env_vars", in.Environ)
}

// execute runs code, and answers with a line of JSON for each output while the code runs. A run begins when the
// sandbox's earlier ones have ended. A client that leaves, as at its timeout, cancels its run.
func (r *Runner) execute(w http.ResponseWriter, req *http.Request, caller sandbox.Key, id string) error {
	var in request
	err := r.ReadJSON(w, req, &in)
	if err == nil {
		err = in.check()
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	var log *run.EventLog
	var number int
	err = r.WhenIdle(ctx, id, func() error {
		scope, done, err := r.contextsOf(id).scope(in.Context, in.Environ)
		if err != nil {
			return err
		}
		run := sandbox.Request{Code: in.Code, Kind: sandbox.KindE2B, Scope: scope, CancelTimeout: interruptTimeout}
		log, err = r.Runs.Start(ctx, caller, id, run, nil)
		number = done(err == nil)
		return err
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	s := &stream{out: json.NewEncoder(w), flush: http.NewResponseController(w).Flush, leave: cancel}
	s.out.SetEscapeHTML(false)
	s.line(map[string]any{"type": "number_of_executions", "execution_count": number})
	e, err := r.Follow(ctx, caller, log, compat.Output{
		Print: s.print, Show: s.show, KeepAlive: func() { s.line(map[string]any{"type": "keepalive"}) },
	})
	switch lost := compat.LostKey(req.Context(), nil); {
	case lost != nil:
		s.fail(compat.Failure{Name: "AuthenticationException", Message: lost.Error()})
	case err != nil: // of the service: the client gets it as an error of the run
		_, text := r.Message(w, req, err)
		s.fail(compat.Failure{Name: "SandboxException", Message: text})
	case e.Status != sandbox.StatusCompleted:
		s.fail(compat.FailureOf(e, endNames))
	}
	s.line(map[string]any{"type": "end_of_execution"})
	return nil
}

// stream writes the answer to a run as lines.
type stream struct {
	out    *json.Encoder
	flush  func() error
	leave  func() // is called if the client has left
	broken bool
}

func (s *stream) line(v any) {
	if s.broken {
		return
	}
	err := s.out.Encode(v)
	if err == nil {
		err = s.flush()
	}
	if err != nil {
		s.broken = true
		s.leave()
	}
}

func (s *stream) print(name, text string) {
	s.line(map[string]any{"type": name, "text": text, "timestamp": time.Now().UTC().Format(time.RFC3339Nano)})
}

// formats are the parts of a result by the MIME types of an output.
var formats = map[string]string{
	"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg", "image/png": "png",
	"image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex", "application/json": "json",
	"application/javascript": "javascript",
}

// show writes an output. Clients expect the bare text of a string.
func (s *stream) show(o sandbox.Output) {
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

// endNames has the names of the errors of code that was ended.
var endNames = map[sandbox.Status]string{
	sandbox.StatusTimeout: "ExecutionTimeout", sandbox.StatusCancelled: "KeyboardInterrupt",
	sandbox.StatusKilled: "UnexpectedEndOfExecution",
}

func (s *stream) fail(f compat.Failure) {
	s.line(map[string]any{"type": "error", "name": f.Name, "value": f.Message, "traceback": f.Traceback})
}
