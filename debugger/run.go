package debugger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"glasshouse/sandbox"
)

// This file is the run's side of a Session: its methods are called by the goroutine of the run.

// maxExpressionTime bounds one expression that the stopped program evaluates. maxCommandWait bounds the wait until the
// run's goroutine takes a command: it may be busy with another client's expression.
const (
	maxExpressionTime = 5 * time.Second
	maxCommandWait    = maxExpressionTime + 2*time.Second
)

// Limits of the guest's reports. The program can forge them.
const (
	maxReasonChars  = 100
	maxMessageChars = 10_000
	maxEarlier      = 5 // exceptions
)

// command is a command for the program that has stopped.
type command struct {
	ctx    context.Context         // of the client that waits for the end
	body   map[string]any          // JSON for the guest
	decode func(text []byte) error // decodes the guest's answer; not called for resume
	ended  chan error
}

// Begin tells the session that the run begins. interrupt makes the guest report at its next line. Begin returns the
// stops as JSON for the guest.
func (s *Session) Begin(interrupt func()) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupt = interrupt
	s.evaluated.set(s.stops.Lines, 0)
	text, _ := json.Marshal(s.stops) // its fields are numbers and texts
	return text
}

// Recorded tells the session that records have arrived. If the recorder has stopped recording, or records again, the
// clients get the breakpoints, which cannot or can be hit.
func (s *Session) Recorded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil && s.readLines() {
		for _, b := range s.stops.Lines {
			if view := s.lineView(b); !view.Verified || view.Line != b.Line {
				s.addEvent(BreakpointChanged{view})
			}
		}
	}
	gap := s.recording.journal.OpenGap()
	if gap == s.unrecorded || !s.running {
		return
	}
	s.unrecorded = gap
	for _, b := range s.stops.Lines {
		s.addEvent(BreakpointChanged{s.lineView(b)})
	}
	for _, b := range s.stops.Data {
		s.addEvent(BreakpointChanged{s.breakpointView(b.ID, 0)})
	}
}

// Logged adds the message of a log point, or notes that the condition of a breakpoint is none.
func (s *Session) Logged(body []byte) {
	var log struct {
		Text string `json:"text"`
		Line int    `json:"line"`

		Breakpoint int    `json:"breakpoint"`
		Error      string `json:"error"` // of its condition
	}
	if json.Unmarshal(body, &log) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if log.Error != "" {
		for _, b := range s.stops.Lines {
			if b.ID == log.Breakpoint && s.invalid[b.ID] == "" {
				s.invalid[b.ID] = shorten(log.Error, maxReasonChars)
				s.addEvent(BreakpointChanged{s.lineView(b)})
			}
		}
		return
	}
	s.addEvent(Output{Category: OutputConsole, Text: shorten(log.Text, maxMessageChars) + "\n", Line: log.Line})
}

