package debugger

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"glasshouse/debugger/expr"
	"glasshouse/debugger/recording"
)

// Bounds of the breakpoints of each type. They are kept, and every client that joins gets them.
const (
	maxBreakpoints     = 1000
	maxBreakpointBytes = 64 << 10 // of all conditions, messages and names
)

// LineBreakpoint is a line breakpoint that a client requests.
type LineBreakpoint struct {
	Line         int
	Condition    string // a Python expression; "" for always
	HitCondition string // N, ==N, >=N, >N, <=N, <N or %N; "" for always
	LogMessage   string // printed instead of stopping; {expressions} are filled in
}

// BreakpointView is the answer for one breakpoint.
type BreakpointView struct {
	ID       int    `json:"id"`
	Verified bool   `json:"verified"`
	Line     int    `json:"line,omitempty"`
	Message  string `json:"message,omitempty"`

	Condition    string `json:"condition,omitempty"`
	HitCondition string `json:"hitCondition,omitempty"`
	LogMessage   string `json:"logMessage,omitempty"`
}

// The exception filters: stop where an exception is raised, or only if it leaves the program, as nothing handles it.
const (
	FilterRaised   = "raised"
	FilterUncaught = "uncaught"
)

// guestStops are the places where the program stops, in the JSON that sandbox/python/guest/debug_control.py takes.
type guestStops struct {
	Entry      bool        `json:"entry,omitempty"`
	Lines      []guestLine `json:"lines,omitempty"`
	Exceptions []string    `json:"exceptions,omitempty"`
	Data       []guestData `json:"data,omitempty"`
}

type guestLine struct {
	ID        int    `json:"id"`
	Line      int    `json:"line"`
	Condition string `json:"condition,omitempty"`
	Hits      string `json:"hits,omitempty"`
	Log       string `json:"log,omitempty"`
}

type guestData struct {
	ID    int    `json:"id"`
	Frame uint64 `json:"frame"`
	Name  string `json:"name"`
}

var hitCondition = regexp.MustCompile(`^\s*(==|>=|<=|>|<|%)?\s*(\d{1,9})\s*$`)

// checkSize returns ErrRequest for too many breakpoints, or too long texts of them.
func checkSize(breakpoints, textBytes int) error {
	if breakpoints > maxBreakpoints {
		return fmt.Errorf("%w: %d breakpoints; at most %d are allowed", ErrRequest, breakpoints, maxBreakpoints)
	}
	if textBytes > maxBreakpointBytes {
		return fmt.Errorf("%w: the texts of the breakpoints have %d bytes, and may have %d; shorten them", ErrRequest,
			textBytes, maxBreakpointBytes)
	}
	return nil
}

// LineBreakpoints returns the line breakpoints, so that a client that joins shows those of the others.
func (s *Session) LineBreakpoints() []BreakpointView {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []BreakpointView{}
	for _, b := range s.stops.Lines {
		view := s.lineView(b)
		view.Condition, view.HitCondition, view.LogMessage = b.Condition, b.Hits, b.Log
		out = append(out, view)
	}
	return out
}

