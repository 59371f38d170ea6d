package mcpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"glasshouse/debugger/expr"
	"glasshouse/debugger/why"
	"glasshouse/sandbox"
	"glasshouse/service/records"
	"glasshouse/service/run"
)

type getExecutionInput struct {
	ID     string  `json:"execution_id"`
	Part   string  `json:"part"`
	Offset int     `json:"offset"`
	Wait   float64 `json:"wait_seconds"`
}

// getExecution reads an execution, or a page of one of its parts.
func (s *Server) getExecution(
	ctx context.Context, caller sandbox.Key, _ *mcp.CallToolRequest, in getExecutionInput,
) (*mcp.CallToolResult, error) {
	if in.Wait > 0 {
		waiting, cancel := context.WithTimeout(ctx, seconds(in.Wait))
		s.runs.Await(waiting, caller, in.ID)
		cancel()
	}
	e, err := s.records.Execution(ctx, caller, in.ID)
	if err != nil {
		return nil, err
	}
	if number, ok := strings.CutPrefix(in.Part, "output:"); ok {
		return s.showOutput(ctx, caller, &e, number, in.Offset)
	}
	switch in.Part {
	case "stdout":
		return s.page(&e, in.Part, run.TerminalText(e.Stdout), in.Offset)
	case "stderr":
		return s.page(&e, in.Part, run.TerminalText(e.Stderr), in.Offset)
	case "code":
		return s.page(&e, in.Part, e.Code, in.Offset)
	case "result":
		return s.page(&e, in.Part, run.ModelResult(&e), in.Offset)
	case "queries":
		return s.page(&e, in.Part, queryLines(e.Queries), in.Offset)
	}
	if e.CompletedAt == nil {
		return s.stillRunning(&e), nil
	}
	result := s.executionResult(ctx, caller, &e)
	result.IsError = false // the reading did not fail
	if e.Replay != nil {
		result.Content = append([]mcp.Content{&mcp.TextContent{Text: describeReplay(&e)}}, result.Content...)
	}
	return result, nil
}

// page answers with the characters of a text from an offset on, as many as an answer has.
func (s *Server) page(e *sandbox.Execution, part, text string, offset int) (*mcp.CallToolResult, error) {
	runes := []rune(text)
	if offset > len(runes) {
		return nil, sandbox.Errorf(
			sandbox.FaultInvalid,
			"offset: %s has %d characters, so the offset must be less",
			part,
			len(runes),
		)
	}
	end := min(offset+maxTextChars, len(runes))
	text = string(runes[offset:end])
	if text == "" {
		text = fmt.Sprintf("[%s is empty]", part)
	}
	if end < len(runes) {
		text += fmt.Sprintf(
			"\n[characters %d to %d of %d; go on with get_execution(execution_id=%q, part=%q, offset=%d)]",
			offset,
			end,
			len(runes),
			e.ID,
			part,
			end,
		)
	}
	return textResult(text), nil
}

