package debugger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"glasshouse/debugger/expr"
	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
)

// maxPageVariables bounds one page of variables.
const maxPageVariables = 500

// ValueView is a variable, a part of an object, or the value of an expression. Reference opens its parts; it is 0 if
// there are none, and valid until the session moves.
type ValueView struct {
	Name       string
	Value      string
	Type       string
	Expression string // evaluates to the value; "" if there is none
	Reference  int
	Items      int64 // number of numbered parts
	Attributes int64 // number of named parts
}

// mainThreadName is Python's name of the main thread.
const mainThreadName = "MainThread"

// ThreadView is a thread or an asyncio task.
type ThreadView struct {
	ID   uint64
	Name string
}

// CallView is a frame of a call stack.
type CallView struct {
	Frame    uint64
	Function string
	Line     int64

	IsGenerated bool // the program has made the code while it ran; Line is a line of that code
}

// ScopeView is a set of variables that a reference opens.
type ScopeView struct {
	Name      string // Locals or Globals
	Reference int
	Variables int
}

// EarlierException is an exception that led to another one: that was raised from it, or while it was handled.
type EarlierException struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	IsCause bool   `json:"is_cause"`
}

// ExceptionView is the exception at a step. Its texts are made without code of the program.
type ExceptionView struct {
	Type          string
	Message       string // "" if it has none, or if the recording does not have it
	Traceback     string // as Python writes it, of the program's own frames
	StopsIfCaught bool   // breakpoints also stop for handled exceptions

	Earlier []EarlierException // the latest first; only where the program is stopped
}

// Source returns the program.
func (s *Session) Source() string { return s.recording.sourceText() }

// viewState calls f with the state of a step.
func (s *Session) viewState(step int, f func(viewer) error) error {
	return s.recording.journal.Read(func(reader *recording.Reader) error {
		w, err := viewAt(reader, step)
		if err != nil {
			return err
		}
		return f(w)
	})
}

// Threads returns the threads that have a frame. While the program runs, it returns only the main thread.
func (s *Session) Threads() ([]ThreadView, error) {
	at, _, err := s.inspected()
	if errors.Is(err, ErrRunning) {
		return []ThreadView{{1, mainThreadName}}, nil
	}
	list := []ThreadView{}
	err = s.viewState(at, func(w viewer) error {
		seen := map[uint64]bool{}
		for _, number := range recording.SortedKeys(w.state.Frames) {
			if thread := w.state.Frames[number].Thread; !seen[thread] {
				seen[thread] = true
				list = append(list, ThreadView{thread, w.table.ThreadName(thread)})
			}
		}
		return nil
	})
	return list, err
}

// Stack returns a page of a thread's call stack, innermost first, and the number of all frames. Thread 0 is the current
// thread; with levels 0 the page has maxStackFrames.
func (s *Session) Stack(thread uint64, start, levels int) (calls []CallView, total int, err error) {
	at, _, err := s.inspected()
	if err != nil {
		return nil, 0, err
	}
	if levels <= 0 {
		levels = maxStackFrames
	}
	calls = []CallView{}
	err = s.viewState(at, func(w viewer) error {
		innermost := w.state.Current
		if f := w.state.CurrentFrame(); thread != 0 && f != nil && f.Thread != thread {
			innermost = 0 // for another thread, the innermost frame is the newest one
			for number, f := range w.state.Frames {
				if f.Thread == thread && number > innermost && !f.Suspended {
					innermost = number
				}
			}
		}
		all := []CallView{}
		if innermost == w.state.Current {
			for _, f := range s.innerFrames() {
				all = append(all, CallView{f.Frame, f.Function, f.Line, true})
			}
		}
		stack := w.state.Stack(innermost)
		total = len(all) + len(stack)
		for _, f := range page(stack, max(start-len(all), 0), max(levels-max(len(all)-start, 0), 0)) {
			calls = append(calls, CallView{f.Number, w.table.FunctionName(f.Code), f.Line, false})
		}
		calls = append(page(all, start, levels), calls...)
		return nil
	})
	return calls, total, err
}

