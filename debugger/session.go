package debugger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
)

// The states of a Session.
const (
	StateRunning = "running" // the program runs
	StateStopped = "stopped" // the program has stopped, or the session is at a past step
	StateEnded   = "ended"   // the run is over; its steps can still be inspected
)

// The errors of a Session. Clients see their texts.
var (
	ErrRunning = errors.New("the program is running: pause it, or wait until it stops")
	ErrPast    = errors.New("this is a past step, which cannot be changed: go to the last step to act on the program")
	ErrRequest = errors.New("invalid request")
)

// Position is the place of a Session in its run, and why it stopped there.
type Position struct {
	State string `json:"state" enum:"running,stopped,ended"`

	Reason string `json:"reason,omitempty" doc:"step, (data) breakpoint, exception, pause, entry, goto, restart, end"`

	Description string `json:"description,omitempty"`
	HitIDs      []int  `json:"hit_breakpoint_ids,omitempty"`
	Step        int    `json:"step,omitempty"`
	Steps       int    `json:"total_steps"`
	Live        bool   `json:"live" doc:"Whether the program itself has stopped here, and can be changed"`

	Line      int64             `json:"line_number,omitempty"`
	Code      string            `json:"line_code,omitempty"`
	Function  string            `json:"function,omitempty"`
	Frame     uint64            `json:"frame,omitempty"`
	Thread    uint64            `json:"lane,omitempty"`
	Variables map[string]string `json:"variables,omitempty"`
	Changed   []string          `json:"changed,omitempty" doc:"Variables of this frame that the previous line changed"`
	Source    []SourceView      `json:"source,omitempty"`
	Gap       *recording.Gap    `json:"gap,omitempty" doc:"The last gap in the recording before this step"`
	Edits     []sandbox.Edit    `json:"edits,omitempty" doc:"Changes that a person made in the debugger at this step"`
}

// Session moves through one run, while the run goes on or later. It may be used by several clients at once, which then
// share its position and breakpoints.
type Session struct {
	Clock func() time.Time // set it before the session is shared

	recording *Recording
	onUse     func()
	admit     Admission

	mu          sync.Mutex
	updated     chan struct{} // closed and replaced when an event is added
	state       string
	running     bool     // the run has not ended
	live        Position // of the program, when it has stopped
	liveMessage string   // of the exception at which the program has stopped
	liveEarlier []EarlierException
	liveInner   []innerFrame
	position    Position
	moves       int // number of position changes
	references  references
	stops       guestStops
	lastID      int            // of breakpoints
	lines       []int          // of the program that have code, in order; nil while they are unknown
	invalid     map[int]string // why a condition is none, by the ID of its breakpoint
	evaluated   evaluated
	pausing     bool
	unrecorded  string // why the program is not recorded at present, and cannot stop; "" if it is
	interrupt   func() // makes the running program fetch its stops
	commands    chan command
	over        chan struct{} // closed when the run has ended
	lastEdit    uint64        // number of the last edit
	editCount   int           // edits that changed something
	onEdit      func(sandbox.Edit)
	events      eventLog

	statements     []sandbox.Query // of the run
	sql            *sqlFrame       // of the statement in which the session is; nil if it is in none
	sqlStep        *sqlStep        // of the running program; nil if the step enters no statement
	sqlBreakpoints map[int][]sqlBreakpoint
}

// NewSession returns a session over the recording of a run that is about to begin.
func NewSession(r *Recording) *Session {
	return &Session{
		Clock: time.Now, recording: r, running: true, state: StateRunning, onUse: func() {},
		updated: make(chan struct{}), commands: make(chan command), over: make(chan struct{}),
		invalid: map[int]string{},
		onEdit:  func(sandbox.Edit) {},
		admit:   func(ctx context.Context) (context.Context, func(), error) { return ctx, func() {}, nil },
	}
}

// NewPastSession returns a session over the recording of a run that has ended, at its first step.
func NewPastSession(r *Recording) *Session {
	s := NewSession(r)
	s.running, s.state = false, StateStopped
	s.moveTo(s.positionAt(1, Position{Reason: string(ReasonStart)}))
	return s
}

