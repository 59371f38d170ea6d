package service

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// CompatRunner is a folder in which each session is a fresh process, as host.Workshop is.
type CompatRunner interface {
	Open(context.Context, sandbox.Sandbox) (Session, error)
}

// CompatService runs code for clients of a local code-execution server: each request in a
// fresh process of plain Python behind the same wall, all in one folder, with nothing
// of the database. Its runs are in history, under the user "facade".
type CompatService struct {
	Service  *Service
	Runner   CompatRunner
	MaxChars int // of stdout, and of stderr, in an answer, where a request does not say
}

// CompatJob is what such a client sends.
type CompatJob struct {
	Code     string
	Timeout  time.Duration
	MaxChars int // 0: the facade's
}

// CompatResult is what such a client gets. Status is completed, error or timeout.
type CompatResult struct {
	Status string `json:"process_status"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

const facadeUser = "facade"

// Execute runs one job. An error is the service's own; however the code ended is an
// answer.
func (f *CompatService) Execute(ctx context.Context, job CompatJob) (CompatResult, error) {
	s := f.Service
	p := s.Default
	p.Profile, p.EnableFileAccess, p.MaxCodeSize = policy.ProfileCompat, true, 1<<20
	most := p.MaxExecutionTime
	if top := s.Ceiling.MaxExecutionTime; top > 0 {
		most = max(most, top)
	} else {
		most = max(most, 300)
	}
	p.MaxExecutionTime = min(int(math.Ceil(min(job.Timeout.Seconds(), 1e6))), most)
	now := s.Clock()
	box := sandbox.Sandbox{ID: s.NewID(), Owner: facadeUser, Policy: p, Ephemeral: true, State: sandbox.StateActive, CreatedAt: now, LastUsed: now}
	e, err := s.newExecution(box, sandbox.Key{User: facadeUser}, Job{Code: job.Code, Kind: sandbox.KindCompat})
	if err != nil {
		return CompatResult{}, err
	}
	var opened Session
	err = s.run(ctx, box, func(ctx context.Context) (Session, error) {
		session, err := f.Runner.Open(ctx, box)
		if err != nil {
			return nil, err
		}
		opened = apart{session, job.Timeout}
		return opened, nil
	}, e, Job{})
	if opened != nil {
		err = errors.Join(err, opened.Close())
	}
	if err != nil {
		return CompatResult{}, err
	}
	if job.MaxChars <= 0 {
		job.MaxChars = f.MaxChars
	}
	out := ended(e)
	out.Stdout, out.Stderr = sandbox.Shorten(out.Stdout, job.MaxChars), sandbox.Shorten(out.Stderr, job.MaxChars)
	return out, nil
}

// apart is a session whose runs may take a time that is no whole number of seconds,
// and get no answer to what they ask.
type apart struct {
	Session
	limit time.Duration
}

func (a apart) Run(ctx context.Context, e *sandbox.Execution, desk supervisor.RequestHandler, _ supervisor.DebugDriver, _ supervisor.OutputListener) error {
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	err := a.Session.Run(ctx, e, silent{desk}, nil, nil)
	if e.Status == sandbox.StatusCancelled && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		why := fmt.Sprintf("the run took longer than its timeout of %s", a.limit)
		e.Status, e.Usage.EndedBy, e.Error = sandbox.StatusTimeout, "timeout", &why
	}
	return err
}

// silent is a desk at which nobody answers. What is shown there is handed on.
type silent struct {
	behind supervisor.RequestHandler // nil: it stays as it is
}

var errSilent = &sandbox.Refusal{Reason: "no-database", Message: "there is no database here"}

func (silent) Query(context.Context, string, map[string]any, sandbox.RowSink) (sandbox.QuerySummary, error) {
	return sandbox.QuerySummary{}, errSilent
}

func (silent) Schema(context.Context, string) (sandbox.Table, error) {
	return sandbox.Table{}, errSilent
}
func (silent) Tables(context.Context) ([]string, error)             { return nil, errSilent }
func (silent) History(context.Context) ([]sandbox.Execution, error) { return nil, errSilent }

func (s silent) Show(ctx context.Context, out sandbox.Output) sandbox.Output {
	if s.behind == nil {
		return out
	}
	return s.behind.Show(ctx, out)
}

func (s silent) Connection(number int64, c sandbox.Connection) error {
	if s.behind == nil {
		return nil
	}
	return s.behind.Connection(number, c)
}

// ended is an execution in a client's terms.
func ended(e *sandbox.Execution) CompatResult {
	out := CompatResult{"completed", e.Stdout, e.Stderr}
	switch {
	case e.Status == sandbox.StatusTimeout:
		out.Status, out.Stderr = "timeout", "Timed out\n"
	case e.Status != sandbox.StatusCompleted:
		out.Status = "error"
		if e.Exception == nil {
			out.Stderr += *e.Error + "\n"
		} else if e.Exception.Type != "SystemExit" { // of which Python says nothing, either
			out.Stderr += traceback(e.Exception)
		}
	}
	return out
}

// traceback is an exception as Python prints it.
func traceback(x *sandbox.Exception) string {
	var b strings.Builder
	if len(x.Traceback) > 0 {
		b.WriteString("Traceback (most recent call last):\n")
		for _, f := range x.Traceback {
			file := f.File
			if file == "" {
				file = "<string>"
			}
			fmt.Fprintf(&b, "  File %q, line %d, in %s\n", file, f.Line, f.Function)
			if f.Code != "" {
				fmt.Fprintf(&b, "    %s\n", f.Code)
			}
		}
	} else if x.Line > 0 {
		fmt.Fprintf(&b, "  File \"<string>\", line %d\n", x.Line)
	}
	b.WriteString(x.Type)
	if x.Message != "" {
		b.WriteString(": " + x.Message)
	}
	b.WriteByte('\n')
	return b.String()
}
