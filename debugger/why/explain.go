package why

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

const (
	BytesPerToken = 3  // for code and numbers; prose has more bytes a token
	seriesPreview = 60 // bytes of one value
)

// Explain describes a run in about budget tokens: how it ended, the chain of steps that led to a failure, what each
// function returned, and what each line did, with loops folded. It writes how many lines it leaves out.
func (r Run) Explain(budget int) (string, error) {
	reader := r.Reader
	d := digest{table: reader.Table(), lines: map[codeLine]*lineDigest{}, calls: map[uint64]*callDigest{}}
	d.caught.table, d.statements = reader.Table(), r.Program
	for _, c := range reader.Chunks() {
		if err := reader.Replay(c, d.see); err != nil {
			return "", err
		}
	}
	maxBytes := budget * BytesPerToken
	out := &strings.Builder{}
	fmt.Fprintf(out, "%d steps", reader.Steps())
	if lost := d.lostSteps(); lost > 0 {
		fmt.Fprintf(out, ", %d of them not recorded", lost)
	}
	out.WriteString(".\n")
	d.writeGaps(out)
	if at := d.failure; at != nil {
		fmt.Fprintf(out, "Failed at step %d, line %d in %s: %s\n    %s\n", at.step, at.line, at.function, at.text,
			program.Line(r.Program.Source, at.line))
		causes, err := r.causes(codeStep{at.step, at.line})
		if err != nil {
			return "", err
		}
		if len(causes) > 0 {
			out.WriteString("Steps that led to it, last first:\n")
			writeLines(out, causes, maxBytes/2, "steps")
		}
	}
	if edits := r.describeEdits(); len(edits) > 0 {
		out.WriteString("Changed by a person in the debugger, and not by the code:\n")
		writeLines(out, edits, maxBytes/2, "changes")
	}
	if caught := d.caughtExceptions(r.Program.Source); len(caught) > 0 {
		out.WriteString("Exceptions that the program caught:\n")
		writeLines(out, caught, maxBytes/2, "exceptions")
	}
	if earlier := d.readFromEarlier(); len(earlier) > 0 {
		out.WriteString("Variables that the program read and had not set:\n")
		writeLines(out, earlier, maxBytes*3/5, "variables")
	}
	if again := d.setAgain(); len(again) > 0 {
		out.WriteString("Variables that several lines set:\n")
		writeLines(out, again, maxBytes*3/5, "variables")
	}
	if calls := d.functions(); len(calls) > 0 {
		out.WriteString("Functions:\n")
		writeLines(out, calls, maxBytes*2/3, "functions")
	}
	out.WriteString("Lines, with how often they ran and what they set:\n")
	writeLines(out, d.program(r.Program.Source), maxBytes-60, "lines")
	return out.String(), nil
}

// writeLines writes lines while the text has at most maxBytes, and then the number of lines that it left out.
func writeLines(out *strings.Builder, lines []string, maxBytes int, noun string) {
	for i, text := range lines {
		if out.Len()+len(text)+1 > maxBytes {
			fmt.Fprintf(out, "  ... %d more %s\n", len(lines)-i, noun)
			return
		}
		out.WriteString(text + "\n")
	}
}

// digest summarises a recording, record by record.
type digest struct {
	table      *recording.Table
	lines      map[codeLine]*lineDigest
	calls      map[uint64]*callDigest // by code
	failure    *failureDigest         // the exception that no code has handled yet
	current    *recording.Frame
	gaps       []recording.Gap
	caught     handledTracker
	statements *program.Program
	initial    map[string]string // variables that existed before the first step, without definitions
	setFrom    map[string]int    // by variable: the step that set it first in this run
}

type codeLine struct {
	code uint64
	line int64
}

type lineDigest struct {
	count   int
	first   int                     // step
	sets    map[uint64]*valueSeries // by name
	changes map[string]bool         // variables whose objects it changed in place
	changed map[uint64]bool         // the objects
}

type callDigest struct {
	count, raised int
	first, last   int // steps
	returned      valueSeries
}

type failureDigest struct {
	step     int
	line     int64
	function string
	text     string
}