// OnUse sets a function that is called whenever a client uses the session. Call it before the session is shared.
func (s *Session) OnUse(f func()) { s.onUse = f }

// Admission lets the stopped program execute a command of a client, or resume. The command is interrupted when the
// returned context ends; if the cause is a *sandbox.Error, the client gets it. The error is for the client, too.
// The caller calls end when the command has been executed.
type Admission func(context.Context) (_ context.Context, end func(), err error)

// SetAdmission sets the function that admits the commands for the program. Without it, all are admitted. Call it before
// the session is shared.
func (s *Session) SetAdmission(f Admission) { s.admit = f }

// OnEdit sets a function that is called for each change that a client made to the stopped program. Call it before the
// session is shared.
func (s *Session) OnEdit(f func(sandbox.Edit)) { s.onEdit = f }

// Use reports to the OnUse function that a client uses the session.
func (s *Session) Use() { s.onUse() }

// Position returns the session's current position.
func (s *Session) Position() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.currentPosition()
}

func (s *Session) currentPosition() Position {
	if s.state == StateRunning {
		return Position{State: StateRunning, Steps: s.recording.Steps()}
	}
	p := s.position
	p.State, p.Steps = s.state, s.recording.Steps()
	return p
}

// IsRunning reports whether the program runs.
func (s *Session) IsRunning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == StateRunning
}

// WaitForStop waits until the program does not run, or ctx ends, and returns the position then.
func (s *Session) WaitForStop(ctx context.Context) Position {
	for {
		s.mu.Lock()
		p, updated := s.currentPosition(), s.updated
		s.mu.Unlock()
		if p.State != StateRunning {
			return p
		}
		select {
		case <-updated:
		case <-ctx.Done():
			return p
		}
	}
}

// positionAt fills in a position at a step. If the recording lacks the step, the position has no details.
func (s *Session) positionAt(step int, p Position) Position {
	p.State, p.Step, p.Edits = StateStopped, step, s.recording.EditsAt(step)
	_ = s.recording.journal.Read(func(reader *recording.Reader) error {
		p.Steps = reader.Steps()
		w, err := viewAt(reader, step)
		if err != nil {
			return nil // a position without details
		}
		view := s.recording.view(w, reader.Steps(), maxLineVariables)
		if len(view.Frames) == 0 {
			return nil
		}
		f := view.Frames[0]
		p.Line, p.Code, p.Function, p.Frame, p.Source = f.Line, f.Code, f.Function, f.Frame, view.Source
		shown := f.Variables
		if f.Function == recording.ModuleName {
			shown = view.Globals
		}
		p.Variables = map[string]string{}
		for _, v := range shown {
			p.Variables[v.Name] = v.Value
		}
		p.Thread, p.Changed = view.LaneID, changedVariables(reader, step-1, f.Frame, 0)
		p.Gap, _ = reader.LastGap(step) // damage is reported where the chunk is needed
		return nil
	})
	return p
}

// moveTo makes p the session's position and adds the event. The caller holds mu.
func (s *Session) moveTo(p Position) {
	s.position, s.references, s.sql = p, references{}, nil
	s.moves++
	if s.state != StateEnded {
		s.state = StateStopped
	}
	stopped := Stopped{Reason: p.Reason, Description: p.Description, HitIDs: p.HitIDs, Step: p.Step, Line: p.Line,
		Thread: p.Thread}
	if p.Live && p.Reason == string(ReasonException) && s.liveMessage != "" {
		stopped.Text = p.Description + ": " + s.liveMessage
	}
	s.addEvent(stopped)
}

type searcherKey struct{}

// Searcher calls a search, which reads many steps of a recording, within the limits of the client who asks for it. It
// returns the error of search, or its own if it has not called it.
type Searcher func(ctx context.Context, search func(context.Context) error) error

