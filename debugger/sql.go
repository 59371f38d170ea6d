package debugger

import (
	"context"
	"fmt"
	"slices"

	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// A step into a line that has sent a statement enters a frame of the statement. Its position there is a stage of the
// statement, and the position in the program is the step that sent it. The stages are computed when a client first asks
// for them, with the rights of that client.

// Statements lets a client step into the statements of a run.
type Statements struct {
	// Reader names whose rights the stages have. Clients with the same reader share them.
	Reader string
	// Stages returns the stages of the statement with a number, which counts from 1.
	Stages func(ctx context.Context, number int) (*stages.Stages, error)
	// EntersOnStepIn lets a step into a line enter its statement. Without it, only a step into a target does.
	EntersOnStepIn bool
}

type statementsKey struct{}

// WithSQL returns a context for the commands of a client that may step into statements.
func WithSQL(ctx context.Context, s Statements) context.Context {
	return context.WithValue(ctx, statementsKey{}, s)
}

func statementsOf(ctx context.Context) (s Statements, ok bool) {
	s, ok = ctx.Value(statementsKey{}).(Statements)
	return s, ok
}

// SetStatements sets the statements of a run that has ended. Call it before the session is shared.
func (s *Session) SetStatements(list []sandbox.Query) { s.statements = list }

// StatementEnded adds the next statement of the run.
func (s *Session) StatementEnded(q sandbox.Query) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statements = append(s.statements, q)
}

