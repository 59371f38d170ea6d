package debugger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Explain tells a recording in few words: how it ended, the chain of steps that led
// there, what each function returned, and what each line did, loops folded. It keeps to
// a budget of tokens, of about bytesPerToken each; what it leaves out it counts.
func (j *Journal) Explain(source []string, budget int) (string, error) {
	j = j.still()
	d := digest{j: j, lines: map[place]*lineDigest{}, calls: map[uint64]*callDigest{}, entered: map[uint64]int{}}
	for _, c := range j.all() {
		if err := j.replay(c, d.see); err != nil {
			return "", err
		}
	}
	room := budget * bytesPerToken
	out := &strings.Builder{}
	fmt.Fprintf(out, "%d steps", j.steps())
	if d.lost > 0 {
		fmt.Fprintf(out, ", %d of them not kept", d.lost)
	}
	out.WriteString(".\n")
	if at := d.failure; at != nil {
		fmt.Fprintf(out, "Failed at step %d, line %d in %s: %s\n    %s\n", at.step, at.line, at.function, at.text, SourceLine(source, at.line))
		links, err := j.chain(at.step, at.line, source)
		if err != nil {
			return "", err
		}
		if len(links) > 0 {
			out.WriteString("What led there, last first:\n")
			write(out, links, room/2, "steps")
		}
	}
	if calls := d.functions(); len(calls) > 0 {
		out.WriteString("Functions:\n")
		write(out, calls, room*2/3, "functions")
	}
	out.WriteString("Lines, with how often they ran and what they set:\n")
	write(out, d.program(source), room-60, "lines")
	return out.String(), nil
}

const bytesPerToken = 3 // of code and numbers; prose has more

// write adds lines as long as the whole stays within room, and counts the others.
func write(out *strings.Builder, lines []string, room int, what string) {
	for i, text := range lines {
		if out.Len()+len(text)+1 > room {
			fmt.Fprintf(out, "  ... %d more %s\n", len(lines)-i, what)
			return
		}
		out.WriteString(text + "\n")
	}
}

type place struct {
	code uint64
	line int64
}

type lineDigest struct {
	count int
	sets  map[uint64]*series // by name
}

// series keeps the first two and the last two of some values.
type series struct {
	count       int
	first, last []string
}

const seriesPreview = 60

func (s *series) add(text func() string, cheap bool) {
	s.count++
	if len(s.first) < 2 {
		s.first = append(s.first, text())
		return
	}
	if cheap {
		s.last = append(s.last, text())
		if len(s.last) > 2 {
			s.last = s.last[1:]
		}
	}
}

func (s *series) String() string {
	out := strings.Join(s.first, ", ")
	if rest := s.count - len(s.first) - len(s.last); rest > 0 {
		out += ", ..."
	}
	if len(s.last) > 0 {
		out += ", " + strings.Join(s.last, ", ")
	}
	return out
}

type callDigest struct {
	count, raised int
	first, last   int // steps
	returned      series
}

type failureDigest struct {
	step     int
	line     int64
	function string
	text     string
}

// digest gathers what a recording did, record by record.
type digest struct {
	j       *Journal
	lines   map[place]*lineDigest
	calls   map[uint64]*callDigest // by code
	entered map[uint64]int         // frames, to the step before their first
	failure *failureDigest         // the exception that goes on
	current *Frame
	lost    int
}

func (d *digest) see(s *State, rec *Record) bool {
	t := &d.j.table
	left := d.current
	d.current = s.Frames[s.Current]
	switch rec.Kind {
	case KindLine:
		f := d.current
		at := place{f.Code, f.Line}
		l := d.lines[at]
		if l == nil {
			l = &lineDigest{sets: map[uint64]*series{}}
			d.lines[at] = l
		}
		l.count++
		d.failure = nil
	case KindPush:
		call := d.calls[rec.Code]
		if call == nil {
			call = &callDigest{first: s.Step}
			d.calls[rec.Code] = call
		}
		if rec.Number&FlagRestated == 0 {
			call.count++
		}
		call.last = s.Step
	case KindSet, KindGlobal:
		f := d.current
		if f == nil || f.Step == 0 || hidden(s, t, rec.Value) {
			return true
		}
		l := d.lines[place{f.Code, f.Line}]
		if l == nil {
			return true
		}
		if l.sets[rec.Name] == nil {
			l.sets[rec.Name] = &series{}
		}
		l.sets[rec.Name].add(func() string { return s.Preview(t, rec.Value, seriesPreview) }, rec.Value.Tag != TagObject)
	case KindReturn:
		if call := d.calls[codeOf(left)]; call != nil {
			call.returned.add(func() string { return s.Preview(t, rec.Value, seriesPreview) }, rec.Value.Tag != TagObject)
		}
	case KindUnwind:
		if call := d.calls[codeOf(left)]; call != nil {
			call.raised++
		}
	case KindRaise:
		if d.failure == nil {
			f := d.current
			d.failure = &failureDigest{f.Step, f.Line, t.Name(t.Code(f.Code).Name), s.Failure(t, *f.Raised)}
		}
	case KindLost:
		d.lost += int(rec.Number)
	}
	return true
}

func codeOf(f *Frame) uint64 {
	if f == nil {
		return 0
	}
	return f.Code
}

func (d *digest) functions() []string {
	var out []string
	for _, code := range slices.Sorted(maps.Keys(d.calls)) {
		call, c := d.calls[code], d.j.table.Code(code)
		name := d.j.table.Name(c.Name)
		if name == module {
			continue
		}
		text := fmt.Sprintf("  %s (line %d): called %d times from step %d to %d", name, c.First, call.count, call.first, call.last)
		if call.count == 1 {
			text = fmt.Sprintf("  %s (line %d): called once, at step %d", name, c.First, call.first)
		}
		if call.returned.count > 0 {
			text += "; returned " + call.returned.String()
		}
		if call.raised > 0 {
			text += fmt.Sprintf("; left by an exception %d times", call.raised)
		}
		out = append(out, text)
	}
	return out
}

func (d *digest) program(source []string) []string {
	places := slices.SortedFunc(maps.Keys(d.lines), func(a, b place) int { return int(a.line - b.line) })
	var out []string
	for _, at := range places {
		l := d.lines[at]
		text := fmt.Sprintf("%5d %6s  %s", at.line, fmt.Sprintf("x%d", l.count), SourceLine(source, at.line))
		var sets []string
		for _, name := range sortedKeys(l.sets) {
			sets = append(sets, d.j.table.Name(name)+" = "+l.sets[name].String())
		}
		if len(sets) > 0 {
			text += "   # " + strings.Join(sets, "; ")
		}
		out = append(out, text)
	}
	return out
}
