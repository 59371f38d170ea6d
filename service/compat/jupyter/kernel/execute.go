package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/compat/jupyter/socket"
	"glasshouse/service/compat/jupyter/wire"
)

// interruptTimeout is how long code may take to end after its last interrupt. Then its process is killed, and the
// variables are lost.
const interruptTimeout = 5 * time.Second

// executeIn is the content of an execute_request.
type executeIn struct {
	Code        string
	Silent      bool                       // show no input and no value, and count no execution
	IsStored    *bool                      `json:"store_history"` // false: count no execution; default true
	StopOnError *bool                      `json:"stop_on_error"` // abort the requests that wait; default true
	Expressions map[string]json.RawMessage `json:"user_expressions"`
}

// maxExpressions bounds user_expressions: the answer has an error for each.
const maxExpressions = 100

// check returns FaultInvalid for too many expressions, or too long names.
func (in *executeIn) check() error {
	if len(in.Expressions) > maxExpressions {
		return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "user_expressions",
			Detail: fmt.Sprintf("it has %d expressions, and may have %d; send them as code", len(in.Expressions),
				maxExpressions)}
	}
	for name := range in.Expressions {
		if err := sandbox.CheckSize("user_expressions", sandbox.MaxNameBytes, len(name)); err != nil {
			return err
		}
	}
	return nil
}

// execute runs the code of a request.
func (k *Kernel) execute(c *socket.Client, m *wire.Message, number int) {
	k.setState("busy", m.Header)
	hasDied := false
	defer func() {
		k.setState("idle", m.Header)
		if hasDied {
			k.hasRestarted("restarting")
		}
	}()
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	interrupts := make(chan struct{}, 1)
	k.mu.Lock()
	isAborted := number <= k.aborted
	if !isAborted {
		k.running = c
		k.interrupt = func() {
			if ctx.Err() == nil {
				cancel()
				return
			}
			select {
			case interrupts <- struct{}{}:
			default: // one waits
			}
		}
	}
	k.mu.Unlock()
	if isAborted {
		k.reply(c, m, wire.Object{"status": "aborted"})
		return
	}
	var in executeIn
	err := m.DecodeContent(&in)
	if err == nil {
		err = in.check()
	}
	if err == nil { // the client may have left
		_, err = k.config.Access.Authenticate(ctx, c.Secret)
	}
	if err == nil {
		err = k.run(ctx, c, m, in, interrupts)
	}
	k.mu.Lock()
	k.running, k.interrupt = nil, nil
	executions := k.executions
	if err != nil && (in.StopOnError == nil || *in.StopOnError) {
		k.aborted = k.received
	}
	k.mu.Unlock()
	var content wire.Object
	if err == nil {
		content = wire.Object{
			"status": "ok", "payload": []string{}, "user_expressions": refusedExpressions(in.Expressions),
		}
	} else {
		failed := k.failure(err)
		k.broadcast("error", m.Header, failed)
		content = errorContent(failed)
		ended, ok := errors.AsType[*codeError](err)
		hasDied = ok && ended.execution.SessionReset
	}
	content["execution_count"] = executions
	k.reply(c, m, content)
}

// run runs code and broadcasts what it prints and shows. The end of ctx interrupts the code, and each value of
// interrupts does so again. Failed code is a codeError.
func (k *Kernel) run(
	ctx context.Context, c *socket.Client, m *wire.Message, in executeIn, interrupts <-chan struct{},
) error {
	k.mu.Lock()
	executions := k.executions + 1 // also that of the next, if this one does not count
	if !in.Silent && (in.IsStored == nil || *in.IsStored) {
		k.executions = executions
	}
	k.mu.Unlock()
	if !in.Silent {
		k.broadcast("execute_input", m.Header, wire.Object{"code": in.Code, "execution_count": executions})
	}
	log, err := k.config.Runs.Start(ctx, c.Caller, k.SandboxID, sandbox.Request{
		Code: in.Code, Kind: sandbox.KindJupyter, CancelTimeout: interruptTimeout,
		Interrupts: interrupts,
	}, nil)
	if err != nil {
		return err
	}
	begun, _ := log.Execution()
	k.headers.add(begun.ID, m.Header)
	e, err := k.config.Follow(ctx, c.Caller, log, compat.Output{
		Print: func(stream, text string) {
			k.broadcast("stream", m.Header, wire.Object{"name": stream, "text": text})
		},
		PrintLate: func(executionID, stream, text string) {
			k.broadcast("stream", k.headers.of(executionID, m.Header), wire.Object{"name": stream, "text": text})
		},
		Show: func(o sandbox.Output) {
			content := wire.Object{"data": o.Data, "metadata": o.Metadata, "transient": wire.Object{}}
			if len(o.Metadata) == 0 {
				content["metadata"] = wire.Object{}
			}
			if o.DisplayID != "" {
				content["transient"] = wire.Object{"display_id": o.DisplayID}
			}
			switch {
			case o.IsUpdate:
				k.broadcast("update_display_data", m.Header, content)
			case o.Role != sandbox.RoleResult:
				k.broadcast("display_data", m.Header, content)
			case !in.Silent:
				content["execution_count"] = executions
				k.broadcast("execute_result", m.Header, content)
			}
		},
	})
	if err == nil && e.Status != sandbox.StatusCompleted {
		err = &codeError{e}
	}
	return err
}

// codeError is the error of code that failed or was ended.
type codeError struct{ execution *sandbox.Execution }

func (e *codeError) Error() string { return string(e.execution.Status) }

// endNames has the names of the errors of code that was ended.
var endNames = map[sandbox.Status]string{
	sandbox.StatusTimeout: "TimeoutError", sandbox.StatusCancelled: "KeyboardInterrupt",
	sandbox.StatusKilled: "KernelDied",
}

// failure returns the content of the message about an error of the code, or of the service.
func (k *Kernel) failure(err error) wire.Object {
	if failed, ok := errors.AsType[*codeError](err); ok {
		f := compat.FailureOf(failed.execution, endNames)
		return wire.Object{"ename": f.Name, "evalue": f.Message,
			"traceback": strings.Split(strings.TrimSuffix(f.Traceback, "\n"), "\n")}
	}
	if known, ok := errors.AsType[*sandbox.Error](err); ok {
		return failureOf("SandboxError", known.Error())
	}
	if errors.Is(err, context.Canceled) {
		return failureOf("KeyboardInterrupt", "the kernel was interrupted before the code began")
	}
	k.config.Log.WithError(err).Error("a request to a kernel failed")
	return failureOf("SandboxError", "the service failed; its log has the error")
}

func failureOf(name, text string) wire.Object {
	return wire.Object{"ename": name, "evalue": text, "traceback": []string{name + ": " + text}}
}

// errorContent makes a failure the content of a reply.
func errorContent(failure wire.Object) wire.Object {
	content := maps.Clone(failure)
	content["status"] = "error"
	return content
}

// refusedExpressions returns the answers to expressions that a client wants to have evaluated after its code.
func refusedExpressions(expressions map[string]json.RawMessage) wire.Object {
	refused := wire.Object{}
	for name := range expressions {
		refused[name] = errorContent(failureOf("SandboxError",
			"user_expressions are not supported; send the expression as code"))
	}
	return refused
}