// statementsAt returns the numbers of the statements that a step has sent. The caller holds mu.
func (s *Session) statementsAt(step int) (numbers []int) {
	if step <= 0 { // a statement without a step has 0
		return nil
	}
	for i := range s.statements {
		if s.statements[i].Step == step {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// statement returns the statement with a number, which counts from 1.
func (s *Session) statement(number int) (sandbox.Query, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < 1 || number > len(s.statements) {
		return sandbox.Query{}, fmt.Errorf("%w: the run has sent no statement %d", ErrRequest, number)
	}
	return s.statements[number-1], nil
}

// sqlFrame is the frame of a statement that the session has entered.
type sqlFrame struct {
	number int
	query  sandbox.Query
	step   int
	path   sqlPath // nil: the first stage
	isLive bool    // the program has run the line for the step that entered the frame
	isEnd  bool    // the program has stopped at its end

	turn    chan struct{} // has a value while the stages are computed
	answers map[string]*sqlAnswer
}

// sqlAnswer has the stages of a statement for a reader, or why there are none.
type sqlAnswer struct {
	stages *stages.Stages
	walk   *sqlWalk
	err    error
}

// answerFor returns the stages for the client of ctx. It computes them once for each reader. Its error is that of ctx.
func (f *sqlFrame) answerFor(ctx context.Context) (*sqlAnswer, error) {
	of, ok := statementsOf(ctx)
	if !ok {
		return &sqlAnswer{err: fmt.Errorf("%w: this client cannot read statements", ErrRequest)}, nil
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a := f.answers[of.Reader]; a != nil {
		return a, nil
	}
	found, err := of.Stages(ctx, f.number)
	if ctx.Err() != nil {
		return nil, ctx.Err() // the next request computes them
	}
	a := &sqlAnswer{stages: found, err: err}
	if err == nil {
		a.walk = newSQLWalk(found)
	}
	f.answers[of.Reader] = a
	return a, nil
}

// pathIn returns the path of the frame in an answer. The caller holds mu.
func (f *sqlFrame) pathIn(a *sqlAnswer) sqlPath {
	if a.walk == nil {
		return sqlPath{{}}
	}
	if f.path == nil {
		return a.walk.start()
	}
	return f.path
}

// currentSQL returns the frame of the statement in which the session is, or nil.
func (s *Session) currentSQL() *sqlFrame {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == StateRunning {
		return nil
	}
	return s.sql
}

// enterSQL moves the session into the statement with a number, which its step has sent. The caller holds mu.
func (s *Session) enterSQL(number, step int, isLive bool) *sqlFrame {
	f := &sqlFrame{
		number: number, query: s.statements[number-1], step: step, isLive: isLive,
		turn: make(chan struct{}, 1), answers: map[string]*sqlAnswer{},
	}
	s.moveTo(s.positionAt(step, Position{Reason: string(ReasonStep)}))
	s.sql = f
	return f
}

// sqlStep is a step that may enter a statement: from where it began.
type sqlStep struct {
	step  int
	frame uint64
}

// beginSQLStep notes that the program runs a line for a step that may enter a statement of it. The caller holds mu.
func (s *Session) beginSQLStep(ctx context.Context, move Move) {
	of, ok := statementsOf(ctx)
	s.sqlStep = nil
	if ok && of.EntersOnStepIn && move == StepIn {
		s.sqlStep = &sqlStep{s.position.Step, s.position.Frame}
	}
}

// endSQLStep enters the statement that a line has sent, if the program was stepped into it and has called no function
// of its own there. It reports whether it has. The program has stopped at s.live. The caller holds mu.
func (s *Session) endSQLStep(isEnd bool) bool {
	begun := s.sqlStep
	s.sqlStep = nil
	if begun == nil || s.live.Reason != string(ReasonStep) && s.live.Reason != string(ReasonBreakpoint) {
		return false
	}
	numbers := s.statementsAt(begun.step)
	if len(numbers) == 0 || !isEnd && s.isWithinStep(begun.frame, begun.step, s.live.Step) {
		return false
	}
	s.enterSQL(numbers[0], begun.step, true).isEnd = isEnd
	return true
}

// isWithinStep reports whether a step is in a call that an earlier step in a frame has made.
func (s *Session) isWithinStep(frame uint64, from, step int) bool {
	isWithin := false
	_ = s.recording.journal.Read(func(reader *recording.Reader) error {
		state, err := reader.State(step)
		if err != nil {
			return err // a lost step is in no call
		}
		stack := state.Stack(state.Current)
		isWithin = len(stack) > 1 && slices.ContainsFunc(stack[1:], func(f *recording.Frame) bool {
			return f.Number == frame && f.Step == from
		})
		return nil
	})
	return isWithin
}

// databaseHelpers are the helpers of code that send statements.
var databaseHelpers = []string{"db_query", "db_frame", "db_explain"}

// isOnTheWay reports whether two steps are in one statement of the program over several lines that calls a helper of
// the database: Python visits the lines of the arguments before it makes the call.
func (s *Session) isOnTheWay(frame uint64, from, step int) bool {
	isOnTheWay := false
	_ = s.recording.journal.Read(func(reader *recording.Reader) error {
		begun, err := reader.State(from)
		if err != nil || begun.CurrentFrame() == nil {
			return err
		}
		then, err := reader.State(step)
		if err != nil || then.Current != frame || begun.Current != frame {
			return err
		}
		t := reader.Table()
		f, now := begun.CurrentFrame(), then.CurrentFrame()
		of := s.recording.program.of(t, s.recording.Source)
		number := of.At(t.FunctionName(f.Code), f.Line)
		calls := of.Get(number).Calls
		isOnTheWay = number > 0 && number == of.At(t.FunctionName(now.Code), now.Line) &&
			slices.ContainsFunc(calls, func(name string) bool { return slices.Contains(databaseHelpers, name) })
		return nil
	})
	return isOnTheWay
}

// goesOnInLine reports whether a step into a line goes on, because the line has not sent its statement yet. The program
// has stopped at s.live. The caller holds mu.
func (s *Session) goesOnInLine() bool {
	begun := s.sqlStep
	isStep := s.live.Reason == string(ReasonStep) || s.live.Reason == string(ReasonBreakpoint)
	if begun == nil || !isStep || len(s.statementsAt(begun.step)) > 0 ||
		!s.isOnTheWay(begun.frame, begun.step, s.live.Step) {
		return false
	}
	begun.step = s.live.Step
	return true
}

// findStepIn returns where a step into the line of a step stops in the recording, and the last step of the line before
// it, which may have sent a statement.
func (s *Session) findStepIn(
	ctx context.Context, frame uint64, from int, breaks Breakpoints,
) (stop Stop, last int, err error) {
	of, _ := statementsOf(ctx)
	for last = from; ; last = stop.Step {
		stop, err = s.recording.FindStop(ctx, last, StepIn, breaks)
		isStep := stop.Reason == ReasonStep || stop.Reason == ReasonBreakpoint
		if err != nil || !isStep || !of.EntersOnStepIn || !s.isOnTheWay(frame, last, stop.Step) {
			return stop, last, err
		}
		s.mu.Lock()
		sent := s.statementsAt(last)
		s.mu.Unlock()
		if len(sent) > 0 {
			return stop, last, nil
		}
	}
}

// statementBefore returns the number of a statement that a step in the line of the session's position has sent, if a
// step into that line enters it: next is where the step would stop otherwise. The caller holds mu.
func (s *Session) statementBefore(ctx context.Context, move Move, step int, next Stop) (number int, ok bool) {
	of, isReader := statementsOf(ctx)
	at := s.position
	if !isReader || !of.EntersOnStepIn || move != StepIn || at.Reason == string(ReasonEnd) {
		return 0, false
	}
	numbers := s.statementsAt(step)
	if len(numbers) == 0 || next.Reason != ReasonEnd && s.isWithinStep(at.Frame, step, next.Step) {
		return 0, false
	}
	return numbers[0], true
}

// moveInSQL moves the session if it is in a statement. It returns isLeft if the move goes on in the program from the
// step that sent the statement, and the move there.
func (s *Session) moveInSQL(ctx context.Context, move Move, child int) (then Move, isLeft bool, err error) {
	f := s.currentSQL()
	if f == nil {
		return move, true, nil
	}
	a, err := f.answerFor(ctx)
	if err != nil {
		return move, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sql != f {
		return move, false, fmt.Errorf("%w: another client moved the session meanwhile", ErrRequest)
	}
	path, hits := f.after(a, move, child, s.sqlBreakpoints[f.number])
	if path != nil {
		reason := ReasonStep
		if len(hits) > 0 {
			reason = ReasonBreakpoint
		}
		s.moveTo(s.positionAt(f.step, Position{Reason: string(reason), HitIDs: hits}))
		f.path, s.sql = path, f
		return move, false, nil
	}
	return s.leaveSQL(f, move)
}

// after returns the path after a move, or nil if the move leaves the statement, and the breakpoints there.
func (f *sqlFrame) after(a *sqlAnswer, move Move, child int, breakpoints []sqlBreakpoint) (path sqlPath, hits []int) {
	if a.walk == nil {
		return nil, nil
	}
	from := f.pathIn(a)
	switch move {
	case Next:
		path = a.walk.next(from)
	case StepIn:
		path = a.walk.in(from, child)
	case StepOut:
		path = a.walk.out(from, false)
	case StepBack:
		path = a.walk.back(from)
	default:
		return a.walk.find(from, breakpoints, move.isBackward())
	}
	if path != nil {
		hits = hitIDs(a.walk.stage(path[len(path)-1]), breakpoints)
	}
	return path, hits
}

// leaveSQL leaves the statement, and returns how a move goes on in the program, unless the session has its new position
// already. The caller holds mu.
func (s *Session) leaveSQL(f *sqlFrame, move Move) (then Move, isLeft bool, err error) {
	if numbers := s.statementsAt(f.step); move == StepIn {
		if at := slices.Index(numbers, f.number); at+1 < len(numbers) {
			next := s.enterSQL(numbers[at+1], f.step, f.isLive)
			next.isEnd = f.isEnd
			return move, false, nil
		}
	}
	s.sql = nil
	switch {
	case move == StepBack:
		s.moveTo(s.positionAt(f.step, Position{Reason: string(ReasonStep)}))
		return move, false, nil
	case move == ReverseContinue:
		return move, true, nil
	case s.running && f.isEnd: // after its last line the program can only end
		s.position = s.live
		return Continue, true, nil
	case s.running && f.isLive && move == Continue && len(s.live.HitIDs) == 0:
		s.position = s.live // the program has not stopped there for anything but this step
		return Continue, true, nil
	case s.running && f.isLive:
		s.moveTo(s.live)
		return move, false, nil
	case move == StepOut:
		return Next, true, nil
	}
	return move, true, nil
}
