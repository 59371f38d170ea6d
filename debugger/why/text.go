package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
)

// finish completes the answer from the steps of the slice.
func (w *slicer) finish() {
	slices.SortStableFunc(w.nodes, func(a, b *Step) int { return cmp.Compare(b.Step, a.Step) })
	w.addQueries()
	w.checkAnswer()
	w.findLimits()
	slices.SortStableFunc(w.out.Findings, func(a, b Finding) int { return cmp.Compare(b.Score, a.Score) })
	for _, node := range w.nodes {
		w.describeRows(node)
		w.out.Steps = append(w.out.Steps, *node)
	}
	w.listStatements()
	w.listNotLooked()
	w.out.Text = w.out.text(w.question.Budget)
}

// addQueries adds the queries that the steps of the slice sent.
func (w *slicer) addQueries() {
	for i, q := range w.question.Queries {
		if w.sender(&q) != nil {
			text := program.Clip(strings.Join(strings.Fields(q.SQL), " "), 200)
			w.out.Queries = append(w.out.Queries, Query{
				Number: i + 1, Step: q.Step, SQL: text, Rows: q.Rows, Status: q.Status, Truncated: q.Truncated,
			})
		}
	}
}

// sender returns the step of the slice that sent a query, or nil.
func (w *slicer) sender(q *sandbox.Query) *Step {
	i := slices.IndexFunc(w.nodes, func(n *Step) bool {
		return n.Role != "edited" && n.Step <= q.Step && q.Step < max(n.until, n.Step+1)
	})
	if q.Step == 0 || i < 0 {
		return nil
	}
	return w.nodes[i]
}

// findLimits says where the answer is not exact.
func (w *slicer) findLimits() {
	if w.program.IsGuessed {
		w.limit("the recording does not describe the statements, so what a line reads is guessed from its text")
	}
	for _, node := range w.nodes {
		if !node.hasValue || node.value.Tag != recording.TagObject || node.after == nil {
			continue
		}
		if o := node.after.Objects[node.value.Object]; o != nil && (o.Exactness == recording.Sampled ||
			o.Exactness == recording.Unread) {
			w.limit(fmt.Sprintf("%s is recorded in part (%s), so a change in place may be missing", node.Name,
				o.Exactness))
		}
	}
	for _, c := range w.reader.Chunks() {
		if c.Loses {
			w.limit("the recording has a gap")
			break
		}
	}
}

// text returns the answer in about budget tokens: the findings first, then the steps.
func (y *Answer) text(budget int) string {
	maxBytes := budget * BytesPerToken
	out := &strings.Builder{}
	if y.Value != "" {
		fmt.Fprintf(out, "%s is %s", y.Name, program.Clip(y.Value, 160))
		if y.Type != "" && !strings.HasPrefix(y.Value, "<") {
			fmt.Fprintf(out, " (%s)", y.Type)
		}
		out.WriteString(".\n")
	}
	writeLines(out, y.cellLines(), maxBytes/3, "steps of the cell")
	strong, weak := y.findingLines()
	if len(strong) > 0 {
		out.WriteString("Check first:\n")
		writeLines(out, strong, maxBytes*3/5, "findings")
	}
	if len(weak) > 0 {
		out.WriteString("Check if intended:\n")
		writeLines(out, weak, maxBytes*3/5, "findings")
	}
	if more := len(y.Findings) - maxShownFindings; more > 0 {
		fmt.Fprintf(out, "  ... %d more in findings\n", more)
	}
	if facts := y.factLines(); len(facts) > 0 {
		out.WriteString("What these lines did:\n")
		writeLines(out, facts, maxBytes*3/5, "facts")
	}
	y.writeStages(out, maxBytes)
	var lines []string
	for _, s := range y.Steps {
		lines = append(lines, s.text())
	}
	if len(lines) > 0 {
		out.WriteString("Made by, last first:\n")
		writeLines(out, lines, maxBytes*9/10, "steps")
	}
	lines = nil
	for _, q := range y.Queries {
		lines = append(lines, fmt.Sprintf("Query %d (step %d, %s, %d rows): %s", q.Number, q.Step, q.Status, q.Rows,
			q.SQL))
	}
	for _, limit := range y.Limits {
		lines = append(lines, "Not exact: "+limit+".")
	}
	if len(y.NotLooked) > 0 {
		lines = append(lines, "Not looked at: "+strings.Join(y.NotLooked, "; ")+".")
	}
	writeLines(out, lines, maxBytes-30, "notes")
	return strings.TrimRight(out.String(), "\n")
}

// maxShownFindings is the maximum number of findings in a text: a reader of many follows none of them.
const maxShownFindings = 3

// findingLines returns the first findings as lines: those with evidence of an effect, and the others.
func (y *Answer) findingLines() (strong, weak []string) {
	for _, f := range y.Findings[:min(len(y.Findings), maxShownFindings)] {
		line := "  " + f.Text
		if f.Line > 0 {
			line = fmt.Sprintf("  line %d: %s", f.Line, f.Text)
		}
		if f.Score >= minEvidentScore {
			strong = append(strong, line)
		} else {
			weak = append(weak, line)
		}
	}
	return strong, weak
}

// text returns a step as one line.
func (s *Step) text() string {
	out := &strings.Builder{}
	fmt.Fprintf(out, "  step %d, line %d", s.Step, s.Line)
	if s.Function != "" {
		out.WriteString(" in " + s.Function)
	}
	fmt.Fprintf(out, ": %s", s.Code)
	var notes []string
	switch s.Role {
	case "set", "changed":
		value := program.Clip(s.Value, 80)
		if s.First != "" && s.First != s.Value {
			value = program.Clip(s.First, 40) + ", ..., " + value
		}
		notes = append(notes, s.Name+" = "+value)
		if s.Role == "changed" {
			notes = append(notes, strings.TrimSuffix("changed in place through "+s.Through, " through "))
		}
		if s.Unseen {
			notes[len(notes)-1] = strings.TrimSuffix("wrote to it through "+s.Through, " through ") +
				"; the recording has only a part of it, so it does not show the effect"
		}
	case "returned":
		notes = append(notes, "returned "+program.Clip(s.Value, 80))
	case "raised":
		notes = append(notes, "raised "+program.Clip(s.Value, 80))
	case "edited":
		notes = append(notes, s.Name+" = "+program.Clip(s.Value, 80), "set by "+s.By+" in the debugger")
	case "condition":
		notes = append(notes, "decided what ran")
	}
	if s.Times > 1 {
		notes = append(notes, fmt.Sprintf("ran %d times", s.Times))
	}
	if s.Rows != "" {
		notes = append(notes, s.Rows)
	}
	if reads := s.readsText(); reads != "" {
		notes = append(notes, "read "+reads)
	}
	if len(notes) > 0 {
		out.WriteString("   # " + strings.Join(notes, "; "))
	}
	return out.String()
}

// readsText returns the variables that a step read, with their values, other than the one that it set.
func (s *Step) readsText() string {
	var reads []string
	for _, read := range s.Reads {
		if read.Name != s.Name {
			reads = append(reads, read.Name+" = "+program.Clip(read.Value, 60))
		}
	}
	return strings.Join(reads, ", ")
}
