package why

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
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
		w.out.Steps = append(w.out.Steps, *node)
	}
	w.listStatements()
	w.listNotLooked()
	w.out.Text = w.out.text(w.question.Budget)
}

// find adds a finding of the current rule about a step, once.
func (w *slicer) find(score int, kind string, node *Step, format string, args ...any) {
	f := Finding{Kind: kind, Text: fmt.Sprintf(format, args...), Score: min(score, w.rule.maxScore)}
	if node != nil {
		f.Step, f.Line = node.Step, node.Line
	}
	for _, known := range w.out.Findings {
		if known.Kind == f.Kind && known.Line == f.Line && known.Text == f.Text {
			return
		}
	}
	w.out.Findings = append(w.out.Findings, f)
}

// addQueries adds the queries that the steps of the slice sent.
func (w *slicer) addQueries() {
	for i, q := range w.question.Queries {
		if w.sender(&q) != nil {
			text := program.Clip(strings.Join(strings.Fields(q.SQL), " "), 200)
			w.out.Queries = append(w.out.Queries, Query{i + 1, q.Step, text, q.Rows, q.Status, q.Truncated})
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

// checkQueries tells of the queries of the answer that failed or returned no rows, or not all.
func (w *slicer) checkQueries() {
	for _, each := range w.out.Queries {
		q := &w.question.Queries[each.Number-1]
		node := w.sender(q)
		switch {
		case q.Truncated:
			w.find(90, "query", node, "query %d returned only its first %d rows: it has more than max_rows", each.Number,
				q.Rows)
		case q.Status == "ok" && q.Rows > 0 && lastLimit(q.SQL) == int64(q.Rows):
			w.find(scoreHint, "query", node, "query %d returned %d rows, as many as its LIMIT: there may be more",
				each.Number, q.Rows)
		case q.Status == "ok" && q.Rows == 0:
			score := scoreLikely + 4
			if w.isEmptyValue() {
				score = 80
			}
			w.find(score, "query", node, "query %d returned 0 rows", each.Number)
		case q.Status != "ok":
			w.find(80, "query", node, "query %d was %s: %s", each.Number, q.Status, program.Clip(q.Error, 100))
		}
	}
}

// checkFilledInSQL tells of queries that put a value in place of missing ones.
func (w *slicer) checkFilledInSQL() {
	for _, each := range w.out.Queries {
		q := &w.question.Queries[each.Number-1]
		if found := filledInSQL.FindString(q.SQL); found != "" && q.Status == "ok" {
			w.find(scorePossible-5, "filled", w.sender(q),
				"query %d puts a value in place of missing ones, which then counts: %s", each.Number,
				program.Clip(found, 60))
		}
	}
}

// filledInSQL matches coalesce with a constant.
var filledInSQL = regexp.MustCompile(`(?i)\bcoalesce\([^()]*,\s*(?:'[^']*'|-?\d+(?:\.\d+)?)\s*\)`)

var limitAtEnd = regexp.MustCompile(`(?i)\blimit\s+(\d+)\s*;?\s*$`)

// lastLimit returns the LIMIT at the end of a statement, and -1 if there is none.
func lastLimit(sql string) int64 {
	found := limitAtEnd.FindStringSubmatch(sql)
	if found == nil {
		return -1
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// findHandled adds the exceptions that were caught in the functions of the slice.
func (w *slicer) findHandled() {
	list, complete := w.handledExceptions()
	for _, h := range list {
		number := w.guard(h)
		if !w.program.IsGuessed && !w.concerns(number, h) {
			continue
		}
		how := "was caught"
		if w.passes(number) {
			how = "was caught and ignored"
		}
		f := Finding{Kind: "handled_exception", Step: h.step, Line: h.line, Score: w.handledScore(number, h.text),
			Text: h.describe(how, complete, w.program.Source)}
		w.out.Findings = append(w.out.Findings, f)
	}
}

// guard returns the innermost try statement around the line that let an exception pass.
func (w *slicer) guard(h handled) (number int) {
	function := h.caughtIn
	if function == recording.ModuleName {
		function = ""
	}
	for i, st := range w.program.Statements {
		if st.Kind == "try" && st.Function == function && st.Line <= h.caughtAt && h.caughtAt <= st.End {
			number = i + 1 // a later one is the inner one
		}
	}
	return number
}

// concerns reports whether a try statement guards a part of the slice, or a statement that sets a variable of it.
func (w *slicer) concerns(number int, h handled) bool {
	if number == 0 {
		return false
	}
	names := map[string]bool{}
	for _, node := range w.nodes {
		if w.program.IsIn(node.statement, number) {
			return true
		}
		if node.Name != "" {
			names[node.Name] = true
		}
	}
	for i, st := range w.program.Statements {
		if !w.program.IsIn(i+1, number) {
			continue
		}
		for _, name := range append(slices.Clone(st.Sets), st.Mutates...) {
			if names[name] {
				return true
			}
		}
	}
	return false
}

// passes reports whether all handlers of a try statement only pass or continue.
func (w *slicer) passes(number int) bool {
	found := false
	for _, st := range w.program.Statements {
		if st.Kind == "except" && st.In == number {
			for _, c := range st.ChecksOf("except") {
				if !c.Passes {
					return false
				}
				found = true
			}
		}
	}
	return found
}

// handledExceptions returns the exceptions that the program caught, by the line that raised them. complete is false if
// some parts of a long recording were not searched.
func (w *slicer) handledExceptions() (out []handled, complete bool) {
	var raising []*recording.Chunk
	for _, c := range w.reader.Chunks() {
		if c.Raises {
			raising = append(raising, c)
		}
	}
	complete = len(raising) <= maxRaisingChunks
	if !complete {
		raising = append(raising[:maxRaisingChunks-1:maxRaisingChunks-1], raising[len(raising)-1])
	}
	tracker := handledTracker{table: w.table}
	for _, c := range raising {
		tracker.raised = nil
		err := w.reader.Replay(c, func(s *recording.State, rec *recording.Record) bool {
			tracker.see(s, rec)
			return s.Step < w.out.Step || s.Step == w.reader.Steps()
		})
		if err != nil {
			return tracker.list, false
		}
	}
	return tracker.list, complete
}

// checkEarlier adds the variables of earlier executions.
func (w *slicer) checkEarlier() {
	for _, e := range w.out.Earlier {
		score := scoreLikely
		if w.program.MaySet(e.Name, "") { // the run was to set it, and read it before
			score = 88
		}
		switch {
		case e.Code == "given as context of the run":
		case e.Execution != "":
			w.find(score, "earlier_execution", nil, "%s was not set in this run: execution %s set it to %s%s", e.Name,
				e.Execution,
				e.Value, at(e))
		default:
			w.find(score, "earlier_execution", nil,
				"%s was not set in this run: it existed in the session before, as %s",
				e.Name,
				e.Value)
		}
	}
}

func at(e Earlier) string {
	if e.Line == 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d: %s)", e.Line, program.Clip(e.Code, 100))
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
