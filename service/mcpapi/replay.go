package mcpapi

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"glasshouse/sandbox"
	"glasshouse/service/replaytext"
	"glasshouse/service/run"
)

type replayInput struct {
	ID     string        `json:"execution_id"`
	Code   string        `json:"code"`
	Rows   string        `json:"rows"`
	Edits  []run.RowEdit `json:"edits"`
	Record bool          `json:"record"`

	Environment string `json:"environment"`
}

// maxReplayChars is the maximum number of characters of a comparison: some differences, each with two long lines.
const maxReplayChars = 4000

// replayExecution runs an execution again and answers with the comparison. A replay that takes longer than the call
// waits continues.
func (s *Server) replayExecution(
	ctx context.Context, caller sandbox.Key, req *mcp.CallToolRequest, in replayInput,
) (*mcp.CallToolResult, error) {
	waiting, cancel := context.WithTimeout(ctx, seconds(defaultWait))
	defer cancel()
	options := run.ReplayOptions{
		RowsNow: in.Rows == "now", Edits: in.Edits, Record: in.Record, Environment: in.Environment,
	}
	if in.Code != "" { // models send an empty text for an argument that they do not use
		options.Code = &in.Code
	}
	log, err := s.runs.StartReplay(ctx, caller, in.ID, options)
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
	if e.Replay == nil { // it has not begun
		return s.executionResult(ctx, caller, e), nil
	}
	return textResult(fmt.Sprintf("%s\nIts output: get_execution(execution_id=%q).\nexecution_id=%s status=%s",
		describeReplay(e), e.ID, e.ID, e.Status)), nil
}

// recordReplay runs an execution again with a recording. It returns the replay, or an answer for the model if the
// replay takes longer than the call waits, or has not begun.
func (s *Server) recordReplay(
	ctx context.Context, caller sandbox.Key, req *mcp.CallToolRequest, id string,
) (replay *sandbox.Execution, running *mcp.CallToolResult, err error) {
	waiting, cancel := context.WithTimeout(ctx, seconds(defaultWait))
	defer cancel()
	log, err := s.runs.StartReplay(ctx, caller, id, run.ReplayOptions{Record: true})
	if err != nil {
		return nil, nil, err
	}
	e, ended, err := s.awaitRun(ctx, waiting, caller, req, log)
	if err != nil {
		return nil, nil, err
	}
	if !ended {
		return nil, s.stillRunning(e), nil
	}
	if e.Replay == nil {
		return nil, s.executionResult(ctx, caller, e), nil // it has not begun
	}
	return e, nil, nil
}

// describeReplay returns what a replay says about its original, in at most about maxReplayChars characters.
func describeReplay(e *sandbox.Execution) string {
	return run.CutMiddle(replaytext.Describe(e), maxReplayChars, func(_, left int) string {
		return fmt.Sprintf("[%d characters left out]", left)
	})
}
