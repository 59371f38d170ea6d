package program

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"glasshouse/debugger/recording"
)

// Statement is what the guest told about one statement of the program, as sandbox/python/guest/recorder_source.py
// writes it. Names are those of variables. A guest can forge it, so an answer may be wrong about a forged program, and
// nothing else.
type Statement struct {
	Line     int64    `json:"line"`
	End      int64    `json:"end"`      // the last line; of a compound statement, of its head; of try, of its body
	Kind     string   `json:"kind"`     // such as assign, augassign, for, if, try, except, def, return, expr
	In       int      `json:"in"`       // number of the statement that it is a part of, from 1; 0 for none
	Branch   string   `json:"branch"`   // the part of In that it is in: "else", "finally", or "" for others
	Function string   `json:"function"` // "" at the top level
	Reads    []string `json:"reads"`
	Sets     []string `json:"sets"`
	Mutates  []string `json:"mutates"` // through a subscript, an attribute or a method
	Calls    []string `json:"calls"`   // the last parts of the names of functions
	Checks   []Check  `json:"checks"`

	Comprehensions [][2]int64 `json:"comprehensions"` // first and last lines of those over several lines
	Ranges         [][2]int64 `json:"ranges"`         // of the kind lines, not a statement: the lines with code
}

// Check is an operation that often explains a wrong result. Which fields are set depends on the kind; a guest can forge
// them.
type Check struct {
	Kind   string   `json:"kind"`
	Text   string   `json:"text"` // its source
	Call   string   `json:"call"`
	Of     string   `json:"of"` // the variable that it is about
	Column string   `json:"column"`
	Keys   []string `json:"keys"`
	Args   []string `json:"args"`
	To     string   `json:"to"`
	Passes bool     `json:"passes"` // of except: it does nothing
}

// Program is the program of a recording by its statements.
type Program struct {
	Source     []string
	Lines      []int // those that have code, in order; nil if they are unknown
	Statements []Statement
	byLine     map[int64][]int // indexes of the statements at a line, the shortest first; without try
	IsGuessed  bool            // the recording does not describe its statements: names come from the text of lines
}

// New reads the descriptions of the statements in a recording. Damaged descriptions are empty.
func New(t *recording.Table, source []string) *Program {
	p := &Program{Source: source, byLine: map[int64][]int{}}
	texts := t.Statements()
	p.Statements = make([]Statement, len(texts))
	for i, text := range texts {
		if json.Unmarshal([]byte(text), &p.Statements[i]) != nil {
			p.Statements[i] = Statement{}
		}
		st := &p.Statements[i]
		if st.In > i {
			st.In = 0 // a statement comes after those that it is in
		}
		st.End = min(max(st.End, st.Line), int64(len(source)))
	}
	p.Statements = slices.DeleteFunc(p.Statements, func(st Statement) bool { // these come last
		p.addLines(st.Ranges)
		return st.Kind == "lines"
	})
	if p.IsGuessed = len(p.Statements) == 0; p.IsGuessed {
		for i, line := range source {
			p.Statements = append(p.Statements, guessedStatement(line, int64(i+1)))
		}
	}
	lines := 0
	for i, st := range p.Statements {
		for line := st.Line; st.Kind != "try" && line > 0 && line <= st.End && lines < MaxLineEntries; line++ {
			p.byLine[line] = append(p.byLine[line], i)
			lines++
		}
	}
	for _, list := range p.byLine {
		slices.SortStableFunc(list, func(a, b int) int {
			return cmp.Compare(p.Statements[a].length(), p.Statements[b].length())
		})
	}
	return p
}

// addLines adds the lines of ranges to those that have code.
func (p *Program) addLines(ranges [][2]int64) {
	for _, r := range ranges {
		for line := max(r[0], 1); line <= min(r[1], int64(len(p.Source))); line++ {
			if n := len(p.Lines); n == 0 || p.Lines[n-1] < int(line) {
				p.Lines = append(p.Lines, int(line))
			}
		}
	}
}

func (st *Statement) length() int64 { return st.End - st.Line }

// guessedStatement describes a line of a program whose statements are unknown.
func guessedStatement(line string, number int64) Statement {
	st := Statement{Line: number, End: number, Reads: NamesIn(line)}
	if left, _, found := strings.Cut(line, "="); found && !strings.ContainsAny(left, "()!<>") {
		st.Sets = NamesIn(left)
	}
	return st
}

// At returns the number of the statement at a line of a function, and 0 if there is none. It prefers a statement of the
// function, because a lambda or comprehension has lines of the statement that it is in.
func (p *Program) At(function string, line int64) int {
	if function == recording.ModuleName {
		function = ""
	}
	list := p.byLine[line]
	for _, i := range list {
		if p.Statements[i].Function == function {
			return i + 1
		}
	}
	if len(list) > 0 {
		return list[0] + 1
	}
	return 0
}

// LineOf returns the first line of a statement, or the given line if the statement is unknown.
func (p *Program) LineOf(number int, line int64) int64 {
	if number < 1 || number > len(p.Statements) {
		return line
	}
	return p.Statements[number-1].Line
}

