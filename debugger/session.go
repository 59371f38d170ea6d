package debugger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// The states of a Session.
const (
	StateRunning = "running" // the program runs
	StateStopped = "stopped" // it stands, or a past step is looked at
	StateEnded   = "ended"   // it is over; its steps can still be looked at
)

// Errors of a Session, in a caller's terms.
var (
	ErrRunning = errors.New("the program is running; pause it, or wait for it to stop")
	ErrPast    = errors.New("this is a past step: it can be looked at, not changed; go to the last step to act on the program")
	ErrRequest = errors.New("invalid request")
)

// Where is where a Session stands and why: enough to decide what to do next.
type Where struct {
	State       string            `json:"state" enum:"running,stopped,ended"`
	Reason      string            `json:"reason,omitempty" doc:"step, breakpoint, exception, pause, entry, goto, data breakpoint, end"`
	Description string            `json:"description,omitempty"`
	HitIDs      []int             `json:"hit_breakpoint_ids,omitempty"`
	Step        int               `json:"step,omitempty"`
	Steps       int               `json:"total_steps"`
	Tip         bool              `json:"live" doc:"Whether the program itself stands here, and can be changed"`
	Line        int64             `json:"line_number,omitempty"`
	Code        string            `json:"line_code,omitempty"`
	Function    string            `json:"function,omitempty"`
	Frame       uint64            `json:"frame,omitempty"`
	Lane        uint64            `json:"lane,omitempty"`
	Variables   map[string]string `json:"variables,omitempty"`
	Changed     []string          `json:"changed,omitempty" doc:"By the line that ran before, in this frame"`
	Source      []SourceView      `json:"source,omitempty"`
}

// Session steps through one run, while it goes on or later. It may be used by many at
// once. Of a run that goes on, the run's own goroutine is in Stopped while the program
// stands, and does there what the others ask for.
type Session struct {
	journal *Journal
	source  []string
	file    string
	touch   func() // somebody is there

	mu        sync.Mutex
	changed   chan struct{} // closed and made anew with each event
	state     string
	live      bool // the run goes on
	tip       Where
	where     Where
	moves     int  // how often it was moved
	refs      refs // of variables, until the next move
	wishes    wishes
	nextID    int
	pausing   bool
	attention func()
	commands  chan command
	overlay   map[Variable]VariableView // what was set since it stands
	events    []Event
	kept      int // bytes of events
	dropped   int
	taken     int // no event up to this one may change any more
}

// command is what the run's goroutine is to do while somebody waits; its answer is the
// child's JSON.
type command struct {
	ctx    context.Context
	body   map[string]any
	answer chan result
}

type result struct {
	text []byte
	err  error
}

// NewSession returns a session over a run that is about to begin, or with live false
// over one that is past.
func NewSession(j *Journal, source []string, live bool) *Session {
	s := &Session{journal: j, source: source, live: live, changed: make(chan struct{}), commands: make(chan command), touch: func() {}, overlay: map[Variable]VariableView{}}
	s.state = StateRunning
	if !live {
		s.state = StateEnded
		s.where = s.look(1, Where{Reason: "entry"})
		s.state = StateStopped
		s.stop(s.where)
	}
	return s
}

// OnUse has f called whenever somebody uses the session.
func (s *Session) OnUse(f func()) { s.touch = f }

// Where returns where the session stands now.
func (s *Session) Where() Where {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whereNow()
}

func (s *Session) whereNow() Where {
	if s.state == StateRunning {
		return Where{State: StateRunning, Steps: s.journal.Steps()}
	}
	w := s.where
	w.State, w.Steps = s.state, s.journal.Steps()
	return w
}

// Settled waits until the program does not run, or ctx ends.
func (s *Session) Settled(ctx context.Context) Where {
	for {
		s.mu.Lock()
		w, changed := s.whereNow(), s.changed
		s.mu.Unlock()
		if w.State != StateRunning {
			return w
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return w
		}
	}
}

// look completes what is known of a step.
func (s *Session) look(step int, w Where) Where {
	w.State, w.Step, w.Steps = StateStopped, step, s.journal.Steps()
	view, err := s.journal.View(step, s.source, lineVariables)
	if err != nil || len(view.Frames) == 0 {
		return w
	}
	f := view.Frames[0]
	w.Line, w.Code, w.Function, w.Frame, w.Source = f.Line, f.Code, f.Function, f.Frame, view.Source
	w.Variables = map[string]string{}
	shown := f.Variables
	if f.Function == module {
		shown = view.Globals
	}
	for _, v := range shown {
		w.Variables[v.Name] = v.Value
	}
	w.Lane, w.Changed = view.LaneID, s.journal.changedBy(step-1, f.Frame)
	return w
}