// valueSeries keeps the first two and the last two values of a series.
type valueSeries struct {
	count       int
	first, last []string
}

func (s *valueSeries) String() string {
	out := strings.Join(s.first, ", ")
	if s.count > len(s.first)+len(s.last) {
		out += ", ..."
	}
	if len(s.last) > 0 {
		out += ", " + strings.Join(s.last, ", ")
	}
	return out
}

// addValue adds a value to a series. Previews of objects are slow, so only the first two of them are kept.
func (d *digest) addValue(series *valueSeries, s *recording.State, v recording.Value) {
	series.count++
	isFirst := len(series.first) < 2
	if !isFirst && v.Tag == recording.TagObject {
		return
	}
	text := s.Preview(d.table, v, seriesPreview)
	if isFirst {
		series.first = append(series.first, text)
		return
	}
	series.last = append(series.last, text)
	if len(series.last) > 2 {
		series.last = series.last[1:]
	}
}

func (d *digest) see(s *recording.State, rec *recording.Record) bool {
	left := d.current
	d.current = s.CurrentFrame()
	d.caught.see(s, rec)
	switch rec.Kind {
	case recording.KindLine:
		if d.initial == nil {
			d.keepInitial(s)
		}
		at := codeLine{d.current.Code, d.current.Line}
		if d.lines[at] == nil {
			d.lines[at] = &lineDigest{first: s.Step, sets: map[uint64]*valueSeries{}, changes: map[string]bool{},
				changed: map[uint64]bool{}}
		}
		d.lines[at].count++
		d.failure = nil
	case recording.KindPush:
		call := d.calls[rec.Code]
		if call == nil {
			call = &callDigest{first: s.Step}
			d.calls[rec.Code] = call
		}
		if rec.Number&recording.FlagRestated == 0 {
			call.count++
		}
		call.last = s.Step
	case recording.KindSet, recording.KindGlobal:
		f := d.current
		if s.Edit > 0 { // no line set it
			return true
		}
		if f == nil || f.Step == 0 || s.IsDefinition(d.table, rec.Value) {
			return true
		}
		line := d.lines[codeLine{f.Code, f.Line}]
		if line == nil {
			return true
		}
		if name := d.table.Name(rec.Name); rec.Kind == recording.KindGlobal && d.setFrom[name] == 0 {
			d.setFrom[name] = f.Step
		}
		if line.sets[rec.Name] == nil {
			line.sets[rec.Name] = &valueSeries{}
		}
		d.addValue(line.sets[rec.Name], s, rec.Value)
	case recording.KindMutate:
		d.seeMutation(s, rec)
	case recording.KindReturn:
		if call := d.callOf(left); call != nil {
			d.addValue(&call.returned, s, rec.Value)
		}
	case recording.KindUnwind:
		if call := d.callOf(left); call != nil {
			call.raised++
		}
	case recording.KindRaise:
		if d.failure == nil {
			f := d.current
			d.failure = &failureDigest{f.Step, f.Line, d.table.FunctionName(f.Code),
				s.ExceptionText(d.table, *f.Raised)}
		}
	case recording.KindLost:
		d.gaps = append(d.gaps, recording.GapOf(s, rec))
	}
	return true
}

// keepInitial keeps the variables that exist before the first step.
func (d *digest) keepInitial(s *recording.State) {
	d.initial, d.setFrom = map[string]string{}, map[string]int{}
	for _, n := range recording.SortedKeys(s.Globals) {
		if v := s.Globals[n]; !s.IsDefinition(d.table, v) {
			d.initial[d.table.Name(n)] = s.Preview(d.table, v, seriesPreview)
		}
	}
}

// maxMutations bounds the objects of one line whose variables are looked up, because that takes time.
const maxMutations = 4

// seeMutation notes which variables hold an object that a line has changed.
func (d *digest) seeMutation(s *recording.State, rec *recording.Record) {
	f := d.current
	if rec.ReadDeeper || s.Edit > 0 || f == nil || f.Step == 0 {
		return
	}
	line := d.lines[codeLine{f.Code, f.Line}]
	if line == nil || line.changed[rec.Object.Number] || len(line.changed) >= maxMutations {
		return
	}
	line.changed[rec.Object.Number] = true
	names := map[uint64]bool{}
	recording.AddHolders(s, map[uint64]bool{rec.Object.Number: true}, names, f.Variables, s.Globals)
	for n := range names {
		line.changes[d.table.Name(n)] = true
	}
}

