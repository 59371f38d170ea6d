package mcpapi

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"glasshouse/sandbox"
	"glasshouse/service/run"
)

// runInput has the arguments of run_python: those fields of Request that its schema has, and its own.
type runInput struct {
	sandbox.Request
	Session string            `json:"session_id"`
	Timeout float64           `json:"timeout_seconds"`
	Files   map[string]string `json:"files"`
	Wait    *float64          `json:"wait_seconds"`
}

// runPython runs code in a session, which it creates if none is named. A run that takes longer than the call waits
// continues, and its end is in history. A call that is cancelled cancels its run. Calls of one session run one after
// the other.
func (s *Server) runPython(
	ctx context.Context, caller sandbox.Key, req *mcp.CallToolRequest, in runInput,
) (*mcp.CallToolResult, error) {
	run := in.Request
	run.Kind, run.Timeout = sandbox.KindExecute, in.Timeout
	for _, name := range slices.Sorted(maps.Keys(in.Files)) {
		run.Files = append(run.Files, sandbox.RequestFile{
			Path: strings.TrimPrefix(name, "/data/"), Content: new(in.Files[name]),
		})
	}
	isNew := in.Session == ""
	if isNew {
		sb, err := s.live.Create(ctx, caller, nil)
		if err != nil {
			return nil, err
		}
		in.Session = sb.ID
	}
	wait := defaultWait * time.Second
	if in.Wait != nil {
		wait = seconds(*in.Wait)
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	log, err := s.runs.Start(ctx, caller, in.Session, run, nil)
	for sandbox.FaultOf(err) == sandbox.FaultBusy && s.live.AwaitIdle(waiting, in.Session) {
		log, err = s.runs.Start(ctx, caller, in.Session, run, nil) // models send calls of one session in parallel
	}
	if err != nil {
		return nil, err
	}
	e, ended, err := s.awaitRun(ctx, waiting, caller, req, log)
	if err != nil {
		return nil, err
	}
	if !ended {
		return s.stillRunning(e), nil
	}
	if isNew && e.Exception != nil && e.Exception.Type == "NameError" { // models forget session_id
		noted, exception := *e, *e.Exception
		exception.Notes = append(slices.Clip(exception.Notes), newSessionNote)
		noted.Exception, e = &exception, &noted
	}
	return s.executionResult(ctx, caller, e), nil
}

// awaitRun reports a run, and waits for its end until waiting ends. A call that is cancelled, when ctx ends, cancels
// its run.
func (s *Server) awaitRun(
	ctx, waiting context.Context, caller sandbox.Key, req *mcp.CallToolRequest, log *run.EventLog,
) (e *sandbox.Execution, ended bool, err error) {
	e, _ = log.Execution()
	reportRun(ctx, e.ID, log)
	s.followProgress(waiting, req, log)
	select {
	case <-log.Over():
	case <-waiting.Done():
		if ctx.Err() != nil {
			_ = s.runs.Cancel(context.WithoutCancel(ctx), caller, e.ID) // it may have ended meanwhile
			return nil, false, ctx.Err()
		}
	}
	if err := log.Err(); err != nil {
		return nil, false, err
	}
	e, ended = log.Execution()
	return e, ended, nil
}

const newSessionNote = "This run began a new session; variables of an earlier run are in that run's: pass session_id."

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// stillRunning answers for a run that the call does not wait for any longer.
func (s *Server) stillRunning(e *sandbox.Execution) *mcp.CallToolResult {
	session := "session_id=" + e.SandboxID + " "
	if e.Kind == sandbox.KindReplay { // its sandbox ends with it
		session = ""
	}
	return textResult(
		"The run continues. Call get_execution(execution_id=\"" + e.ID + "\", wait_seconds=55) for its end, or " +
			"cancel_execution to stop it.\n" + session + "execution_id=" + e.ID + " status=running",
	)
}

const (
	progressInterval = 500 * time.Millisecond // least time between two progress notifications
	maxProgressBytes = 400                    // of a notification's message
)

// followProgress sends the newest line of stdout to a client that asked for progress, until the run ends or ctx does.
// A line that came too early for a notification is sent later, unless a newer line replaces it.
func (s *Server) followProgress(ctx context.Context, req *mcp.CallToolRequest, log *run.EventLog) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return
	}
	var (
		began   = time.Now()
		lines   newestLine
		after   int64
		waiting time.Time // until the next notification
	)
	for {
		next, cancel := ctx, func() {}
		if lines.unsent {
			next, cancel = context.WithDeadline(ctx, waiting)
		}
		event, err := log.Next(next, after)
		cancel()
		if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
			return // the end of the log or of the waiting
		}
		if err == nil {
			after = event.ID
			if text, ok := event.Data.(run.Text); ok && event.Name == "stdout" {
				lines.add(text.Text)
			}
		}
		if !lines.unsent || time.Now().Before(waiting) {
			continue
		}
		waiting = time.Now().Add(progressInterval)
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // a client that left is not an error
			ProgressToken: token, Message: lines.take(), Progress: time.Since(began).Seconds(),
		})
	}
}

// newestLine is the last whole line of an output that comes in pieces. Blank lines do not count. A carriage return ends
// a line too: bars of progress write one.
type newestLine struct {
	line   string
	begun  string // what came after the last whole line, of at most maxProgressBytes
	unsent bool
}

func (l *newestLine) add(text string) {
	text = l.begun + text
	end := strings.LastIndexAny(text, "\r\n") + 1
	l.begun = text[end:]
	if len(l.begun) > maxProgressBytes {
		l.begun = strings.ToValidUTF8(l.begun[:maxProgressBytes], "")
	}
	if whole := strings.TrimRight(text[:end], "\r\n "); whole != "" {
		l.line, l.unsent = whole[strings.LastIndexAny(whole, "\r\n")+1:], true
		if len(l.line) > maxProgressBytes {
			l.line = strings.ToValidUTF8(l.line[:maxProgressBytes], "") + " [...]"
		}
	}
}

func (l *newestLine) take() string {
	l.unsent = false
	return l.line
}

// executionResult answers with an execution that has ended.
func (s *Server) executionResult(ctx context.Context, caller sandbox.Key, e *sandbox.Execution) *mcp.CallToolResult {
	result := textResult(run.ModelText(e, maxTextChars))
	result.IsError = e.Status != sandbox.StatusCompleted
	result.Content = append(result.Content, s.imagesOf(ctx, caller, e.Outputs)...)
	return result
}