// WithSearcher returns a context for the commands of a client whose searches are called by f. Without it, searches have
// no limits.
func WithSearcher(ctx context.Context, f Searcher) context.Context {
	return context.WithValue(ctx, searcherKey{}, f)
}

// search calls f, which may read all steps of the recording, by the Searcher of ctx. The caller does not hold mu.
func search(ctx context.Context, f func(context.Context) error) error {
	if searcher, ok := ctx.Value(searcherKey{}).(Searcher); ok {
		return searcher(ctx, f)
	}
	return f(ctx)
}

// Move moves the session. At the live position it resumes the program and returns when the program runs; WaitForStop
// waits for the stop. At any other position it searches the recording and returns when it has found the stop. A search
// ends with ctx.
func (s *Session) Move(ctx context.Context, move Move) error {
	then, isLeft, err := s.moveInSQL(ctx, move, 0)
	if err != nil || !isLeft {
		return err
	}
	return s.moveInto(ctx, then, nil)
}

// moveInto is Move. At the live position, the step of a place goes into the call there.
func (s *Session) moveInto(ctx context.Context, move Move, place []int) error {
	if _, live, err := s.inspected(); err == nil && live && !move.isBackward() {
		_, end, err := s.admit(ctx)
		if err != nil {
			return err
		}
		defer end()
	}
	s.mu.Lock()
	if s.state == StateRunning {
		s.mu.Unlock()
		return ErrRunning
	}
	if s.running && s.position.Live && !move.isBackward() {
		s.state, s.references = StateRunning, references{}
		s.moves++
		s.stops.Entry = false
		s.beginSQLStep(ctx, move)
		s.evaluated.set(s.stops.Lines, s.recording.Steps())
		resume := map[string]any{
			"do": "resume", "mode": string(move), "stops": s.stops, "place": place, "end": s.sqlStep != nil,
		}
		s.addEvent(Continued{s.position.Thread})
		s.mu.Unlock()
		return s.ask(ctx, resume, nil)
	}
	breaks, moves, from, frame := s.pastBreakpoints(), s.moves, s.position.Step, s.position.Frame
	if move.isBackward() && s.position.Reason == string(ReasonEnd) {
		from = s.recording.Steps() + 1
	}
	s.mu.Unlock()
	var stop Stop
	sent := from // the step that may have sent a statement
	err := search(ctx, func(ctx context.Context) (err error) {
		if move == StepIn {
			stop, sent, err = s.findStepIn(ctx, frame, from, breaks)
		} else {
			stop, err = s.recording.FindStop(ctx, from, move, breaks)
		}
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		err = s.checkMoves(moves)
	}
	if err != nil {
		return err
	}
	if number, ok := s.statementBefore(ctx, move, sent, stop); ok {
		s.enterSQL(number, sent, false)
		return nil
	}
	if s.running && (stop.Reason == ReasonEnd || stop.Step == s.live.Step) {
		s.moveTo(s.live)
		return nil
	}
	p := Position{Reason: string(stop.Reason)}
	switch stop.Reason {
	case ReasonBreakpoint:
		p.HitIDs = []int{breaks.Lines[stop.Index].ID}
		if stop.IsUncertain {
			p.Description = "the recording cannot tell whether the condition holds here"
		}
	case ReasonData:
		p.HitIDs = []int{breaks.DataIDs[stop.Index]}
	case ReasonStart:
		p.Description = "the beginning of the recording"
	case ReasonEnd:
		p.Description = "the end of the recording"
	}
	s.moveTo(s.positionAt(stop.Step, p))
	return nil
}

// checkMoves returns an error if the session has moved since it had a number of moves. The caller holds mu.
func (s *Session) checkMoves(moves int) error {
	if s.moves != moves {
		return fmt.Errorf("%w: another client moved the session meanwhile", ErrRequest)
	}
	return nil
}

// Goto moves the session to a step. The last step of a run that has not ended is the live position.
func (s *Session) Goto(step int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == StateRunning {
		return ErrRunning
	}
	if _, err := s.recording.journal.State(step); err != nil {
		return err
	}
	if s.running && step == s.live.Step {
		s.moveTo(s.live)
		return nil
	}
	s.moveTo(s.positionAt(step, Position{Reason: string(ReasonGoto)}))
	return nil
}

// RestartFrame moves the session to the first recorded step of a frame. The call does not run again, because its
// effects outside the program cannot be undone.
func (s *Session) RestartFrame(ctx context.Context, frame uint64) error {
	s.mu.Lock()
	moves, isRunning := s.moves, s.state == StateRunning
	s.mu.Unlock()
	if isRunning {
		return ErrRunning
	}
	var step int
	err := search(ctx, func(ctx context.Context) (err error) {
		step, err = s.recording.firstStepOf(ctx, frame)
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		err = s.checkMoves(moves)
	}
	if err != nil {
		return err
	}
	description := "the beginning of the call, as it was recorded"
	s.moveTo(s.positionAt(step, Position{Reason: string(ReasonRestart), Description: description}))
	return nil
}

// firstStepOf returns the first step of a frame. It returns ctx's error when ctx ends.
func (r *Recording) firstStepOf(ctx context.Context, frame uint64) (first int, err error) {
	err = r.journal.Read(func(reader *recording.Reader) error {
		for _, c := range reader.Chunks() {
			if first > 0 || !c.HasFrame(frame) {
				continue
			}
			err := reader.Replay(c, func(s *recording.State, rec *recording.Record) bool {
				if rec.Kind == recording.KindLine && s.Current == frame {
					first = s.Step
				}
				return first == 0 && ctx.Err() == nil
			})
			if err = errors.Join(err, ctx.Err()); err != nil {
				return err
			}
		}
		if first == 0 {
			return fmt.Errorf("frame %d: %w", frame, recording.ErrNoFrame)
		}
		return nil
	})
	return first, err
}

// Pause makes the running program stop at its next line.
func (s *Session) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != StateRunning || s.interrupt == nil {
		return fmt.Errorf("%w: the program does not run", ErrRequest)
	}
	if s.unrecorded != "" {
		return fmt.Errorf("%w: the program cannot stop now: %s", ErrRequest, s.unrecorded)
	}
	s.pausing = true
	s.interrupt()
	return nil
}

// GotoTarget is a step at which a line was reached.
type GotoTarget struct {
	Step  int
	Label string
	Line  int
}

// GotoTargets returns steps at which a line was reached: the first one, and the nearest ones before and after the
// session's position. It returns only recorded steps, because Goto never skips code.
func (s *Session) GotoTargets(ctx context.Context, line int) ([]GotoTarget, error) {
	at, _, err := s.inspected()
	if err != nil {
		return nil, err
	}
	breaks := Breakpoints{Lines: []LineStop{{Line: line}}}
	targets := []GotoTarget{}
	err = search(ctx, func(ctx context.Context) error {
		for _, one := range []struct {
			from  int
			move  Move
			label string
		}{{0, Continue, "first reached"}, {at, ReverseContinue, "reached before"}, {at, Continue, "reached next"}} {
			stop, err := s.recording.FindStop(ctx, one.from, one.move, breaks)
			if err != nil {
				return err
			}
			isNew := len(targets) == 0 || targets[len(targets)-1].Step != stop.Step
			if stop.Reason == ReasonBreakpoint && isNew {
				targets = append(targets, GotoTarget{stop.Step, fmt.Sprintf("%s: step %d", one.label, stop.Step), line})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return targets, nil
}

// inspected returns the step that clients inspect, and whether it is the live position. It returns ErrRunning while the
// program runs.
func (s *Session) inspected() (step int, live bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == StateRunning {
		return 0, false, ErrRunning
	}
	return s.position.Step, s.running && s.position.Live, nil
}

// requireLive returns ErrPast unless the program has stopped at the session's position.
func (s *Session) requireLive() error {
	_, live, err := s.inspected()
	if err == nil && !live {
		err = ErrPast
	}
	return err
}