// Scopes returns the scopes of a frame: its locals, and the namespace. A module has locals while a
// comprehension runs in its frame.
func (s *Session) Scopes(frame uint64) ([]ScopeView, error) {
	at, _, err := s.inspected()
	if err != nil {
		return nil, err
	}
	scopes, frames := []ScopeView{}, []uint64{}
	err = s.viewState(at, func(w viewer) error {
		f, isInner := w.state.Frames[frame], s.isInner(frame)
		if f == nil && !isInner {
			return fmt.Errorf("frame %d: %w", frame, recording.ErrNoFrame)
		}
		if isInner {
			scopes = append(scopes, ScopeView{Name: "Locals"})
			frames = append(frames, frame)
		} else if w.table.FunctionName(f.Code) != recording.ModuleName || len(f.Variables) > 0 {
			scopes = append(scopes, ScopeView{Name: "Locals", Variables: len(f.Variables)})
			frames = append(frames, frame)
		}
		_, total, _ := w.scope(0, 0, 0) // the namespace exists
		scopes = append(scopes, ScopeView{Name: "Globals", Variables: total})
		frames = append(frames, 0)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range scopes {
		if scopes[i].Reference, err = s.references.number(reference{isScope: true, frame: frames[i]}); err != nil {
			return nil, err
		}
	}
	return scopes, nil
}

// PartKind selects the numbered or the named parts of a value.
type PartKind int

// The kinds of parts.
const (
	AllParts PartKind = iota
	NumberedParts
	NamedParts
)

// Variables returns a page of the variables or parts that a reference opens. With count 0 the page has
// maxPageVariables.
func (s *Session) Variables(ctx context.Context, number int, kind PartKind, start, count int) ([]ValueView, error) {
	at, live, err := s.inspected()
	if err != nil {
		return nil, err
	}
	if count <= 0 || count > maxPageVariables {
		count = maxPageVariables
	}
	if isSQLReference(number) {
		return s.sqlVariables(ctx, number, start, count)
	}
	r, err := s.reference(number)
	if err != nil {
		return nil, err
	}
	if kind == NumberedParts && !r.indexed || kind == NamedParts && r.indexed && r.columns <= start {
		return []ValueView{}, nil
	}
	switch {
	case kind == NumberedParts:
		start += r.columns
	case kind == NamedParts && r.indexed:
		count = min(count, r.columns-start)
	}
	var list []VariableView
	if r.isScope && live && s.isInner(r.frame) {
		list, err = s.innerVariables(ctx, r.frame, start, count)
	} else if r.isScope {
		list, _, err = s.recording.Scope(at, r.frame, start, count)
	} else {
		list, err = s.parts(ctx, at, live, r, start, count)
	}
	if err != nil {
		return nil, err
	}
	if live && !s.isInner(r.frame) { // the program has made the texts of an inner frame
		s.addOwnTexts(ctx, r, start, list)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []ValueView{}
	for _, v := range list {
		view, err := s.valueView(v, r)
		if err != nil {
			return nil, err
		}
		out = append(out, view)
	}
	return out, nil
}

func (s *Session) reference(number int) (reference, error) {
	if isSQLReference(number) {
		return reference{}, fmt.Errorf("%w: values of a statement can only be read", ErrRequest)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.references.get(number)
}

// parts returns a page of an object's contents. At the live position it asks the program for contents that the
// recording does not have.
func (s *Session) parts(ctx context.Context, at int, live bool, r reference, start, count int) ([]VariableView, error) {
	if r.object != 0 {
		view, err := s.recording.Object(at, r.object, start, count)
		if err != nil {
			return nil, err
		}
		whole := view.Length == nil || int64(view.Kept-r.columns) >= *view.Length
		if !live || whole && r.columns == 0 || r.expression == "" {
			return view.Items, nil
		}
	}
	if !live {
		return nil, ErrPast
	}
	items, err := s.livePage(ctx, r, start, count)
	out := []VariableView{}
	for _, item := range items {
		out = append(out, item.view())
	}
	return out, err
}

// livePage returns a page of an object's contents from the program.
func (s *Session) livePage(ctx context.Context, r reference, start, count int) ([]liveView, error) {
	page, err := askFor[struct {
		Items []liveView `json:"items"`
	}](ctx, s, map[string]any{
		"do": "page", "expression": r.expression, "frame": r.frame, "start": start, "count": count,
		"columns": r.columns,
	})
	return page.Items, err
}

// Rows returns a part of the table that a reference leads to, which the program reads at the live position. It returns
// ErrPast elsewhere.
func (s *Session) Rows(ctx context.Context, number int, view sandbox.TableView) (page sandbox.TablePage, err error) {
	if err := s.requireLive(); err != nil {
		return page, err
	}
	r, err := s.reference(number)
	if err != nil {
		return page, err
	}
	if r.expression == "" {
		return page, fmt.Errorf("%w: reference %d is not a table", ErrRequest, number)
	}
	if view.Filters == nil {
		view.Filters = []sandbox.TableFilter{}
	}
	found, err := askFor[struct {
		Page sandbox.TablePage `json:"page"`
	}](ctx, s, map[string]any{"do": "rows", "expression": r.expression, "frame": r.frame, "rows": view})
	if err != nil {
		return page, err
	}
	if err := sandbox.CheckTablePage(&found.Page); err != nil {
		return page, fmt.Errorf("%w: the rows could not be read: %w", ErrRequest, err)
	}
	return found.Page, nil
}

// valueView returns a part of parent, or a value of one of its frame's variables. The caller holds mu.
func (s *Session) valueView(v VariableView, parent reference) (out ValueView, err error) {
	out = ValueView{Name: v.Name, Value: v.Value, Type: v.Type, Expression: v.Name}
	if !parent.isScope {
		out.Expression = v.path.of(parent.expression)
	}
	switch {
	case v.Length != nil && v.isAttributes:
		out.Attributes = *v.Length
	case v.Length != nil:
		out.Items, out.Attributes = *v.Length, int64(v.columns)
	}
	if v.Ref != 0 || v.Length != nil {
		out.Reference, err = s.references.number(reference{
			frame: parent.frame, object: v.Ref, indexed: v.Length != nil && !v.isAttributes, columns: v.columns,
			expression: out.Expression,
		})
	}
	return out, err
}

// Watchable returns the variable with a name: in the scope that a reference opens, or, with number 0, a variable that
// is visible at the session's position. ok is false for a part of an object, which cannot be watched.
func (s *Session) Watchable(number int, name string) (v Variable, ok bool, err error) {
	at, _, err := s.inspected()
	if err != nil {
		return v, false, err
	}
	if number <= 0 {
		v, err = s.recording.Resolve(at, name)
		return v, err == nil, err
	}
	r, err := s.reference(number)
	return Variable{Frame: r.frame, Name: name}, r.isScope, err
}

// Exception returns the exception at the session's position.
func (s *Session) Exception() (ExceptionView, error) {
	at, _, err := s.inspected()
	if err != nil {
		return ExceptionView{}, err
	}
	s.mu.Lock()
	p, e := s.position, ExceptionView{Message: s.liveMessage, StopsIfCaught: s.stopsWhereRaised()}
	s.mu.Unlock()
	if p.Reason == string(ReasonException) && p.Description != "" && p.Live {
		s.mu.Lock()
		e.Type, e.Earlier = p.Description, s.liveEarlier
		s.mu.Unlock()
	} else {
		lines, err := s.recording.Lines(at, at)
		if err != nil {
			return ExceptionView{}, err
		}
		if len(lines) == 0 || lines[0].Status != StatusException {
			return ExceptionView{}, fmt.Errorf("%w: there is no exception at this step", ErrRequest)
		}
		e.Type, e.Message, _ = strings.Cut(lines[0].Error, ": ")
	}
	e.Traceback, err = s.traceback(at, e)
	return e, err
}

// traceback returns the frames of a step in the form of a Python traceback that ends with an exception.
func (s *Session) traceback(step int, e ExceptionView) (string, error) {
	out := &strings.Builder{}
	out.WriteString("Traceback (most recent call last):\n")
	err := s.viewState(step, func(w viewer) error {
		stack := w.state.Stack(w.state.Current)
		if more := len(stack) - maxStackFrames; more > 0 {
			fmt.Fprintf(out, "  ... %d more frames\n", more)
			stack = stack[:maxStackFrames]
		}
		for _, f := range slices.Backward(stack) {
			fmt.Fprintf(out, "  line %d, in %s\n    %s\n", f.Line, w.table.FunctionName(f.Code),
				strings.TrimSpace(program.Line(s.recording.Source, f.Line)))
		}
		for _, f := range slices.Backward(s.innerFrames()) {
			fmt.Fprintf(out, "  line %d, in %s, of code that the program made\n", f.Line, f.Function)
		}
		return nil
	})
	out.WriteString(e.Type)
	if e.Message != "" {
		out.WriteString(": " + e.Message)
	}
	return out.String(), err
}

// EvaluateMode tells for what an expression is evaluated.
type EvaluateMode int

// The modes of Evaluate.
const (
	AnExpression   EvaluateMode = iota
	WithStatements              // of a console: also statements
	WholeValue                  // a copy: the whole value as text
)

// Evaluate returns the value of an expression in a frame; 0 is the current frame. At the live position the program
// evaluates the expression, and may also execute statements if the mode says so. At a past step only recorded values
// are available.
func (s *Session) Evaluate(ctx context.Context, expression string, frame uint64, mode EvaluateMode) (ValueView, error) {
	at, live, err := s.inspected()
	if err != nil {
		return ValueView{}, err
	}
	if strings.TrimSpace(expression) == "" {
		return ValueView{}, fmt.Errorf("%w: evaluate needs an expression", ErrRequest)
	}
	var v VariableView
	if live {
		var found liveView
		command := map[string]any{
			"do": "evaluate", "expression": expression, "frame": frame, "statements": mode == WithStatements,
			"whole": mode == WholeValue,
		}
		if identifier.MatchString(expression) { // it changes nothing
			found, err = askFor[liveView](ctx, s, command)
		} else {
			ranStatements := func(v liveView) bool { return v.Type == "" }
			found, err = s.change(ctx, command, expression, "", ranStatements)
		}
		v = found.view()
	} else {
		v, err = s.evaluatePast(at, expression, frame)
	}
	if err != nil {
		return ValueView{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v.Name = expression
	return s.valueView(v, reference{isScope: true, frame: frame})
}

func (s *Session) evaluatePast(step int, expression string, frame uint64) (v VariableView, err error) {
	condition, err := expr.Parse(expression)
	if err != nil {
		return v, fmt.Errorf("%w: %w; this step is in the past, where an expression may read recorded values and "+
			"assign none", ErrRequest, err)
	}
	err = s.viewState(step, func(w viewer) error {
		if frame == 0 {
			frame = w.state.Current
		}
		value, err := condition.Value(w.state, w.table, frame)
		if errors.Is(err, expr.ErrNewList) {
			v = VariableView{Value: "[...]", Type: "list"}
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRequest, err)
		}
		v = w.variable(expression, value)
		return nil
	})
	return v, err
}

// SetVariable sets a variable of the scope, or a part of the object, that a reference opens to the value of an
// expression.
func (s *Session) SetVariable(ctx context.Context, number int, name, value string) (VariableView, error) {
	if err := s.requireLive(); err != nil {
		return VariableView{}, err
	}
	r, err := s.reference(number)
	if err == nil && r.isScope {
		return s.setIn(ctx, r.frame, name, value)
	}
	part := ""
	if err == nil {
		part, err = s.partExpression(ctx, number, name)
	}
	if err != nil {
		return VariableView{}, err
	}
	return s.SetExpression(ctx, part, value, r.frame)
}

// partExpression returns the expression of the part with a name of the object that a reference opens.
func (s *Session) partExpression(ctx context.Context, number int, name string) (string, error) {
	list, err := s.Variables(ctx, number, AllParts, 0, 0)
	plain := func(name string) string { return strings.Trim(name, "[]") } // items have the names 1 and [1]
	if index, notIndex := strconv.Atoi(plain(name)); notIndex == nil && index >= len(list) && err == nil {
		list, err = s.Variables(ctx, number, NumberedParts, index, 1)
	}
	for _, part := range list {
		if plain(part.Name) == plain(name) && part.Expression != "" {
			return part.Expression, err
		}
	}
	if err == nil {
		err = fmt.Errorf("%w: no part %q can be set; evaluate an assignment", ErrRequest, name)
	}
	return "", err
}

func (s *Session) setIn(ctx context.Context, frame uint64, name, value string) (VariableView, error) {
	command := map[string]any{"do": "set", "name": name, "expression": value, "frame": frame}
	v, err := s.change(ctx, command, name+" = "+value, name, func(liveView) bool { return true })
	return v.view(), err
}

// SetExpression assigns a value to an expression, and returns the expression's new value.
func (s *Session) SetExpression(ctx context.Context, expression, value string, frame uint64) (VariableView, error) {
	if err := s.requireLive(); err != nil {
		return VariableView{}, err
	}
	if identifier.MatchString(expression) { // an assignment statement would only change a copy of a function's locals
		return s.setIn(ctx, frame, expression, value)
	}
	assignment := map[string]any{
		"do": "evaluate", "expression": expression + " = (" + value + "\n)", "frame": frame, "statements": true,
	}
	_, err := s.change(ctx, assignment, expression+" = "+value, "", func(liveView) bool { return true })
	if err != nil {
		return VariableView{}, err
	}
	return askFor[VariableView](ctx, s, map[string]any{"do": "evaluate", "expression": expression, "frame": frame})
}

// Complete returns the names that complete a text in a frame. start is the position in text, in characters, that the
// names replace.
func (s *Session) Complete(ctx context.Context, text string, frame uint64) (names []string, start int, err error) {
	if err := s.requireLive(); err != nil {
		return nil, 0, err
	}
	found, err := askFor[struct {
		Names []string `json:"names"`
		Start int      `json:"start"`
	}](ctx, s, map[string]any{"do": "complete", "text": text, "frame": frame})
	return found.Names, found.Start, err
}