// Stopped tells the session that the program has stopped. It executes the clients' commands through ask until a command
// resumes the program, and returns that command for the guest. When ctx ends, the program runs on without stops.
func (s *Session) Stopped(
	ctx context.Context, body []byte, ask func(context.Context, time.Duration, any) ([]byte, error),
) (any, error) {
	var stop struct {
		Reason string `json:"reason"`
		Step   int    `json:"step"`
		IDs    []int  `json:"ids"`
		Text   string `json:"text"`

		Message string             `json:"message"` // of an exception
		Earlier []EarlierException `json:"earlier"`
		Inner   []innerFrame       `json:"inner"`
	}
	if err := json.Unmarshal(body, &stop); err != nil {
		return nil, fmt.Errorf("decode the guest's stop: %w", err)
	}
	stop.Reason, stop.Text = shorten(stop.Reason, maxReasonChars), shorten(stop.Text, maxMessageChars)
	stop.Message = shorten(stop.Message, maxMessageChars)
	stop.IDs = slices.Clone(stop.IDs[:min(len(stop.IDs), maxBreakpoints)])
	s.mu.Lock()
	if stop.Reason == "attention" { // the answer to interrupt
		stop.Reason = string(ReasonPause)
		if !s.pausing { // the breakpoints were changed
			resume := map[string]any{"do": "resume", "stops": s.stops}
			s.evaluated.set(s.stops.Lines, s.recording.Steps())
			s.mu.Unlock()
			return resume, nil
		}
	}
	stop.Earlier = stop.Earlier[:min(len(stop.Earlier), maxEarlier)]
	for i := range stop.Earlier {
		e := &stop.Earlier[i]
		e.Type, e.Message = shorten(e.Type, maxReasonChars), shorten(e.Message, maxMessageChars)
	}
	isEnd := stop.Reason == string(ReasonEnd)
	if isEnd && (s.sqlStep == nil || len(s.statementsAt(s.sqlStep.step)) == 0) { // its last line sent no statement
		s.sqlStep = nil
		s.mu.Unlock()
		return map[string]any{"do": "resume"}, nil
	}
	if isEnd {
		stop.Reason = string(ReasonStep)
	}
	s.pausing, s.liveMessage, s.liveEarlier = false, stop.Message, stop.Earlier
	s.liveInner = checkedInner(stop.Inner)
	s.evaluated.stop(stop.IDs, s.recording.Steps())
	step := s.recording.Steps()
	if stop.Step > 0 && stop.Step < step { // of an uncaught exception, whose clean-up has run
		step = stop.Step
	}
	s.live = s.positionAt(step,
		Position{Reason: stop.Reason, Description: stop.Text, HitIDs: stop.IDs, Live: true})
	if !isEnd && s.goesOnInLine() {
		s.evaluated.set(s.stops.Lines, s.recording.Steps())
		resume := map[string]any{"do": "resume", "mode": string(StepIn), "stops": s.stops, "end": true}
		s.mu.Unlock()
		return resume, nil
	}
	if !s.endSQLStep(isEnd) {
		s.moveTo(s.live)
	}
	s.mu.Unlock()
	for {
		select {
		case c := <-s.commands:
			c.body["calm"] = ctx.Err() == nil
			if c.body["do"] == "resume" {
				c.ended <- nil
				return c.body, nil
			}
			text, err := ask(c.ctx, maxExpressionTime, c.body)
			if err == nil {
				if err = c.decode(text); err != nil {
					err = fmt.Errorf("decode the guest's answer: %w", err)
				}
			}
			if err != nil {
				c.ended <- fmt.Errorf("%w: the program ended while it evaluated this", ErrRequest)
				return nil, err
			}
			c.ended <- nil
		case <-ctx.Done():
			s.mu.Lock()
			s.state, s.evaluated.until = StateRunning, s.recording.Steps()
			s.mu.Unlock()
			return map[string]any{"do": "resume", "mode": string(Continue), "stops": guestStops{}}, nil
		}
	}
}

// Ended tells the session that the run is over. It is called once.
func (s *Session) Ended(exit Exited) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.over)
	s.running, s.state = false, StateEnded
	s.position = s.positionAt(s.recording.Steps(), Position{Reason: string(ReasonEnd)})
	s.references, s.sql = references{}, nil
	s.live = s.position
	s.addEvent(exit)
	s.addEvent(Terminated{})
}

// ask makes the stopped program execute a command, and interrupts the command when ctx ends. An error of decode, which
// gets the guest's answer, ends the program. The caller does not hold mu.
func (s *Session) ask(ctx context.Context, body map[string]any, decode func(text []byte) error) error {
	c := command{ctx, body, decode, make(chan error, 1)}
	select {
	case s.commands <- c:
	case <-s.over: // the last command has ended the program
		return fmt.Errorf("%w: the program has ended", ErrRequest)
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(maxCommandWait):
		return ErrRunning
	}
	return <-c.ended
}

// askFor makes the stopped program execute a command, if it is admitted, and decodes the answer. The guest reports a
// failure as "error".
func askFor[T any](ctx context.Context, s *Session, body map[string]any) (T, error) {
	var failed struct {
		Error string `json:"error"`
	}
	var v T
	ctx, end, err := s.admit(ctx)
	if err != nil {
		return v, err
	}
	defer end()
	err = s.ask(ctx, body, func(text []byte) error {
		if err := json.Unmarshal(text, &failed); err != nil || failed.Error != "" {
			return err
		}
		return json.Unmarshal(text, &v)
	})
	if err == nil && failed.Error != "" {
		err = fmt.Errorf("%w: %s", ErrRequest, failed.Error)
		if cause, ok := errors.AsType[*sandbox.Error](context.Cause(ctx)); ok { // it was interrupted
			err = cause
		}
	}
	return v, err
}
