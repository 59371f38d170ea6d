package debugger

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"glasshouse/debugger/recording"
)

// statement is what the guest told about one statement of the program, as sandbox/python/guest/recorder_source.py
// writes it. Names are those of variables. A guest can forge it, so an answer may be wrong about a forged program, and
// nothing else.
type statement struct {
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
	Checks   []check  `json:"checks"`

	Comprehensions [][2]int64 `json:"comprehensions"` // first and last lines of those over several lines
	Ranges         [][2]int64 `json:"ranges"`         // of the kind lines, not a statement: the lines with code
}

// check is an operation that often explains a wrong result. Which fields are set depends on the kind.
type check struct {
	Kind      string            `json:"kind"`
	Text      string            `json:"text"` // its source
	Call      string            `json:"call"`
	Of        string            `json:"of"` // the variable that it is about
	Right     string            `json:"right"`
	How       string            `json:"how"`
	Column    string            `json:"column"`
	Columns   []string          `json:"columns"`
	Names     []string          `json:"names"`
	Keys      []string          `json:"keys"`
	RightKeys []string          `json:"right_keys"`
	Args      []string          `json:"args"`
	Given     map[string]string `json:"given"`
	Library   string            `json:"library"`
	Axis      string            `json:"axis"`
	DDOF      string            `json:"ddof"`
	Skips     string            `json:"skips"`
	To        string            `json:"to"`
	First     int64             `json:"first"`
	Last      int64             `json:"last"`
	Passes    bool              `json:"passes"`
	Strict    bool              `json:"strict"`
	Validated bool              `json:"validated"`
	Keeps     bool              `json:"keeps"`
	Ignores   bool              `json:"ignores"`
	Partial   bool              `json:"partial"` // Of, Right or the result may have other rows than the variables
	Zone      bool              `json:"zone"`
}

// program is the program of a recording by its statements.
type program struct {
	source     []string
	lines      []int // those that have code, in order; nil if they are unknown
	statements []statement
	byLine     map[int64][]int // indexes of the statements at a line, the shortest first; without try
	isGuessed  bool            // the recording does not describe its statements: names come from the text of lines
}

// programCache keeps the program of a recording, because decoding its statements takes time.
type programCache struct {
	mu      sync.Mutex
	program *program
	texts   int // statements that were there
}

// of returns the program of a recording.
func (c *programCache) of(t *recording.Table, source []string) *program {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(t.Statements()); c.program == nil || c.texts != n {
		c.program, c.texts = newProgram(t, source), n
	}
	return c.program
}

// newProgram reads the descriptions of the statements in a recording. Damaged descriptions are empty.
func newProgram(t *recording.Table, source []string) *program {
	p := &program{source: source, byLine: map[int64][]int{}}
	texts := t.Statements()
	p.statements = make([]statement, len(texts))
	for i, text := range texts {
		if json.Unmarshal([]byte(text), &p.statements[i]) != nil {
			p.statements[i] = statement{}
		}
		st := &p.statements[i]
		if st.In > i {
			st.In = 0 // a statement comes after those that it is in
		}
		st.End = min(max(st.End, st.Line), int64(len(source)))
	}
	p.statements = slices.DeleteFunc(p.statements, func(st statement) bool { // these come last
		p.addLines(st.Ranges)
		return st.Kind == "lines"
	})
	if p.isGuessed = len(p.statements) == 0; p.isGuessed {
		for i, line := range source {
			p.statements = append(p.statements, guessedStatement(line, int64(i+1)))
		}
	}
	lines := 0
	for i, st := range p.statements {
		for line := st.Line; st.Kind != "try" && line > 0 && line <= st.End && lines < maxStatementLineEntries; line++ {
			p.byLine[line] = append(p.byLine[line], i)
			lines++
		}
	}
	for _, list := range p.byLine {
		slices.SortStableFunc(list, func(a, b int) int {
			return cmp.Compare(p.statements[a].length(), p.statements[b].length())
		})
	}
	return p
}

// addLines adds the lines of ranges to those that have code.
func (p *program) addLines(ranges [][2]int64) {
	for _, r := range ranges {
		for line := max(r[0], 1); line <= min(r[1], int64(len(p.source))); line++ {
			if n := len(p.lines); n == 0 || p.lines[n-1] < int(line) {
				p.lines = append(p.lines, int(line))
			}
		}
	}
}

func (st *statement) length() int64 { return st.End - st.Line }

// guessedStatement describes a line of a program whose statements are unknown.
func guessedStatement(line string, number int64) statement {
	st := statement{Line: number, End: number, Reads: namesIn(line)}
	if left, _, found := strings.Cut(line, "="); found && !strings.ContainsAny(left, "()!<>") {
		st.Sets = namesIn(left)
	}
	return st
}