// stop makes a place the session's, and tells it. The caller holds mu.
func (s *Session) stop(w Where) {
	s.where, s.refs = w, refs{}
	s.moves++
	if s.state != StateEnded {
		s.state = StateStopped
	}
	s.emit("stopped", map[string]any{
		"reason": w.Reason, "description": w.Description, "text": w.Description, "threadId": max(w.Lane, 1), "allThreadsStopped": true,
		"hitBreakpointIds": orNone(w.HitIDs), "step": w.Step, "line": w.Line,
	})
}

func orNone(list []int) []int {
	if list == nil {
		return []int{}
	}
	return list
}

// -- the run's side

// Begin, Logged, Stopped and Ended are called by the run, as its watcher; Begin says
// where it is to stop.
func (s *Session) Begin(attention func()) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attention = attention
	s.file = "<execution>"
	text, _ := json.Marshal(s.wishes) // of numbers and texts
	return text
}

// Logged takes what a log point said.
func (s *Session) Logged(body []byte) {
	var log struct {
		Text string `json:"text"`
		Line int    `json:"line"`
	}
	if json.Unmarshal(body, &log) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit("output", output{"console", cut(log.Text, maxSaid) + "\n", log.Line})
}

// expressionTime is how long an expression may take in the program.
const expressionTime = 5 * time.Second

// Stopped serves the others while the program stands, until one has it go on.
func (s *Session) Stopped(ctx context.Context, body []byte, ask func(context.Context, any) ([]byte, error)) (any, error) {
	var at struct {
		Reason string `json:"reason"`
		IDs    []int  `json:"ids"`
		Text   string `json:"text"`
		Step   int    `json:"step"`
	}
	if err := json.Unmarshal(body, &at); err != nil {
		return nil, fmt.Errorf("where the program stands: %w", err)
	}
	at.Reason, at.Text, at.IDs = cut(at.Reason, maxReason), cut(at.Text, maxSaid), slices.Clone(at.IDs[:min(len(at.IDs), maxBreakpoints)])
	s.mu.Lock()
	if at.Reason == "attention" {
		at.Reason = "pause"
		if !s.pausing { // it is only told where to stop
			resume := map[string]any{"do": "resume", "stops": s.wishes}
			s.mu.Unlock()
			return resume, nil
		}
	}
	s.pausing = false
	s.overlay = map[Variable]VariableView{}
	s.tip = s.look(s.journal.Steps(), Where{Reason: at.Reason, Description: at.Text, HitIDs: at.IDs, Tip: true})
	s.stop(s.tip)
	s.mu.Unlock()
	for {
		select {
		case c := <-s.commands:
			c.body["calm"] = ctx.Err() == nil
			if c.body["do"] == "resume" {
				c.answer <- result{}
				return c.body, nil
			}
			patience, done := context.WithTimeout(c.ctx, expressionTime)
			text, err := ask(patience, c.body)
			done()
			if err != nil {
				c.answer <- result{nil, fmt.Errorf("%w: the program was ended with it", ErrRequest)}
				return nil, err
			}
			c.answer <- result{text, nil}
		case <-ctx.Done():
			s.mu.Lock()
			s.state = StateRunning
			s.mu.Unlock()
			return map[string]any{"do": "resume", "mode": "continue", "stops": wishes{}}, nil
		}
	}
}

// Ended says that the run is over; body is told with it.
func (s *Session) Ended(body any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live, s.state = false, StateEnded
	s.where, s.refs = s.look(s.journal.Steps(), Where{Reason: "end"}), refs{}
	s.tip = s.where
	s.emit("exited", body)
	s.emit("terminated", map[string]any{})
}

// do has the run's goroutine do something while the program stands at its tip, and
// interrupts it when ctx ends. The caller does not hold mu.
func (s *Session) do(ctx context.Context, body map[string]any) ([]byte, error) {
	c := command{ctx, body, make(chan result, 1)}
	select {
	case s.commands <- c:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(expressionTime + 2*time.Second):
		return nil, ErrRunning
	}
	r := <-c.answer
	return r.text, r.err
}
