package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/sandbox"
)

// Bounds of the facts of one answer.
const (
	maxFactFindings   = 8
	maxFactStatements = 200
	maxOtherFacts     = 12 // in the text
	minFactFinding    = 50 // the score from which a fact is a finding
	minOtherFact      = 25 // the score from which a fact is in the text
	maxFactCode       = 60 // bytes of an expression in a text
	maxFactText       = 300
)

// Statements returns the first and the last line of each statement of the answer, and of those of the functions that
// they call: facts can be looked for there.
func (y *Answer) Statements() [][2]int64 { return y.statements }

// listStatements sets the lines of the statements of the answer.
func (w *slicer) listStatements() {
	called := map[string]bool{}
	add := func(first, last int64, calls []string) {
		if each := [2]int64{first, max(first, last)}; !slices.Contains(w.out.statements, each) {
			w.out.statements = append(w.out.statements, each)
		}
		for _, name := range calls {
			called[name] = true
		}
	}
	for _, node := range w.nodes {
		if st := w.program.Get(node.statement); st.Line > 0 {
			add(st.Line, st.End, st.Calls)
			for _, each := range w.deciding(st) {
				add(each.Line, each.End, each.Calls)
			}
		} else if node.Line > 0 {
			add(node.Line, node.Line, nil)
		}
	}
	for seen := -1; seen != len(w.out.statements) && seen < maxFactStatements; {
		seen = len(w.out.statements)
		for i := range w.program.Statements {
			st := &w.program.Statements[i]
			if name := st.Function[strings.LastIndexByte(st.Function, '.')+1:]; called[name] && st.Kind != "lines" {
				add(st.Line, st.End, st.Calls)
			}
		}
	}
}

// deciding returns the conditions under which a statement runs, and the statements that set what they read.
func (w *slicer) deciding(st *program.Statement) (list []*program.Statement) {
	for number := st.In; number > 0; {
		outer := w.program.Get(number)
		number = outer.In
		if outer.Kind != "if" && outer.Kind != "while" {
			continue
		}
		list = append(list, outer)
		for i := range w.program.Statements {
			setter := &w.program.Statements[i]
			if setter.Function == st.Function && slices.ContainsFunc(setter.Sets, func(name string) bool {
				return slices.Contains(outer.Reads, name)
			}) {
				list = append(list, setter)
			}
		}
	}
	return list
}

// listNotLooked sets what an answer does not examine.
func (w *slicer) listNotLooked() {
	w.out.listUnseenSQL(nil)
	if w.question.WithoutFacts {
		w.out.NotLooked = append(w.out.NotLooked, "what the expressions got and gave (facts=false)")
	}
	if len(w.out.Earlier) > 0 {
		w.out.NotLooked = append(w.out.NotLooked, "what earlier executions of the session did")
	}
}

// leastScores are the scores to which facts are raised, by kind. Merges that repeat rows of one side are scored low in
// the guest, because many are meant to; the text must have them, for they changed the value in 2 of 94 wrong analyses.
var leastScores = map[string]int{"multiplied": minEvidentScore - 1}

// AddFacts adds what a replay found about the values of the statements. notLooked is what the replay did not look at,
// and why; "" if it did. budget is that of the question, in tokens.
func (y *Answer) AddFacts(facts []sandbox.Fact, notLooked string, budget int) {
	if budget == 0 {
		budget = defaultWhyBudget
	}
	y.Facts = slices.Clone(facts)
	if notLooked != "" {
		y.NotLooked = append(y.NotLooked, notLooked)
	}
	for i := range y.Facts {
		y.Facts[i].Score = max(y.Facts[i].Score, leastScores[y.Facts[i].Kind])
	}
	slices.SortStableFunc(y.Facts, func(a, b sandbox.Fact) int { return cmp.Compare(b.Score, a.Score) })
	for _, f := range y.Facts[:min(len(y.Facts), maxFactFindings)] {
		if f.Score >= minFactFinding {
			y.Findings = append(y.Findings, Finding{
				Kind: f.Kind, Line: f.Line, Step: y.stepAt(f.Line), Score: f.Score, Text: factText(&f),
			})
		}
	}
	slices.SortStableFunc(y.Findings, func(a, b Finding) int { return cmp.Compare(b.Score, a.Score) })
	y.Text = y.text(budget)
}

// stepAt returns the step of the answer in a line, and 0 if there is none.
func (y *Answer) stepAt(line int64) int {
	for _, s := range y.Steps {
		if s.Line <= line && line <= max(s.Line, s.lastLine) {
			return s.Step
		}
	}
	return 0
}

func factText(f *sandbox.Fact) string {
	return program.Clip(oneLine(f.Code), maxFactCode) + ": " + program.Clip(oneLine(f.Text), maxFactText)
}

// oneLine returns a text of the guest without its line ends.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// factLines returns the facts that are not findings as lines, the last line of the code first.
func (y *Answer) factLines() (lines []string) {
	others := slices.Clone(y.Facts)
	others = slices.DeleteFunc(others, func(f sandbox.Fact) bool {
		return f.Score >= minFactFinding || f.Score < minOtherFact
	})
	others = others[:min(len(others), maxOtherFacts)]
	slices.SortStableFunc(others, func(a, b sandbox.Fact) int { return cmp.Compare(b.Line, a.Line) })
	for _, f := range others {
		lines = append(lines, fmt.Sprintf("  line %d: %s", f.Line, factText(&f)))
	}
	return lines
}