// at returns the number of the statement at a line of a function, and 0 if there is none. It prefers a statement of the
// function, because a lambda or comprehension has lines of the statement that it is in.
func (p *program) at(function string, line int64) int {
	if function == recording.ModuleName {
		function = ""
	}
	list := p.byLine[line]
	for _, i := range list {
		if p.statements[i].Function == function {
			return i + 1
		}
	}
	if len(list) > 0 {
		return list[0] + 1
	}
	return 0
}

// lineOf returns the first line of a statement, or the given line if the statement is unknown.
func (p *program) lineOf(number int, line int64) int64 {
	if number < 1 || number > len(p.statements) {
		return line
	}
	return p.statements[number-1].Line
}

// get returns a statement by its number.
func (p *program) get(number int) *statement {
	if number < 1 || number > len(p.statements) {
		return &statement{}
	}
	return &p.statements[number-1]
}

// text returns the source of a statement in one line.
func (p *program) text(st *statement) string {
	var parts []string
	for line := st.Line; line <= st.End && line < st.Line+maxStatementLines; line++ {
		parts = append(parts, strings.TrimSpace(SourceLine(p.source, line)))
		if st.Kind == "try" || st.Kind == "except" {
			break
		}
	}
	return clip(strings.Join(parts, " "), maxStatementChars)
}

const (
	maxStatementLines       = 6
	maxStatementChars       = 160
	maxStatementLineEntries = 1 << 18 // lines of all statements, which a guest can forge
)

// isIn reports whether a statement is a part of another one, at any depth.
func (p *program) isIn(number, outer int) bool {
	for number > 0 {
		if number == outer {
			return true
		}
		number = p.get(number).In
	}
	return false
}

// loopLines are the lines of the head and of the body of a loop.
type loopLines struct{ head, body []int64 }

// headOf returns the statement that decides whether another one on the last line of its head runs, as in
// "if x: y = 1", and nil for others. A recording has steps of lines, so it does not show which of the two ran.
func (p *program) headOf(st *statement) *statement {
	for number := st.In; number > 0; number = p.get(number).In {
		outer := p.get(number)
		if outer.End < st.Line {
			return nil
		}
		if slices.Contains([]string{"if", "while", "for", "case"}, outer.Kind) {
			return outer
		}
	}
	return nil
}

// readsInLine returns what the statements on the line of a head read that set or change a variable.
func (p *program) readsInLine(head int, name string) (reads []string) {
	if head == 0 || name == "" {
		return nil
	}
	for i := range p.statements {
		st := &p.statements[i]
		if st.In == 0 || st.Line > p.get(head).End || p.headOf(st) == nil || !p.isIn(i+1, head) {
			continue
		}
		if slices.Contains(st.Sets, name) || slices.Contains(st.Mutates, name) {
			reads = append(reads, st.Reads...)
		}
	}
	return reads
}

// assignments returns the lines of the statements that always assign to a variable, and the loops that do so at each
// turn. The variable is a local of function, or with function "" a global that the module sets.
func (p *program) assignments(name, function string) (lines []int64, loops []loopLines) {
	for i := range p.statements {
		st := &p.statements[i]
		if st.Function != function || !slices.Contains(st.Sets, name) {
			continue
		}
		switch st.Kind {
		case "assign", "augassign", "annassign", "import", "with":
			if p.headOf(st) != nil {
				continue // the line may run without it
			}
			lines = st.appendLines(lines)
		case "for":
			loop := loopLines{head: st.appendLines(nil)}
			for j := i + 1; j < len(p.statements); j++ {
				if body := &p.statements[j]; body.In == i+1 && body.Branch == "" && body.Line > st.End {
					loop.body = body.appendLines(loop.body)
				}
			}
			loops = append(loops, loop)
		}
	}
	return lines, loops
}

// maySet reports whether a statement of a function may set a variable, such as a condition with :=.
func (p *program) maySet(name, function string) bool {
	return slices.ContainsFunc(p.statements, func(st statement) bool {
		return st.Function == function && slices.Contains(st.Sets, name)
	})
}

// appendLines appends the lines of a statement.
func (st *statement) appendLines(lines []int64) []int64 {
	for line := st.Line; line <= st.End; line++ {
		lines = append(lines, line)
	}
	return lines
}

// writers returns the lines of the statements that set or mutate a variable. The variable is a local of function, or
// with function "" a global.
func (p *program) writers(name, function string) []int64 {
	var out []int64
	for i := range p.statements {
		st := &p.statements[i]
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

// checksOf returns the statement's checks of one kind.
func (st *statement) checksOf(kind string) (out []check) {
	for _, c := range st.Checks {
		if c.Kind == kind {
			out = append(out, c)
		}
	}
	return out
}
