// Package nemo serves clients of a local code-execution server, such as NVIDIA's NeMo Agent Toolkit:
// POST /execute runs Python and answers with its output.
//
//	server := &nemo.Server{Config: config, Open: runner.Open, MaxOutputChars: 1000}
//	http.Serve(loopbackListener, server)
//
// Each request runs in a process of its own, with plain Python, no database, and a folder that all requests share.
// History records the runs under the user sandbox.NeMoUser. The package translates requests and answers; package
// run runs the code. The clients send no key. Therefore the server must listen on a loopback address, and it
// refuses requests that a page in a browser could send.
package nemo

import (
	"context"
	"math"
	"strings"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/service/compat"
)

// request is a decoded request of a client.
type request struct {
	code           string
	timeout        time.Duration
	maxOutputChars int // of stdout and of stderr each; 0: the server's
	isPiston       bool
}

// answer is the body of a response. Status is completed, error or timeout.
type answer struct {
	Status string `json:"process_status"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// run runs one request. It returns an error only for a failure of the service; failed code is a normal answer.
func (s *Server) run(ctx context.Context, in request) (answer, error) {
	run := sandbox.Request{
		Code: in.code, Kind: sandbox.KindNeMo, Timeout: in.timeout.Seconds(), WithoutDatabase: true,
	}
	caller := sandbox.Key{User: sandbox.NeMoUser}
	execution, err := s.Runs.ExecuteEphemeral(ctx, caller, s.policy(in.timeout), run, s.Open)
	if err != nil {
		return answer{}, err
	}
	maxChars := in.maxOutputChars
	if maxChars <= 0 {
		maxChars = s.MaxOutputChars
	}
	out := answerOf(execution)
	out.Stdout, out.Stderr = sandbox.Shorten(out.Stdout, maxChars), sandbox.Shorten(out.Stderr, maxChars)
	return out, nil
}

// maxTimeout fits into the policy's whole seconds.
const maxTimeout = 1_000_000 * time.Second

// policy returns the policy of one request.
func (s *Server) policy(timeout time.Duration) policy.Policy {
	p := s.Live.CompatPolicy()
	if s.MemoryMB > 0 {
		p.MaxMemoryMB = s.MemoryMB
	}
	p.MaxExecutionTime = min(int(math.Ceil(timeout.Seconds())), p.MaxExecutionTime)
	return p
}

// advice replaces advice about the config of a sandbox, which these clients do not have.
var advice = strings.NewReplacer(
	"or ask for more when creating the sandbox", "or ask the operator for more (--nemo-memory-mb)",
	"or create the sandbox with more", "or ask the operator for more (--nemo-memory-mb)",
	"create one with enable_network_access and its hosts in allowed_hosts", "work with the files in the working folder",
)

// answerOf translates an execution into an answer.
func answerOf(e *sandbox.Execution) answer {
	out := answer{"completed", e.Stdout, e.Stderr + advice.Replace(compat.Stderr(e))}
	switch e.Status {
	case sandbox.StatusCompleted:
	case sandbox.StatusTimeout:
		out.Status, out.Stderr = "timeout", "Timed out\n"
	default:
		out.Status = "error"
	}
	return out
}