// Get returns a statement by its number.
func (p *Program) Get(number int) *Statement {
	if number < 1 || number > len(p.Statements) {
		return &Statement{}
	}
	return &p.Statements[number-1]
}

// Text returns the source of a statement in one line.
func (p *Program) Text(st *Statement) string {
	var parts []string
	for line := st.Line; line <= st.End && line < st.Line+maxStatementLines; line++ {
		parts = append(parts, strings.TrimSpace(Line(p.Source, line)))
		if st.Kind == "try" || st.Kind == "except" {
			break
		}
	}
	return Clip(strings.Join(parts, " "), maxStatementChars)
}

const (
	maxStatementLines = 6
	maxStatementChars = 160
	MaxLineEntries    = 1 << 18 // lines of all statements, which a guest can forge
)

// IsIn reports whether a statement is a part of another one, at any depth.
func (p *Program) IsIn(number, outer int) bool {
	for number > 0 {
		if number == outer {
			return true
		}
		number = p.Get(number).In
	}
	return false
}

// LoopLines are the lines of the head and of the body of a loop.
type LoopLines struct{ Head, Body []int64 }

// HeadOf returns the statement that decides whether another one on the last line of its head runs, as in
// "if x: y = 1", and nil for others. A recording has steps of lines, so it does not show which of the two ran.
func (p *Program) HeadOf(st *Statement) *Statement {
	for number := st.In; number > 0; number = p.Get(number).In {
		outer := p.Get(number)
		if outer.End < st.Line {
			return nil
		}
		if slices.Contains([]string{"if", "while", "for", "case"}, outer.Kind) {
			return outer
		}
	}
	return nil
}

// ReadsInLine returns what the statements on the line of a head read that set or change a variable.
func (p *Program) ReadsInLine(head int, name string) (reads []string) {
	if head == 0 || name == "" {
		return nil
	}
	for i := range p.Statements {
		st := &p.Statements[i]
		if st.In == 0 || st.Line > p.Get(head).End || p.HeadOf(st) == nil || !p.IsIn(i+1, head) {
			continue
		}
		if slices.Contains(st.Sets, name) || slices.Contains(st.Mutates, name) {
			reads = append(reads, st.Reads...)
		}
	}
	return reads
}

// Assignments returns the lines of the statements that always assign to a variable, and the loops that do so at each
// turn. The variable is a local of function, or with function "" a global that the module sets.
func (p *Program) Assignments(name, function string) (lines []int64, loops []LoopLines) {
	for i := range p.Statements {
		st := &p.Statements[i]
		if st.Function != function || !slices.Contains(st.Sets, name) {
			continue
		}
		switch st.Kind {
		case "assign", "augassign", "annassign", "import", "with":
			if p.HeadOf(st) != nil {
				continue // the line may run without it
			}
			lines = st.AppendLines(lines)
		case "for":
			loop := LoopLines{Head: st.AppendLines(nil)}
			for j := i + 1; j < len(p.Statements); j++ {
				if body := &p.Statements[j]; body.In == i+1 && body.Branch == "" && body.Line > st.End {
					loop.Body = body.AppendLines(loop.Body)
				}
			}
			loops = append(loops, loop)
		}
	}
	return lines, loops
}

// MaySet reports whether a statement of a function may set a variable, such as a condition with :=.
func (p *Program) MaySet(name, function string) bool {
	return slices.ContainsFunc(p.Statements, func(st Statement) bool {
		return st.Function == function && slices.Contains(st.Sets, name)
	})
}

// AppendLines appends the lines of a statement.
func (st *Statement) AppendLines(lines []int64) []int64 {
	for line := st.Line; line <= st.End; line++ {
		lines = append(lines, line)
	}
	return lines
}

// Writers returns the lines of the statements that set or mutate a variable. The variable is a local of function, or
// with function "" a global.
func (p *Program) Writers(name, function string) []int64 {
	var out []int64
	for i := range p.Statements {
		st := &p.Statements[i]
		if function != "" && st.Function != function {
			continue
		}
		if slices.Contains(st.Sets, name) || slices.Contains(st.Mutates, name) {
			for line := st.Line; line <= st.End; line++ {
				out = append(out, line)
			}
		}
	}
	return out
}

// ChecksOf returns the statement's checks of one kind.
func (st *Statement) ChecksOf(kind string) (out []Check) {
	for _, c := range st.Checks {
		if c.Kind == kind {
			out = append(out, c)
		}
	}
	return out
}

// Has reports whether a line is one of the statement's.
func (st *Statement) Has(line int64) bool { return st.Line <= line && line <= st.End }

// Ends reports whether a record shows that an execution of the statement has ended: it has set its variable.
func (st *Statement) Ends(t *recording.Table, rec *recording.Record) bool {
	return (rec.Kind == recording.KindSet || rec.Kind == recording.KindGlobal) &&
		slices.Contains(st.Sets, t.Name(rec.Name))
}