func queryLines(queries []sandbox.Query) string {
	var lines []string
	for n, q := range queries {
		line := fmt.Sprintf("%d. %s, %d rows, %.1f ms: %s", n+1, q.Status, q.Rows, q.DurationMS,
			strings.Join(strings.Fields(q.SQL), " "))
		if len(q.Parameters) > 0 {
			line += " with " + string(q.Parameters)
		}
		if q.Error != "" {
			line += "\n   " + q.Error
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// showOutput answers with one rich output: its text and, if it has one, its image.
func (s *Server) showOutput(
	ctx context.Context, caller sandbox.Key, e *sandbox.Execution, number string, offset int,
) (*mcp.CallToolResult, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(e.Outputs) {
		return nil, sandbox.Errorf(
			sandbox.FaultNotFound,
			"part: the execution has %d outputs, counted from 1",
			len(e.Outputs),
		)
	}
	o := e.Outputs[n-1]
	var text string
	if json.Unmarshal(o.Data["text/plain"], &text) != nil || text == "" {
		text = o.Summary
	}
	result, err := s.page(e, "output:"+number, text, offset)
	if err != nil {
		return nil, err
	}
	result.Content = append(result.Content, s.imagesOf(ctx, caller, []sandbox.Output{o})...)
	return result, nil
}

type cancelInput struct {
	ID string `json:"execution_id"`
}

// cancelTimeout is the longest time that cancel_execution waits for the end of the execution.
const cancelTimeout = 5 * time.Second

func (s *Server) cancelExecution(
	ctx context.Context, caller sandbox.Key, _ *mcp.CallToolRequest, in cancelInput,
) (*mcp.CallToolResult, error) {
	if err := s.runs.Cancel(ctx, caller, in.ID); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	s.runs.Await(waiting, caller, in.ID)
	return textResult("execution_id=" + in.ID + " is cancelled; what it printed is in get_execution"), nil
}

type explainInput struct {
	ID       string `json:"execution_id"`
	Question string `json:"question"`
}

// Sizes of the answers of explain_execution.
const (
	explainTokens    = 1000
	maxStepVariables = 40
)

// explainExecution answers a question from the recording of an execution. Without one, the failure is explained from
// the record of the execution, and for another question the execution runs again and is recorded.
func (s *Server) explainExecution(
	ctx context.Context, caller sandbox.Key, req *mcp.CallToolRequest, in explainInput,
) (*mcp.CallToolResult, error) {
	kind, argument, _ := strings.Cut(cmp.Or(in.Question, "failure"), ":")
	argument = strings.TrimSpace(argument)
	opened, err := s.openExplained(ctx, caller, in.ID, kind)
	note := ""
	if kind != "failure" && sandbox.FaultOf(err) == sandbox.FaultNotFound {
		replay, running, replayErr := s.recordReplay(ctx, caller, req, in.ID)
		if running != nil {
			return running, nil
		}
		if replayErr == nil {
			in.ID, note = replay.ID, "From a replay, execution_id="+replay.ID+", "+describeReplay(replay)+"\n"
			opened, err = s.openExplained(ctx, caller, in.ID, kind)
		}
	}
	if err != nil {
		e, readErr := s.records.Execution(ctx, caller, in.ID)
		if readErr != nil {
			return nil, readErr
		}
		if sandbox.FaultOf(err) == sandbox.FaultForbidden {
			return nil, err
		}
		if kind != "failure" {
			return nil, sandbox.Errorf(
				sandbox.FaultGone,
				"%v. This execution cannot run again, so that only question=failure has an answer; "+
					"run the code again with record=true",
				err,
			)
		}
		return textResult(run.ModelText(&e, maxTextChars)), nil
	}
	var text string
	switch kind {
	case "value":
		var answer *why.Answer
		if answer, err = s.debug.Why(ctx, caller, in.ID, why.Question{Name: argument}); err == nil {
			text = answer.Text
		}
	case "line":
		err = s.debug.SearchRecording(ctx, caller, func(ctx context.Context) (err error) {
			text, err = explainLine(ctx, opened, argument)
			return err
		})
	case "step":
		text, err = explainStep(opened, argument)
	case "find":
		err = s.debug.SearchRecording(ctx, caller, func(ctx context.Context) (err error) {
			text, err = explainFind(ctx, opened, argument)
			return err
		})
	default:
		text, err = s.debug.Explain(ctx, caller, opened, explainTokens)
	}
	if err != nil {
		return nil, sandbox.Errorf(sandbox.FaultInvalid, "question: %v", err)
	}
	return textResult(note + run.CutMiddle(text, maxTextChars, func(_, left int) string {
		return fmt.Sprintf("[%d characters left out]", left)
	})), nil
}

// openExplained opens the recording for a question. Agents may ask why a run failed and why a value is so; other
// questions
// show all variables of a step, and need a key that may debug.
func (s *Server) openExplained(
	ctx context.Context, caller sandbox.Key, id, kind string,
) (*records.OpenRecording, error) {
	if kind == "failure" || kind == "value" {
		return s.records.Explainable(ctx, caller, id)
	}
	return s.records.Recorded(ctx, caller, id)
}

// explainLine shows the variables at the first and the last time that a line ran.
func explainLine(ctx context.Context, opened *records.OpenRecording, argument string) (string, error) {
	line, err := strconv.Atoi(argument)
	if err != nil {
		return "", errNoNumber(argument)
	}
	var first, last, hits int
	for from := 1; from <= opened.Steps(); {
		const page = 1000
		lines, err := opened.Lines(from, min(from+page-1, opened.Steps()))
		if err != nil {
			return "", err
		}
		for _, l := range lines {
			if int(l.Number) == line {
				if hits++; first == 0 {
					first = int(l.Step)
				}
				last = int(l.Step)
			}
		}
		if from += page; ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	if hits == 0 {
		return fmt.Sprintf("Line %d did not run.", line), nil
	}
	text, err := explainStep(opened, strconv.Itoa(first))
	if err != nil || hits == 1 {
		return fmt.Sprintf("Line %d ran once.\n%s", line, text), err
	}
	end, err := explainStep(opened, strconv.Itoa(last))
	return fmt.Sprintf("Line %d ran %d times. The first time:\n%s\nThe last time:\n%s", line, hits, text, end), err
}

// errNoNumber returns the error for a line or a step that is not an integer of 64 bits.
func errNoNumber(argument string) error {
	return fmt.Errorf("%.40q is not a line or step; give a number of the recording", argument)
}

// explainStep shows the stack and the variables of a step.
func explainStep(opened *records.OpenRecording, argument string) (string, error) {
	step, err := strconv.Atoi(argument)
	if err != nil {
		return "", errNoNumber(argument)
	}
	view, err := opened.View(step, maxStepVariables)
	if err != nil {
		return "", err
	}
	lines := []string{fmt.Sprintf("Step %d of %d, before the line runs:", view.Step, view.Steps)}
	if view.IsEnd {
		lines[0] = fmt.Sprintf("The end, after the last of %d steps:", view.Steps)
	}
	for _, f := range view.Frames {
		lines = append(lines, fmt.Sprintf("  line %d, in %s: %s", f.Line, f.Function, strings.TrimSpace(f.Code)))
		for _, v := range f.Variables {
			lines = append(lines, "    "+v.Name+" = "+sandbox.Shorten(v.Value, 200))
		}
	}
	if len(view.Globals) > 0 {
		lines = append(lines, "  global variables:")
	}
	for _, v := range view.Globals {
		lines = append(lines, "    "+v.Name+" = "+sandbox.Shorten(v.Value, 200))
	}
	if view.Total > len(view.Globals) {
		lines = append(lines, fmt.Sprintf("    and %d more", view.Total-len(view.Globals)))
	}
	return strings.Join(lines, "\n"), nil
}

// explainFind shows the first step at which a condition holds.
func explainFind(ctx context.Context, opened *records.OpenRecording, argument string) (string, error) {
	condition, err := expr.Parse(argument)
	if err != nil {
		return "", err
	}
	step, unknown, err := opened.FindCondition(ctx, condition, 1, "")
	if err != nil {
		return "", err
	}
	if step == 0 {
		return fmt.Sprintf(
			"%s never held in %d steps; at %d of them it could not be evaluated.",
			argument,
			opened.Steps(),
			unknown,
		), nil
	}
	text, err := explainStep(opened, strconv.Itoa(step))
	return fmt.Sprintf("%s held first at step %d.\n%s", argument, step, text), err
}
