package debugger

import (
	"maps"
	"slices"
	"strings"
)

// What one Line shows.
const (
	lineVariables = 50
	linePreview   = 200
	lineCode      = 500
)

// The statuses of a Line.
const (
	StatusExecuted   = "executed"
	StatusException  = "exception"
	StatusLost       = "lost"
	StatusUnfinished = "unfinished" // the run was ended in it
)

// Line is a step told when it is over: a line that ran, and what it left. Where it
// calls other lines of the user's it is told ahead of them, and DuringCall says so.
type Line struct {
	Step       int
	Number     int64 // 0 where steps were lost
	Code       string
	Function   string
	Frame      uint64
	Lane       uint64
	Status     string
	Error      string // "ValueError: ...", or why steps were lost
	DuringCall bool
	Variables  map[string]string // previews
	Changed    []string          // of them; also what is gone
	Unread     string            // why there are none
}

// Plain tells a recording as Lines. The end of a line that was told during a call is
// told again only where it failed, or where it ends its frame and changed something:
// no change goes unseen.
type Plain struct {
	table   *Table
	source  []string
	tell    func(Line)
	open    map[uint64]*openLine // by frame
	scopes  map[uint64]*scope    // by frame; 0 is the namespace
	current uint64
	mutated []uint64 // objects, in the order of their changes
	from    int      // steps before are not told, only followed
}

type openLine struct {
	frame *Frame
	step  int
	line  int64
	told  bool
}

// scope is what was told last of a frame's variables.
type scope struct {
	values   map[uint64]Value
	previews map[uint64]string
	mutated  int // how many changes of objects were known then
}

// Source splits code into lines as Python does.
func Source(code string) []string {
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(code, "\r\n", "\n"), "\r", "\n"), "\n")
}

// NewPlain returns a teller for a recording that begins in state s.
func NewPlain(t *Table, s *State, source []string, tell func(Line)) *Plain {
	p := &Plain{table: t, source: source, tell: tell, open: map[uint64]*openLine{}, scopes: map[uint64]*scope{}, current: s.Current}
	calls := map[uint64]bool{}
	for _, f := range s.Frames {
		calls[f.Parent] = true
	}
	for number, f := range s.Frames {
		if f.Step > 0 && !f.Suspended {
			p.open[number] = &openLine{f, f.Step, f.Line, calls[number]}
		}
		if f.Step > 0 {
			p.look(s, f)
		}
	}
	return p
}

// See takes a record that has been applied to s.
func (p *Plain) See(s *State, rec *Record) {
	left := p.current
	p.current = s.Current
	switch rec.Kind {
	case KindLine:
		f := s.Frames[s.Current]
		if line := p.open[f.Number]; line != nil && !line.told {
			p.over(s, line, Line{Status: StatusExecuted})
		}
		p.look(s, f)
		p.open[f.Number] = &openLine{frame: f, step: s.Step, line: f.Line}
	case KindPush, KindResume:
		if line := p.open[rec.Parent]; line != nil && !line.told {
			p.over(s, line, Line{Status: StatusExecuted, DuringCall: true})
			line.told = true
		}
	case KindRaise:
		if line := p.open[s.Current]; line != nil {
			delete(p.open, s.Current)
			p.over(s, line, Line{Status: StatusException, Error: s.failure(p.table, rec)})
		}
	case KindReturn, KindSuspend, KindUnwind:
		p.leave(s, left, rec)
	case KindMutate:
		if rec.Number != Deeper {
			p.mutated = append(p.mutated, rec.Object.Number)
		}
	case KindLost:
		clear(p.open)
		clear(p.scopes)
		p.tell(Line{Step: s.Step, Status: StatusLost, Error: rec.Text, Variables: map[string]string{}})
	}
}

// End tells the lines that were not over when the run was ended.
func (p *Plain) End(s *State) {
	for _, number := range sortedKeys(s.Frames) {
		if line := p.open[number]; line != nil && !line.told {
			p.over(s, line, Line{Status: StatusUnfinished})
		}
	}
	clear(p.open)
}

func (p *Plain) leave(s *State, left uint64, rec *Record) {
	line := p.open[left]
	delete(p.open, left)
	if line != nil {
		switch {
		case rec.Kind == KindUnwind:
			p.over(s, line, Line{Status: StatusException, Error: s.failure(p.table, rec)})
		case !line.told || p.changed(s, line.frame):
			p.over(s, line, Line{Status: StatusExecuted})
		}
	}
	if rec.Kind != KindSuspend {
		delete(p.scopes, left)
	}
}