// SetLineBreakpoints replaces all line breakpoints. One that stays the same keeps its ID. While the program is stopped,
// Python checks the conditions at once; otherwise the clients get the event of a breakpoint whose condition is none.
func (s *Session) SetLineBreakpoints(ctx context.Context, list []LineBreakpoint) ([]BreakpointView, error) {
	bytes := 0
	for _, b := range list {
		bytes += len(b.Condition) + len(b.HitCondition) + len(b.LogMessage)
	}
	if err := checkSize(len(list), bytes); err != nil {
		return nil, err
	}
	errs := s.checkConditions(ctx, list)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.readLines()
	}
	ids := map[guestLine]int{}
	for _, b := range s.stops.Lines {
		id := b.ID
		b.ID = 0
		ids[b] = id
	}
	out := []BreakpointView{}
	s.stops.Lines = nil
	invalid := map[int]string{}
	for i, b := range list {
		line := guestLine{Line: b.Line, Condition: b.Condition, Hits: b.HitCondition, Log: b.LogMessage}
		if line.ID = ids[line]; line.ID == 0 {
			s.lastID++
			line.ID = s.lastID
		}
		view := BreakpointView{ID: line.ID, Line: b.Line, Message: noBreakpointReason(s.recording.Source, b.Line)}
		if view.Message == "" && b.HitCondition != "" && !hitCondition.MatchString(b.HitCondition) {
			view.Message = "a hit condition is a number, with an optional ==, >=, >, <=, < or % before it"
		}
		if view.Message == "" {
			invalid[line.ID] = cmp.Or(errs[i], s.invalid[line.ID])
			s.invalid[line.ID] = invalid[line.ID]
			view = s.lineView(line)
			s.stops.Lines = append(s.stops.Lines, line)
		}
		out = append(out, view)
	}
	s.invalid = invalid
	s.updateGuest()
	return out, nil
}

// checkConditions returns for each breakpoint why its condition is none, if the program is stopped and can tell.
func (s *Session) checkConditions(ctx context.Context, list []LineBreakpoint) []string {
	conditions := make([]string, len(list))
	for i, b := range list {
		conditions[i] = b.Condition
	}
	none := make([]string, len(list))
	if strings.Join(conditions, "") == "" || s.requireLive() != nil {
		return none
	}
	found, err := askFor[struct {
		Errors []string `json:"errors"`
	}](ctx, s, map[string]any{"do": "check", "conditions": conditions, "frame": 0})
	if err != nil || len(found.Errors) != len(list) {
		return none // the program tells it when it gets the breakpoints
	}
	for i, text := range found.Errors {
		found.Errors[i] = shorten(text, maxReasonChars)
	}
	return found.Errors
}

// CurrentViews returns the views of breakpoints as they are now: the program has begun since they were set.
func (s *Session) CurrentViews(views []BreakpointView) []BreakpointView {
	s.mu.Lock()
	defer s.mu.Unlock()
	views = slices.Clone(views)
	for _, b := range s.stops.Lines {
		for i := range views {
			if views[i].ID == b.ID {
				views[i] = s.lineView(b)
			}
		}
	}
	return views
}

// readLines reads the lines that have code from the recording, which begins with them. The caller holds mu.
func (s *Session) readLines() bool {
	_ = s.recording.journal.Read(func(reader *recording.Reader) error {
		if len(reader.Table().Statements()) > 0 {
			s.lines = s.recording.program.of(reader.Table(), s.recording.Source).Lines
		}
		return nil
	})
	return s.lines != nil
}

// placedLine returns the line at which a breakpoint stops, as the guest places it: the line itself, or if it has no
// code the one before that has some. It returns 0 if there is none. The caller holds mu.
func (s *Session) placedLine(line int) int {
	if s.lines == nil {
		return line
	}
	at, isExact := slices.BinarySearch(s.lines, line)
	if isExact {
		return line
	}
	if at == 0 {
		return 0
	}
	return s.lines[at-1]
}

// lineView returns the view of a line breakpoint. The caller holds mu.
func (s *Session) lineView(b guestLine) BreakpointView {
	line := s.placedLine(b.Line)
	if line == 0 {
		return BreakpointView{ID: b.ID, Line: b.Line, Message: "neither this line nor one before it has code"}
	}
	view := s.breakpointView(b.ID, line)
	if message := s.invalid[b.ID]; message != "" {
		view.Verified, view.Message = false, message
	}
	return view
}

// breakpointView returns the view of a valid breakpoint. It is verified unless the program is not recorded at present.
// The caller holds mu.
func (s *Session) breakpointView(id, line int) BreakpointView {
	if s.unrecorded != "" {
		return BreakpointView{ID: id, Line: line, Message: "the program does not stop here: " + s.unrecorded}
	}
	return BreakpointView{ID: id, Verified: true, Line: line}
}

