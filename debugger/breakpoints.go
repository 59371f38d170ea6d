package debugger

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// wishes are where the program is to stop, as sandbox/python/guest/stops.py takes it.
type wishes struct {
	Entry      bool       `json:"entry,omitempty"`
	Lines      []lineWish `json:"lines,omitempty"`
	Exceptions []string   `json:"exceptions,omitempty"`
	Data       []dataWish `json:"data,omitempty"`
}

type lineWish struct {
	ID        int    `json:"id"`
	Line      int    `json:"line"`
	Condition string `json:"condition,omitempty"`
	Hits      string `json:"hits,omitempty"`
	Log       string `json:"log,omitempty"`
}

type dataWish struct {
	ID    int    `json:"id"`
	Frame uint64 `json:"frame"`
	Name  string `json:"name"`
}

// BreakpointView answers for one breakpoint that was asked for, in DAP's words.
type BreakpointView struct {
	ID       int    `json:"id"`
	Verified bool   `json:"verified"`
	Line     int    `json:"line,omitempty"`
	Message  string `json:"message,omitempty"`
}

// SourceBreakpoint is one that is asked for, in DAP's words.
type SourceBreakpoint struct {
	Line         int    `json:"line"`
	Condition    string `json:"condition,omitempty"`
	HitCondition string `json:"hitCondition,omitempty" doc:"N, ==N, >=N, >N, <=N, <N, or %N"`
	LogMessage   string `json:"logMessage,omitempty" doc:"Said instead of stopping; {expressions} are filled in"`
}

var hitCondition = regexp.MustCompile(`^\s*(==|>=|<=|>|<|%)?\s*(\d{1,9})\s*$`)

const maxBreakpoints = 1000

// SetLines sets all line breakpoints.
func (s *Session) SetLines(list []SourceBreakpoint) ([]BreakpointView, error) {
	if len(list) > maxBreakpoints {
		return nil, fmt.Errorf("%w: more than %d breakpoints", ErrRequest, maxBreakpoints)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[lineWish]int{}
	for _, w := range s.wishes.Lines {
		id := w.ID
		w.ID = 0
		known[w] = id
	}
	out := []BreakpointView{}
	s.wishes.Lines = nil
	for _, b := range list {
		wish := lineWish{Line: b.Line, Condition: b.Condition, Hits: b.HitCondition, Log: b.LogMessage}
		id := known[wish]
		if id == 0 {
			s.nextID++
			id = s.nextID
		}
		wish.ID = id
		view := BreakpointView{ID: id, Line: b.Line}
		switch {
		case noCode(s.source, b.Line) != "":
			view.Message = noCode(s.source, b.Line)
		case b.HitCondition != "" && !hitCondition.MatchString(b.HitCondition):
			view.Message = "a hit condition is a number, perhaps with ==, >=, >, <=, < or % before it"
		default:
			view.Verified = true
			s.wishes.Lines = append(s.wishes.Lines, wish)
		}
		out = append(out, view)
	}
	s.tell()
	return out, nil
}

// SetExceptions sets the filters: "raised", "uncaught".
func (s *Session) SetExceptions(filters []string) error {
	for _, f := range filters {
		if f != "raised" && f != "uncaught" {
			return fmt.Errorf("%w: the exception filters are raised and uncaught", ErrRequest)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wishes.Exceptions = filters
	s.tell()
	return nil
}

// SetData sets the variables whose change stops.
func (s *Session) SetData(list []Variable) ([]BreakpointView, error) {
	if len(list) > maxBreakpoints {
		return nil, fmt.Errorf("%w: more than %d breakpoints", ErrRequest, maxBreakpoints)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wishes.Data = nil
	out := []BreakpointView{}
	for _, v := range list {
		s.nextID++
		s.wishes.Data = append(s.wishes.Data, dataWish{s.nextID, v.Frame, v.Name})
		out = append(out, BreakpointView{ID: s.nextID, Verified: true})
	}
	s.tell()
	return out, nil
}

// Inherit takes the breakpoints of a session over the same code; not the watched
// variables, whose frames were the other run's.
func (s *Session) Inherit(from *Session) {
	from.mu.Lock()
	wishes, next := from.wishes, from.nextID
	from.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wishes.Lines, s.wishes.Exceptions, s.nextID = wishes.Lines, wishes.Exceptions, next
	s.tell()
}

// SetEntry has a run that is about to begin stop at its first line.
func (s *Session) SetEntry(entry bool) { s.wishes.Entry = entry }

// tell has a program that runs take the wishes at its next line. The caller holds mu.
func (s *Session) tell() {
	if s.live && s.state == StateRunning && s.attention != nil {
		s.attention()
	}
}

// dataID is a variable as DAP's dataId.
func dataID(v Variable) string { return strconv.FormatUint(v.Frame, 10) + ":" + v.Name }

func parseDataID(text string) (Variable, error) {
	frame, name, ok := strings.Cut(text, ":")
	number, err := strconv.ParseUint(frame, 10, 64)
	if !ok || err != nil || name == "" {
		return Variable{}, fmt.Errorf("%w: %q is no dataId of dataBreakpointInfo", ErrRequest, text)
	}
	return Variable{number, name}, nil
}

// recorded are the wishes as a past run is searched for them; a log point stops there
// nowhere. The file is the recording's own.
func (s *Session) recorded(file string) Breakpoints {
	out := Breakpoints{Exceptions: len(s.wishes.Exceptions) > 0}
	for _, w := range s.wishes.Lines {
		b := LineBreak{File: file, Line: w.Line, ID: w.ID}
		if w.Log != "" {
			continue
		}
		if found := hitCondition.FindStringSubmatch(w.Hits); found != nil {
			b.HitOp = found[1]
			b.Hits, _ = strconv.Atoi(found[2])
		}
		if w.Condition != "" {
			condition, err := ParseCondition(w.Condition)
			if err != nil {
				continue // only Python could tell
			}
			b.Condition = condition
		}
		out.Lines = append(out.Lines, b)
	}
	for _, w := range s.wishes.Data {
		out.Data = append(out.Data, Variable{w.Frame, w.Name})
	}
	return out
}

// take reads a request's arguments.
func take[T any](arguments json.RawMessage) (T, error) {
	var v T
	if len(arguments) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(arguments, &v); err != nil {
		return v, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return v, nil
}
