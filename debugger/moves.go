package debugger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// recordedFile is the file that the steps of a recording are of.
func (j *Journal) recordedFile() string {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if len(j.table.codes) == 0 {
		return ""
	}
	return j.table.Name(j.table.codes[0].File)
}

// Move moves the session: in the recording where it stands at a past step, the program
// where it stands itself. It answers at once, but for a search through the recording,
// which ends with ctx; Settled waits for the stop.
func (s *Session) Move(ctx context.Context, verb Verb) error {
	s.mu.Lock()
	if s.state == StateRunning {
		s.mu.Unlock()
		return ErrRunning
	}
	back := verb == StepBack || verb == ReverseContinue
	if s.live && s.where.Tip && !back {
		s.state, s.refs = StateRunning, refs{}
		s.moves++
		s.wishes.Entry = false
		resume := map[string]any{"do": "resume", "mode": string(verb), "stops": s.wishes}
		s.emit("continued", map[string]any{"threadId": max(s.where.Lane, 1), "allThreadsContinued": true})
		s.mu.Unlock()
		_, err := s.do(ctx, resume)
		return err
	}
	breaks, data, moves := s.recorded(s.journal.recordedFile()), slices.Clone(s.wishes.Data), s.moves
	from := s.where.Step
	if back && s.where.Reason == string(ReasonEnd) {
		from = s.journal.Steps() + 1
	}
	s.mu.Unlock()
	stop, err := s.journal.Move(ctx, from, verb, breaks)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	if s.moves != moves {
		return fmt.Errorf("%w: the session was moved meanwhile", ErrRequest)
	}
	if s.live && stop.Reason == ReasonEnd || s.live && stop.Step == s.tip.Step {
		s.stop(s.tip)
		return nil
	}
	w := Where{Reason: string(stop.Reason)}
	switch stop.Reason {
	case ReasonLine:
		w.HitIDs = []int{breaks.Lines[stop.Break].ID}
	case ReasonData:
		w.HitIDs = []int{data[stop.Break].ID}
	case ReasonStart:
		w.Description = "the beginning of the recording"
	case ReasonEnd:
		w.Description = "the end of the recording"
	}
	s.stop(s.look(stop.Step, w))
	return nil
}

// Goto shows a step; the last one of a run that goes on is where the program stands.
func (s *Session) Goto(step int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == StateRunning {
		return ErrRunning
	}
	if _, err := s.journal.Goto(step); err != nil {
		return err
	}
	if s.live && step == s.tip.Step {
		s.stop(s.tip)
		return nil
	}
	s.stop(s.look(step, Where{Reason: "goto"}))
	return nil
}

// Pause has a program that runs stop at its next line.
func (s *Session) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != StateRunning || s.attention == nil {
		return fmt.Errorf("%w: the program does not run", ErrRequest)
	}
	s.pausing = true
	s.attention()
	return nil
}

// Drives says whether a request acts on the session for all who watch, rather than
// looks.
func Drives(request string) bool { return driving[request] }

// Moves says whether a request changes where the session stands.
func Moves(request string) bool { return moving[request] }

// Requests are those that Do answers.
func Requests() []string {
	return []string{
		"continue", "next", "stepIn", "stepOut", "stepBack", "reverseContinue", "goto", "gotoTargets", "restartFrame", "pause",
		"setBreakpoints", "breakpointLocations", "setExceptionBreakpoints", "dataBreakpointInfo", "setDataBreakpoints",
		"threads", "stackTrace", "scopes", "variables", "evaluate", "setVariable", "setExpression", "completions", "exceptionInfo",
		"source", "loadedSources", "modules",
	}
}

var moving = map[string]bool{
	"continue": true, "next": true, "stepIn": true, "stepOut": true, "stepBack": true, "reverseContinue": true, "goto": true, "pause": true,
	"restartFrame": true,
}

var driving = map[string]bool{
	"continue": true, "next": true, "stepIn": true, "stepOut": true, "stepBack": true, "reverseContinue": true, "goto": true, "pause": true,
	"setBreakpoints": true, "setExceptionBreakpoints": true, "setDataBreakpoints": true, "evaluate": true, "setVariable": true, "setExpression": true, "restartFrame": true, "terminate": true,
}

// Do answers one request of the Debug Adapter Protocol with the body of its response.
// One that moves is answered when the session has settled, or ctx ends.
func (s *Session) Do(ctx context.Context, request string, arguments json.RawMessage) (any, error) {
	s.touch()
	switch request {
	case "continue", "next", "stepIn", "stepOut", "stepBack", "reverseContinue":
		if err := s.Move(ctx, Verb(request)); err != nil {
			return nil, err
		}
		return moved{AllThreadsContinued: true}, nil
	case "goto":
		in, err := take[struct {
			Step     int `json:"step"`
			TargetID int `json:"targetId"`
		}](arguments)
		if err != nil {
			return nil, err
		}
		return moved{AllThreadsContinued: true}, s.Goto(max(in.Step, in.TargetID))
	case "restartFrame":
		in, err := take[struct {
			Frame uint64 `json:"frameId"`
		}](arguments)
		if err != nil {
			return nil, err
		}
		return empty{}, s.RestartFrame(in.Frame)
	case "pause":
		return empty{}, s.Pause()
	case "setBreakpoints":
		in, err := take[struct {
			Breakpoints []SourceBreakpoint `json:"breakpoints"`
			Lines       []int              `json:"lines"`
		}](arguments)
		if err != nil {
			return nil, err
		}
		for _, line := range in.Lines {
			if in.Breakpoints == nil || len(in.Breakpoints) < len(in.Lines) {
				in.Breakpoints = append(in.Breakpoints, SourceBreakpoint{Line: line})
			}
		}
		list, err := s.SetLines(in.Breakpoints)
		return breakpointsBody{list}, err
	case "setExceptionBreakpoints":
		in, err := take[struct {
			Filters []string `json:"filters"`
			Options []struct {
				Filter    string `json:"filterId"`
				Condition string `json:"condition"`
			} `json:"filterOptions"`
		}](arguments)
		if err != nil {
			return nil, err
		}
		for _, o := range in.Options {
			if o.Condition != "" {
				return nil, fmt.Errorf("%w: the exception filters take no condition", ErrRequest)
			}
			in.Filters = append(in.Filters, o.Filter)
		}
		return empty{}, s.SetExceptions(in.Filters)
	case "setDataBreakpoints":
		in, err := take[struct {
			Breakpoints []struct {
				DataID       string `json:"dataId"`
				Access       string `json:"accessType"`
				Condition    string `json:"condition"`
				HitCondition string `json:"hitCondition"`
			} `json:"breakpoints"`
		}](arguments)
		if err != nil {
			return nil, err
		}
		var list []Variable
		for _, b := range in.Breakpoints {
			if b.Condition != "" || b.HitCondition != "" || b.Access != "" && b.Access != "write" {
				return nil, fmt.Errorf("%w: a variable is watched for each change, without a condition", ErrRequest)
			}
			v, err := parseDataID(b.DataID)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		views, err := s.SetData(list)
		return breakpointsBody{views}, err
	}
	return s.inspect(ctx, request, arguments)
}

type (
	empty struct{}
	moved struct {
		AllThreadsContinued bool `json:"allThreadsContinued"`
	}
	breakpointsBody struct {
		Breakpoints []BreakpointView `json:"breakpoints"`
	}
)