// BreakpointLines returns the lines from first to last that can have a breakpoint.
func (s *Session) BreakpointLines(first, last int) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.readLines()
	}
	lines := []int{}
	for n := max(first, 1); n <= min(last, len(s.recording.Source)); n++ {
		if noBreakpointReason(s.recording.Source, n) == "" && s.placedLine(n) == n {
			lines = append(lines, n)
		}
	}
	return lines
}

// SetExceptionFilters replaces the exception filters: FilterRaised and FilterUncaught.
func (s *Session) SetExceptionFilters(filters []string) error {
	if err := checkSize(len(filters), 0); err != nil {
		return err
	}
	for _, f := range filters {
		if f != FilterRaised && f != FilterUncaught {
			return fmt.Errorf("%w: unknown exception filter %.100q; the filters are raised and uncaught", ErrRequest, f)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops.Exceptions = filters
	s.updateGuest()
	return nil
}

// SetDataBreakpoints replaces the variables whose change stops the program.
func (s *Session) SetDataBreakpoints(list []Variable) ([]BreakpointView, error) {
	bytes := 0
	for _, v := range list {
		bytes += len(v.Name)
	}
	if err := checkSize(len(list), bytes); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops.Data = nil
	out := []BreakpointView{}
	for _, v := range list {
		s.lastID++
		s.stops.Data = append(s.stops.Data, guestData{s.lastID, v.Frame, v.Name})
		out = append(out, s.breakpointView(s.lastID, 0))
	}
	s.updateGuest()
	return out, nil
}

// CopyBreakpoints copies the breakpoints of another session over the same code. It does not copy data breakpoints,
// because they belong to frames of the other run.
func (s *Session) CopyBreakpoints(from *Session) {
	from.mu.Lock()
	stops, last := from.stops, from.lastID
	from.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops.Lines, s.stops.Exceptions, s.lastID = stops.Lines, stops.Exceptions, last
	s.invalid, s.evaluated = map[int]string{}, evaluated{}
	s.updateGuest()
}

// SetStopOnEntry sets whether the run stops at its first line. Call it before the run begins.
func (s *Session) SetStopOnEntry(stop bool) { s.stops.Entry = stop }

// updateGuest makes a running program fetch the changed stops at its next line. The caller holds mu.
func (s *Session) updateGuest() {
	if s.running && s.state == StateRunning && s.interrupt != nil {
		s.interrupt()
	}
}

// pastBreakpoints returns the stops as FindStop takes them. It leaves out log points, which do not stop. The caller
// holds mu.
func (s *Session) pastBreakpoints() Breakpoints {
	g, steps := s.stops, s.recording.Steps()
	out := Breakpoints{
		Exceptions: slices.Contains(g.Exceptions, FilterRaised),
		Uncaught:   slices.Contains(g.Exceptions, FilterUncaught),
	}
	for _, line := range g.Lines {
		b := LineStop{Line: s.placedLine(line.Line), ID: line.ID}
		if line.Log != "" {
			continue
		}
		if found := hitCondition.FindStringSubmatch(line.Hits); found != nil {
			b.HitOp = found[1]
			b.Hits, _ = strconv.Atoi(found[2]) // at most nine digits
		}
		if line.Condition != "" {
			condition, err := expr.Parse(line.Condition)
			b.Condition, b.NeedsPython = condition, err != nil
			b.Evaluated = s.evaluated.of(line.ID, steps)
		}
		out.Lines = append(out.Lines, b)
	}
	for _, d := range g.Data {
		out.Data = append(out.Data, Variable{Frame: d.Frame, Name: d.Name})
		out.DataIDs = append(out.DataIDs, d.ID)
	}
	return out
}

// stopsWhereRaised reports whether exceptions stop the program where they are raised. The caller holds mu.
func (s *Session) stopsWhereRaised() bool { return slices.Contains(s.stops.Exceptions, FilterRaised) }
