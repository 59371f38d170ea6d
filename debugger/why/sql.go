package why

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/sandbox/stages"
)

// Bounds of the SQL of one answer.
const (
	maxStageLines     = 12  // of all queries, in the text
	maxStageLineBytes = 240 // of one of them
)

// SQL is what the stages of a query behind the value show.
type SQL struct {
	Number    int            // of the query
	Stages    *stages.Stages // nil: they were not looked at
	NotLooked string         // why not
}

// AddSQL adds what the stages of the queries behind the value show, as they run now. budget is that of the question, in
// tokens.
func (y *Answer) AddSQL(list []SQL, budget int) {
	if budget == 0 {
		budget = defaultWhyBudget
	}
	reasons := map[int]string{}
	for _, s := range list {
		i := slices.IndexFunc(y.Queries, func(q Query) bool { return q.Number == s.Number })
		if i < 0 {
			continue
		}
		if reasons[s.Number] = s.NotLooked; s.Stages == nil {
			continue
		}
		q := &y.Queries[i]
		q.Stages, q.SQLFindings, q.SameResult = s.Stages.BlockLines(), s.Stages.Findings, s.Stages.SameResult
		line := y.lineAt(q.Step)
		for _, f := range s.Stages.Findings {
			y.Findings = append(y.Findings, Finding{
				Kind: f.Kind, Step: q.Step, Line: line, Score: f.Score,
				Text: fmt.Sprintf("query %d, its line %d: %s", q.Number, f.Line, f.Text),
			})
		}
		for _, what := range s.Stages.NotLooked {
			y.NotLooked = append(y.NotLooked, fmt.Sprintf("of query %d: %s", q.Number, what))
		}
	}
	slices.SortStableFunc(y.Findings, func(a, b Finding) int { return cmp.Compare(b.Score, a.Score) })
	y.listUnseenSQL(reasons)
	y.Text = y.text(budget)
}

// lineAt returns the line of a step of the answer, and 0 if there is none.
func (y *Answer) lineAt(step int) int64 {
	for _, s := range y.Steps {
		if s.Step == step {
			return s.Line
		}
	}
	return 0
}

// unseenSQL begins the notes about the SQL that was not examined.
const unseenSQL = "the SQL of "

// listUnseenSQL sets the notes about the SQL that was not examined, with the reasons by the number of the query.
func (y *Answer) listUnseenSQL(reasons map[int]string) {
	at := slices.IndexFunc(y.NotLooked, func(what string) bool { return strings.HasPrefix(what, unseenSQL) })
	if at < 0 {
		at = len(y.NotLooked)
	}
	y.NotLooked = slices.DeleteFunc(y.NotLooked, func(what string) bool { return strings.HasPrefix(what, unseenSQL) })
	var notes, numbers []string
	for _, q := range y.Queries {
		switch reason := reasons[q.Number]; {
		case q.Stages != nil:
		case reason != "":
			notes = append(notes, fmt.Sprintf("%squery %d (%s)", unseenSQL, q.Number, reason))
		default:
			numbers = append(numbers, strconv.Itoa(q.Number))
		}
	}
	switch len(numbers) {
	case 0:
	case 1:
		notes = append(notes, unseenSQL+"query "+numbers[0])
	default:
		notes = append(notes, unseenSQL+"the queries "+strings.Join(numbers, ", "))
	}
	y.NotLooked = slices.Insert(y.NotLooked, at, notes...)
}

// writeStages writes the rows after each stage of the queries, in at most about a fifth of a text.
func (y *Answer) writeStages(out *strings.Builder, maxBytes int) {
	var lines []string
	for _, q := range y.Queries {
		if len(q.Stages) == 0 {
			continue
		}
		head := fmt.Sprintf("Query %d, rows after each stage:", q.Number)
		if same := stages.DescribeSame(q.SameResult); same != "" {
			head = fmt.Sprintf("Query %d, %s; rows after each stage:", q.Number, same)
		}
		lines = append(lines, head)
		for _, line := range q.Stages {
			lines = append(lines, program.Clip(line, maxStageLineBytes))
		}
	}
	lines = lines[:min(len(lines), maxStageLines)]
	writeLines(out, lines, min(out.Len()+maxBytes/5, maxBytes*4/5), "lines of stages")
}
