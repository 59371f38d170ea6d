package debugger

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// gotoTarget is a place that goto can show: a step at the line that was asked for.
type gotoTarget struct {
	ID    int    `json:"id"` // the step
	Label string `json:"label"`
	Line  int    `json:"line"`
}

// gotoTargets are the times that a line was reached: the first, and those around where
// the session stands. Of what is to come nothing can be shown: no line is passed over.
func (s *Session) gotoTargets(ctx context.Context, arguments json.RawMessage) (any, error) {
	in, err := take[struct {
		Line int `json:"line"`
	}](arguments)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	at := s.where.Step
	s.mu.Unlock()
	line := Breakpoints{Lines: []LineBreak{{File: s.journal.recordedFile(), Line: in.Line}}}
	targets := []gotoTarget{}
	for _, way := range []struct {
		from int
		verb Verb
		name string
	}{{0, Continue, "first reached"}, {at, ReverseContinue, "reached before"}, {at, Continue, "reached next"}} {
		stop, err := s.journal.Move(ctx, way.from, way.verb, line)
		if err != nil {
			return nil, err
		}
		if stop.Reason == ReasonLine && (len(targets) == 0 || targets[len(targets)-1].ID != stop.Step) {
			targets = append(targets, gotoTarget{stop.Step, fmt.Sprintf("%s: step %d", way.name, stop.Step), in.Line})
		}
	}
	return map[string]any{"targets": targets}, nil
}

// breakpointLocations are the lines, of those asked for, that can have a breakpoint.
func (s *Session) breakpointLocations(arguments json.RawMessage) (any, error) {
	in, err := take[struct {
		Line int `json:"line"`
		End  int `json:"endLine"`
	}](arguments)
	if err != nil {
		return nil, err
	}
	type location struct {
		Line int `json:"line"`
	}
	list := []location{}
	for n := max(in.Line, 1); n <= min(max(in.Line, in.End), len(s.source)); n++ {
		if noCode(s.source, n) == "" {
			list = append(list, location{n})
		}
	}
	return map[string]any{"breakpoints": list}, nil
}

// noCode says why a line can't have a breakpoint; "" where it can.
func noCode(source []string, line int) string {
	text := strings.TrimSpace(SourceLine(source, int64(line)))
	switch {
	case line < 1 || line > len(source):
		return "the program has no such line"
	case text == "" || strings.HasPrefix(text, "#"):
		return "there is no code in this line"
	}
	return ""
}

// RestartFrame shows the first step of a frame: the call from its beginning, as it was
// recorded. Nothing runs again, for what it did outside can't be taken back.
func (s *Session) RestartFrame(frame uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == StateRunning {
		return ErrRunning
	}
	step, err := s.journal.firstOf(frame)
	if err != nil {
		return err
	}
	s.stop(s.look(step, Where{Reason: "restart", Description: "the beginning of the call, as it was recorded"}))
	return nil
}

// firstOf is the first step of a frame that the recording has.
func (j *Journal) firstOf(frame uint64) (int, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for _, c := range j.all() {
		if !c.frames[frame] {
			continue
		}
		first := 0
		err := j.replay(c, func(s *State, rec *Record) bool {
			if rec.Kind == KindLine && s.Current == frame {
				first = s.Step
			}
			return first == 0
		})
		if err != nil || first > 0 {
			return first, err
		}
	}
	return 0, fmt.Errorf("frame %d: %w", frame, ErrNoFrame)
}