// caughtExceptions returns one line of text for each exception that the program caught.
func (d *digest) caughtExceptions(source []string) (out []string) {
	for _, h := range d.caught.list {
		out = append(out, fmt.Sprintf("  line %d: %s", h.line, h.describe("was caught", true, source)))
	}
	return out
}

// readFromEarlier returns the variables that a line read before the run set them: those of earlier runs or the context.
func (d *digest) readFromEarlier() (out []string) {
	read := map[string]bool{}
	for at, l := range d.lines {
		for _, name := range d.statements.Get(d.statements.At(d.table.FunctionName(at.code), at.line)).Reads {
			if set := d.setFrom[name]; set == 0 || l.first <= set {
				read[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(read)) {
		if value, ok := d.initial[name]; ok {
			out = append(out, "  "+name+" = "+value)
		}
	}
	return out
}

// setAgain returns the global variables that more than one line assigned without reading them, with these lines.
func (d *digest) setAgain() (out []string) {
	lines := map[string][]int64{}
	for at, l := range d.lines {
		st := d.statements.Get(d.statements.At(d.table.FunctionName(at.code), at.line))
		for n := range l.sets {
			name := d.table.Name(n)
			if d.setFrom[name] > 0 && st.Kind == "assign" && st.Function == "" && !slices.Contains(st.Reads, name) {
				lines[name] = append(lines[name], at.line)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		list := lines[name]
		slices.Sort(list)
		if list = slices.Compact(list); len(list) > 1 {
			out = append(out, fmt.Sprintf("  %s: lines %s", name, strings.ReplaceAll(strings.Trim(fmt.Sprint(list),
				"[]"), " ", ", ")))
		}
	}
	return out
}

func (d *digest) lostSteps() (sum int) {
	for _, gap := range d.gaps {
		sum += gap.Steps
	}
	return sum
}

// maxExplainedGaps bounds the gaps that an explanation lists.
const maxExplainedGaps = 3

func (d *digest) writeGaps(out *strings.Builder) {
	for _, gap := range d.gaps[:min(len(d.gaps), maxExplainedGaps)] {
		fmt.Fprintf(out, "Not recorded: %s.\n", gap)
	}
	if more := len(d.gaps) - maxExplainedGaps; more > 0 {
		fmt.Fprintf(out, "  ... %d more gaps\n", more)
	}
}

func (d *digest) callOf(f *recording.Frame) *callDigest {
	if f == nil {
		return nil
	}
	return d.calls[f.Code]
}

// functions returns one line of text for each function.
func (d *digest) functions() []string {
	var out []string
	for _, code := range recording.SortedKeys(d.calls) {
		call, c := d.calls[code], d.table.Code(code)
		name := d.table.Name(c.Name)
		if name == recording.ModuleName {
			continue
		}
		text := fmt.Sprintf("  %s (line %d): called %d times from step %d to %d", name, c.First, call.count,
			call.first, call.last)
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

// program returns one line of text for each line that ran.
func (d *digest) program(source []string) []string {
	var out []string
	for _, at := range slices.SortedFunc(maps.Keys(d.lines),
		func(a, b codeLine) int { return cmp.Compare(a.line, b.line) }) {
		l := d.lines[at]
		text := fmt.Sprintf("%5d %6s  %s", at.line, fmt.Sprintf("x%d", l.count), program.Line(source, at.line))
		var sets []string
		for _, name := range recording.SortedKeys(l.sets) {
			sets = append(sets, d.table.Name(name)+" = "+l.sets[name].String())
		}
		if names := slices.Sorted(maps.Keys(l.changes)); len(names) > 0 {
			sets = append(sets, "changed in place: "+strings.Join(names, ", "))
		}
		if len(sets) > 0 {
			text += "   # " + strings.Join(sets, "; ")
		}
		out = append(out, text)
	}
	return out
}