// over completes a line and tells it.
func (p *Plain) over(s *State, open *openLine, line Line) {
	f := open.frame
	if open.step < p.from {
		key, _ := p.scope(s, f)
		delete(p.scopes, key)
		p.look(s, f)
		return
	}
	code := p.table.Code(f.Code)
	line.Step, line.Number, line.Function, line.Frame, line.Lane = open.step, open.line, p.table.Name(code.Name), f.Number, f.Lane
	line.Code = SourceLine(p.source, open.line)
	line.Unread = p.table.Name(f.Unread)
	key, values := p.scope(s, f)
	before := p.scopes[key]
	if before == nil {
		before = &scope{}
	}
	now := &scope{values: map[uint64]Value{}, previews: map[uint64]string{}, mutated: len(p.mutated)}
	line.Variables = map[string]string{}
	for _, name := range sortedKeys(values) {
		v := values[name]
		if hidden(s, p.table, v) {
			continue
		}
		if len(line.Variables) >= lineVariables {
			break
		}
		old, had := before.values[name]
		same := had && old == v && !p.reaches(s, v, before.mutated)
		preview, known := before.previews[name]
		if !same || !known {
			preview = s.Preview(p.table, v, linePreview)
		}
		now.values[name], now.previews[name] = v, preview
		line.Variables[p.table.Name(name)] = preview
		if !same {
			line.Changed = append(line.Changed, p.table.Name(name))
		}
	}
	for _, name := range sortedKeys(before.values) {
		if _, still := values[name]; !still {
			line.Changed = append(line.Changed, p.table.Name(name))
		}
	}
	p.scopes[key] = now
	p.tell(line)
}

// look keeps the variables of a scope at its first line: what a call gives is no change.
func (p *Plain) look(s *State, f *Frame) {
	key, values := p.scope(s, f)
	if p.scopes[key] == nil {
		shown := maps.Clone(values)
		maps.DeleteFunc(shown, func(_ uint64, v Value) bool { return hidden(s, p.table, v) })
		p.scopes[key] = &scope{values: shown, mutated: len(p.mutated)}
	}
}

func (p *Plain) changed(s *State, f *Frame) bool {
	key, values := p.scope(s, f)
	before := p.scopes[key]
	if before == nil {
		return false
	}
	seen := 0
	for name, v := range values {
		if hidden(s, p.table, v) {
			continue
		}
		seen++
		if old, had := before.values[name]; len(before.values) < lineVariables && (!had || old != v || p.reaches(s, v, before.mutated)) {
			return true
		}
	}
	return seen < len(before.values)
}

// scope is where a frame's variables are: those of a module are the namespace's.
func (p *Plain) scope(s *State, f *Frame) (uint64, map[uint64]Value) {
	if p.table.Name(p.table.Code(f.Code).Name) == module {
		return 0, s.Globals
	}
	return f.Number, f.Variables
}

// reaches says whether v holds an object that has changed since.
func (p *Plain) reaches(s *State, v Value, since int) bool {
	changes := p.mutated[since:]
	if v.Tag != TagObject || len(changes) == 0 {
		return false
	}
	if len(changes) > 64 { // of a loop: most are the same
		changes = slices.Clone(changes)
		slices.Sort(changes)
		changes = slices.Compact(changes)
	}
	return slices.ContainsFunc(s.Reachable(v), func(n uint64) bool { return slices.Contains(changes, n) })
}

const module = "<module>"

// furniture is what code defines and imports, rather than computes.
var furniture = map[string]bool{"module": true, "function": true, "builtin_function_or_method": true, "type": true, "abc.ABCMeta": true, "enum.EnumType": true}

func hidden(s *State, t *Table, v Value) bool {
	return v.Tag == TagObject && furniture[s.TypeOf(t, v)]
}

// failure is the exception of a raise or unwind: its type, and its message where it is
// a scalar.
func (s *State) failure(t *Table, rec *Record) string {
	return s.Failure(t, Raised{rec.Name, rec.Value})
}

// Failure writes an exception as the last line of a traceback.
func (s *State) Failure(t *Table, r Raised) string {
	switch r.Message.Tag {
	case TagNone:
		return t.Name(r.Type)
	case TagText, TagTextCut:
		return t.Name(r.Type) + ": " + r.Message.Text
	}
	return t.Name(r.Type) + ": " + s.Preview(t, r.Message, linePreview)
}

// SourceLine is one line of code, without the space at its end; "" where there is none.
func SourceLine(source []string, n int64) string {
	if n < 1 || n > int64(len(source)) {
		return ""
	}
	text := strings.TrimRight(source[n-1], " \t\f")
	if len(text) > lineCode {
		text = strings.ToValidUTF8(text[:lineCode], "") + "..."
	}
	return text
}
