package jupyter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service"
	"glasshouse/service/compat"
)

// interruptTimeout is how long code may take to end after an interrupt. Then its process is killed, and the variables
// are lost.
const interruptTimeout = 5 * time.Second

// executeIn is the content of an execute_request.
type executeIn struct {
	Code        string
	Silent      bool                       // show no input and no value, and count no execution
	StopOnError *bool                      `json:"stop_on_error"` // abort the requests that wait; default true
	Expressions map[string]json.RawMessage `json:"user_expressions"`
}

// execute runs the code of a request.
func (k *kernel) execute(c *client, m *message, number int) {
	k.setState("busy", m.Header)
	hasDied := false
	defer func() {
		k.setState("idle", m.Header)
		if hasDied {
			k.hasRestarted()
		}
	}()
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	k.mu.Lock()
	isAborted := number <= k.aborted
	if !isAborted {
		k.running, k.interrupt = c, cancel
	}
	k.mu.Unlock()
	if isAborted {
		k.reply(c, m, "execute_reply", object{"status": "aborted"})
		return
	}
	var in executeIn
	err := json.Unmarshal(m.Content, &in)
	if err != nil {
		err = errContent(err)
	} else if _, err = k.server.Service.Authenticate(ctx, c.secret); err == nil { // the client may have left
		k.announce(m, in)
		err = k.run(ctx, c, m, in)
	}
	k.mu.Lock()
	k.running, k.interrupt = nil, nil
	executions := k.executions
	if err != nil && (in.StopOnError == nil || *in.StopOnError) {
		k.aborted = k.received
	}
	k.mu.Unlock()
	content := object{"status": "ok", "payload": []string{}, "user_expressions": refusedExpressions(in.Expressions)}
	if err != nil {
		failed := k.failure(err)
		k.broadcast("error", m.Header, failed)
		content = failed.content()
		ended, ok := errors.AsType[*codeError](err)
		hasDied = ok && ended.execution.SessionReset
	}
	content["execution_count"] = executions
	k.reply(c, m, "execute_reply", content)
}

// announce tells the clients which code runs.
func (k *kernel) announce(m *message, in executeIn) {
	if in.Silent {
		return
	}
	k.mu.Lock()
	k.executions++
	executions := k.executions
	k.mu.Unlock()
	k.broadcast("execute_input", m.Header, object{"code": in.Code, "execution_count": executions})
}

// run runs code and broadcasts what it prints and shows. Failed code is an error.
func (k *kernel) run(ctx context.Context, c *client, m *message, in executeIn) error {
	log, err := k.server.Service.Start(ctx, c.caller, k.sandboxID, service.Job{
		Code: in.Code, Kind: sandbox.KindJupyter, CancelTimeout: interruptTimeout,
	}, nil)
	if err != nil {
		return err
	}
	execution, _ := log.Execution()
	stop := context.AfterFunc(ctx, func() { // an error says that the execution has ended
		_ = k.server.Service.Cancel(k.ctx, c.caller, execution.ID)
	})
	defer stop()
	for last := int64(0); ; last++ {
		event, err := log.Next(context.Background(), last)
		if err != nil { // after done there is io.EOF, which is not reached
			return err
		}
		switch data := event.Data.(type) {
		case service.Text:
			k.print(m, event.Name, data.Text)
		case sandbox.Output:
			k.show(ctx, c, m, data, in.Silent)
		case *sandbox.Execution:
			return k.end(m, data)
		}
	}
}

func (k *kernel) print(m *message, stream, text string) {
	if text != "" {
		k.broadcast("stream", m.Header, object{"name": stream, "text": text})
	}
}

// show broadcasts a rich output.
func (k *kernel) show(ctx context.Context, c *client, m *message, o sandbox.Output, isSilent bool) {
	whole, err := k.server.Service.WholeOutput(context.WithoutCancel(ctx), c.caller, o)
	if err != nil {
		k.server.Log.WithError(err).Warn("a part of an output of a kernel cannot be read")
		k.print(m, "stderr", "[a part of this output could not be read; the log of the service says why]\n")
	}
	content := object{"data": whole.Data, "metadata": object{}, "transient": object{}}
	if len(o.Metadata) > 0 {
		content["metadata"] = o.Metadata
	}
	kind := "display_data"
	if o.Role == sandbox.RoleResult {
		if isSilent {
			return
		}
		kind = "execute_result"
		k.mu.Lock()
		content["execution_count"] = k.executions
		k.mu.Unlock()
	}
	k.broadcast(kind, m.Header, content)
}

// end broadcasts what is missing in the output of an execution that has ended, and returns its error.
func (k *kernel) end(m *message, e *sandbox.Execution) error {
	for _, stream := range []string{"stdout", "stderr"} {
		if missing := e.Truncated[stream]; missing > 0 {
			const note = "\n[... %d more bytes exceed max_output_size; execution %s has the end ...]\n"
			k.print(m, stream, fmt.Sprintf(note, missing, e.ID))
		}
	}
	if missing := e.Truncated["outputs"]; missing > 0 {
		k.print(m, "stderr", fmt.Sprintf("[%d more outputs were left out: too many, or too large]\n", missing))
	}
	if e.Status == sandbox.StatusCompleted {
		return nil
	}
	return &codeError{e}
}

// codeError is the error of code that failed or was ended.
type codeError struct{ execution *sandbox.Execution }

func (e *codeError) Error() string { return string(e.execution.Status) }

// failure is an error as clients see it.
type failure struct {
	Name      string   `json:"ename"`
	Value     string   `json:"evalue"`
	Traceback []string `json:"traceback"`
}

// content returns the content of a reply with this error.
func (f failure) content() object {
	return object{"status": "error", "ename": f.Name, "evalue": f.Value, "traceback": f.Traceback}
}

// failure returns an error of the code, or of the service.
func (k *kernel) failure(err error) failure {
	failed, ok := errors.AsType[*codeError](err)
	switch {
	case !ok:
		name, text := "SandboxError", "the service failed; its log has the error"
		if known, ok := errors.AsType[*sandbox.Error](err); ok {
			text = known.Error()
		} else if errors.Is(err, context.Canceled) {
			name, text = "KeyboardInterrupt", "the kernel was interrupted before the code began"
		} else {
			k.server.Log.WithError(err).Error("a request to a kernel failed")
		}
		return failure{name, text, []string{name + ": " + text}}
	case failed.execution.Status == sandbox.StatusFailed && failed.execution.Exception != nil:
		x := failed.execution.Exception
		lines := strings.Split(strings.TrimSuffix(compat.Traceback(x), "\n"), "\n")
		if x.Hint != "" {
			lines = append(lines, "Hint: "+x.Hint)
		}
		return failure{x.Type, x.Message, lines}
	}
	name := cmp.Or(endNames[failed.execution.Status], "SandboxError")
	text := *failed.execution.Error
	if failed.execution.SessionReset {
		text += "; the variables are lost, the files in /session stay"
	}
	return failure{name, text, []string{name + ": " + text}}
}

// endNames has the names of the errors of code that was ended.
var endNames = map[sandbox.Status]string{
	sandbox.StatusTimeout: "TimeoutError", sandbox.StatusCancelled: "KeyboardInterrupt",
	sandbox.StatusKilled: "KernelDied",
}

// refusedExpressions returns the answers to expressions that a client wants to have evaluated after its code.
func refusedExpressions(expressions map[string]json.RawMessage) object {
	refused := object{}
	for name := range expressions {
		const text = "user_expressions are not supported; send the expression as code"
		refused[name] = failure{"SandboxError", text, []string{"SandboxError: " + text}}.content()
	}
	return refused
}
