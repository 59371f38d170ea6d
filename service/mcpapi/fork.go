package mcpapi

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"glasshouse/sandbox"
)

type forkInput struct {
	Session string `json:"session_id"`
	Count   int    `json:"count"`
}

type rollbackInput struct {
	Session string `json:"session_id"`
	Before  string `json:"before"`
}

// awaitIdle calls do again while a session is busy, because models send calls of one session in parallel.
func (s *Server) awaitIdle(ctx context.Context, session string, do func() error) error {
	waiting, cancel := context.WithTimeout(ctx, seconds(defaultWait))
	defer cancel()
	err := do()
	for sandbox.FaultOf(err) == sandbox.FaultBusy && s.live.AwaitIdle(waiting, session) {
		err = do()
	}
	return err
}

// forkSession makes sessions with the state of a session, and answers with their ids.
func (s *Server) forkSession(
	ctx context.Context, caller sandbox.Key, _ *mcp.CallToolRequest, in forkInput,
) (*mcp.CallToolResult, error) {
	lines := []string{"Each new session has the variables and files of session_id=" + in.Session + ":"}
	err := s.awaitIdle(ctx, in.Session, func() error {
		forks, err := s.runs.Fork(ctx, caller, in.Session, max(in.Count, 1))
		for _, f := range forks {
			lines = append(lines, "session_id="+f.Sandbox.ID+inexact(f.Execution.Restored))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return textResult(strings.Join(lines, "\n")), nil
}

// rollbackSession gives a session the state from before one of its executions.
func (s *Server) rollbackSession(
	ctx context.Context, caller sandbox.Key, _ *mcp.CallToolRequest, in rollbackInput,
) (*mcp.CallToolResult, error) {
	var e *sandbox.Execution
	err := s.awaitIdle(ctx, in.Session, func() (err error) {
		e, err = s.runs.Rollback(ctx, caller, in.Session, in.Before)
		return err
	})
	if err != nil {
		return nil, err
	}
	if e.Status != sandbox.StatusCompleted || e.Restored == nil {
		return s.executionResult(ctx, caller, e), nil
	}
	return textResult(fmt.Sprintf("The session has the variables and files from before execution_id=%s%s\n"+
		"session_id=%s execution_id=%s status=%s", in.Before, inexact(e.Restored), in.Session, e.ID, e.Status)), nil
}

// inexact returns what a model should know of executions that did not end again as at first; "" if all did.
func inexact(r *sandbox.Restored) string {
	if r == nil || r.IsExact {
		return ""
	}
	return " (not exactly: an earlier execution was left out or ended in another way; check the variables)"
}
