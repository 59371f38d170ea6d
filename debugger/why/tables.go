package why

import (
	"fmt"
	"slices"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

// checkTables compares the tables before and after a step.
func (w *slicer) checkTables(node *Step) {
	st := w.program.Get(node.statement)
	after := w.tableAfter(node)
	if after == nil {
		return
	}
	var rows []string
	var tables []*tableFacts
	labels := "" // of a column that was assigned from a table with other rows
	for _, name := range st.Reads {
		before := w.tableBefore(node, name)
		if before == nil || node.Through != "" && name != node.Name {
			continue
		}
		tables = append(tables, before)
		if before.dimensions != after.dimensions {
			continue // the length of a row is not a number of rows
		}
		rows = append(rows, fmt.Sprintf("%s %d", name, before.rows))
		if after.rows == 0 && before.rows > 0 && len(before.columns) > 0 && len(st.ChecksOf("merge")) == 0 {
			score := scoreLikely + 4
			if w.isEmptyValue() {
				score = 84
			}
			w.find(score, "no_rows", node, "none of the %d rows of %s are left after this step", before.rows, name)
		}
		if before.kind == after.kind && (node.Role != "changed" || name == node.Name) {
			w.compareColumns(node, before, after)
		}
		if node.Role == "changed" && name != node.Name && before.rows != after.rows {
			labels = fmt.Sprintf(": the labels decide which row gets which value, and %s has %d rows", name,
				before.rows)
		}
	}
	if len(tables) > 0 {
		w.checkNewColumns(node, tables, after, labels)
	}
	if len(rows) > 0 {
		node.Rows = fmt.Sprintf("rows: %s -> %d", strings.Join(rows, ", "), after.rows)
	}
}

// compareColumns tells of new missing values, and of texts in a column of numbers. A statement that gives a column
// another type may do that on purpose, so a type alone is not a finding.
func (w *slicer) compareColumns(node *Step, before, after *tableFacts) {
	for _, c := range after.columns {
		old := before.column(c.name)
		switch {
		case old == nil:
			continue
		case c.missing > 0 && old.missing == 0:
			w.find(w.newMissingScore(78, node, c.missing, after.rows), "new_missing", node,
				"%d of %d values of %s are missing after this step, none before",
				c.missing, after.rows,
				c.name)
		case c.missing > old.missing && old.missing >= 0:
			w.find(w.newMissingScore(70, node, c.missing, after.rows), "new_missing", node,
				"%d values of %s are missing after this step, %d before", c.missing,
				c.name, old.missing)
		}
		if c.missing == 0 && old.missing > 0 && after.rows == before.rows {
			w.find(scoreLikely+3, "filled", node, "the %d of %d missing values of %s have a value after this step, "+
				"and count from here on", old.missing, before.rows, c.name)
		}
		if old.dtype != c.dtype && !old.isText() && after.isMixed(c.name) {
			w.find(scoreProven, "dtype", node, "%s holds texts and other values after this step: its type changed "+
				"from %s to %s", c.name, old.dtype, c.dtype)
		}
	}
}

// checkNewColumns tells of missing values in columns that no table before had.
func (w *slicer) checkNewColumns(node *Step, before []*tableFacts, after *tableFacts, labels string) {
	for _, c := range after.columns {
		has := func(t *tableFacts) bool { return t.kind == after.kind && t.column(c.name) != nil }
		if c.missing > 0 && after.kind == "DataFrame" && !slices.ContainsFunc(before, has) {
			score := 77
			if slices.ContainsFunc(before, func(t *tableFacts) bool { return t.hasMissing(c.missing) }) {
				score = scorePossible // they may come from a column that lacked as many
			}
			w.find(w.newMissingScore(score, node, c.missing, after.rows), "new_missing", node,
				"%d of %d values of the new column %s are missing%s", c.missing, after.rows, c.name, labels)
		}
	}
}

// checkAlignment tells of series whose labels do not fit.
func (w *slicer) checkAlignment(node *Step, c program.Check) {
	after := w.tableAfter(node)
	if after == nil {
		return
	}
	most := int64(-1)
	missing := int64(0)
	tables := 0
	for i, name := range c.Names {
		t := w.tableBefore(node, name)
		if t == nil || t.dimensions > 0 { // an array has no labels
			continue
		}
		tables++
		most = max(most, t.rows)
		if i < len(c.Columns) {
			if column := t.column(c.Columns[i]); column != nil && column.missing > 0 {
				missing = max(missing, column.missing)
			}
		}
	}
	if tables < 2 {
		return
	}
	if after.rows > most {
		w.find(90, "alignment", node, "%s has %d rows, more than either side (%d): the index has duplicate labels, "+
			"or labels that "+
			"only one side has", c.Text, after.rows, most)
	}
	if len(after.columns) == 1 && after.columns[0].missing > missing {
		w.find(w.newMissingScore(88, node, after.columns[0].missing, after.rows), "alignment", node,
			"%s has %d missing values: labels that only one side has give NaN", c.Text,
			after.columns[0].missing)
	}
}

func (w *slicer) checkAggregate(node *Step, _ *program.Statement, c program.Check) {
	t := w.tableBefore(node, c.Of)
	if c.Call == "std" || c.Call == "var" || strings.HasSuffix(c.Call, "stdev") || strings.HasSuffix(c.Call,
		"variance") {
		w.checkDeviation(node, c, t)
	}
	if t == nil {
		return
	}
	if c.Axis != "" {
		w.find(scorePossible+10, "axis", node, "%s works along axis %s of %s; axis 0 goes down the rows (one value "+
			"a column), axis 1 "+
			"across the columns (one value a row)", c.Text, c.Axis, w.describe(node, c.Of, t))
	}
	if c.Call == "mean" && t.kind == "Series" {
		w.checkGroupMeans(node, c, t)
	}
	column := t.column(c.Column)
	if column == nil {
		return
	}
	if column.missing > 0 && c.Skips != "False" && !c.Partial {
		w.find(scoreLikely+2, "skips_missing", node,
			"%s skips the %d missing values of %s (of %d rows)", c.Call, column.missing,
			name(column, c.Of), t.rows)
	}
	if column.isText() && t.holdsText(column) && slices.Contains(orderedCalls, c.Call) {
		w.checkTextAggregate(node, c, t, column)
	}
}

// checkGroupMeans tells of a mean of the means of groups.
func (w *slicer) checkGroupMeans(node *Step, c program.Check, groups *tableFacts) {
	for _, made := range w.nodes {
		if made.Name != c.Of || made.Step >= node.Step {
			continue
		}
		st := w.program.Get(made.statement)
		isMean := func(each program.Check) bool { return each.Call == "mean" }
		by := st.ChecksOf("groupby")
		if len(by) == 0 || by[0].Call != "groupby" || !slices.ContainsFunc(st.ChecksOf("aggregate"), isMean) {
			return
		}
		if t := w.tableBefore(made, by[0].Of); t != nil && t.rows > groups.rows {
			w.find(scoreLikely, "mean_of_means", node, "%s is the mean of the means of %d groups, which count the "+
				"same whatever their size: line %d made them of %d rows", c.Text, groups.rows, made.Line, t.rows)
		}
		return
	}
}

// orderedCalls are the aggregates that add or compare, which text answers in a way of its own.
var orderedCalls = []string{
	"sum", "max", "min", "mean", "median", "idxmax", "idxmin", "prod", "cumsum", "argsort",
}

func name(c *columnFacts, of string) string {
	if c.name == "" || c.name == "None" {
		return of
	}
	return c.name
}

// describe returns the size of a table.
func (w *slicer) describe(node *Step, of string, t *tableFacts) string {
	v, _ := w.value(node, of)
	return of + " (" + program.Clip(node.state.Preview(w.table, v, 60), 60) + ")"
}

func (w *slicer) checkDeviation(node *Step, c program.Check, t *tableFacts) {
	if c.DDOF != "" {
		return
	}
	population := c.Library == "np" || c.Library == "numpy" || strings.HasPrefix(c.Call, "p") || t != nil &&
		t.kind == "ndarray"
	divides, other := "n - 1 (sample)", "numpy and statistics.pstdev divide by n (population)"
	if population {
		divides, other = "n (population)", "pandas and statistics.stdev divide by n - 1 (sample)"
	}
	w.find(scorePossible+15, "deviation", node, "%s divides by %s; %s", c.Text, divides, other)
}

func (w *slicer) checkGroups(node *Step, _ *program.Statement, c program.Check) {
	t := w.tableBefore(node, c.Of)
	if t == nil || c.Keeps || c.Partial {
		return
	}
	score := 88
	if c.Call == "value_counts" { // it counts the values that are there
		score = scoreLikely
	}
	for _, key := range c.Keys {
		if column := t.column(key); column != nil && column.missing > 0 {
			w.find(score, "dropped_groups", node, "%s leaves out the %d of %d rows whose %s is missing; dropna=False "+
				"keeps them", c.Call,
				column.missing, t.rows, name(column, c.Of))
		}
	}
}

// checkShift tells of values that rows get from rows of another group: a text column next to them, with equal values in
// neighbouring rows, names the groups.
func (w *slicer) checkShift(node *Step, _ *program.Statement, c program.Check) {
	t := w.tableBefore(node, c.Of)
	if t == nil {
		return
	}
	for i := range t.columns {
		column := &t.columns[i]
		cells := t.cellsOf(column.name)
		if column.name == c.Column || column.dtype != "category" && !(column.isText() && t.holdsText(column)) ||
			len(slices.Compact(slices.Clone(cells))) == len(cells) {
			continue
		}
		score := scoreLikely
		if w.areSeries(node.state, t, cells) {
			score = scoreProven - 5
		}
		w.find(score, "shift", node, "%s goes over all rows of %s, from the last row of one %s to the first "+
			"of the next too; groupby('%s') before it keeps them apart", c.Text, c.Of, column.name, column.name)
		return
	}
}

// checkMerge tells which keys of a merge did not match, or matched more than once, from the rows before and after.
func (w *slicer) checkMerge(node *Step, _ *program.Statement, c program.Check) {
	left, right, after := w.tableBefore(node, c.Of), w.tableBefore(node, c.Right), w.tableAfter(node)
	if left == nil || right == nil || c.Partial {
		return
	}
	for i, key := range c.Keys {
		if i >= len(c.RightKeys) {
			break
		}
		a, b := left.column(key), right.column(c.RightKeys[i])
		if a != nil && b != nil && a.dtype != b.dtype && (a.isText() && left.holdsText(a)) !=
			(b.isText() && right.holdsText(b)) { // int64 matches float64
			w.find(86, "merge", node, "the keys have different types: %s of %s is %s, %s of %s is %s", key, c.Of,
				a.dtype,
				c.RightKeys[i], c.Right, b.dtype)
		}
	}
	if after == nil {
		return
	}
	rows := fmt.Sprintf("%s has %d rows, %s %d, the result %d", c.Of, left.rows, c.Right, right.rows, after.rows)
	how := c.How
	if how == "" {
		how = map[string]string{"join": "left", "merge_asof": "left", "merge_ordered": "outer"}[c.Call]
	}
	unmatched := w.unmatched(c, left, right, after)
	switch how {
	case "", "inner":
		switch {
		case after.rows == 0:
			w.find(95, "merge", node, "no key of %s matched one of %s%s: %s", c.Of, c.Right, onKeys(c), rows)
		case after.rows > left.rows && after.rows > right.rows:
			score := 92
			if c.Of == c.Right { // pairs of its rows
				score = scoreLikely
			}
			w.find(score, "merge", node, "many-to-many: keys are duplicate on both sides%s, so rows are multiplied: %s",
				onKeys(c), rows)
		case after.rows > left.rows:
			w.find(w.mergeScore(88, node, c, left), "merge", node,
				"keys of %s are duplicate%s, so rows of %s are repeated: %s", c.Right, onKeys(c),
				c.Of, rows)
		case after.rows < left.rows:
			score := w.mergeScore(82, node, c, left)
			if c.How == "inner" { // the statement says so
				score = weaker(score)
			}
			w.find(score, "merge", node, "at least %d rows of %s matched nothing%s and are dropped: %s",
				left.rows-after.rows, c.Of,
				onKeys(c), rows)
		case after.rows == left.rows && repeatsRows(c, left, right, after):
			w.find(87, "merge", node, "rows of %s matched nothing%s and are dropped, and as many are repeated, "+
				"because keys of %s are duplicate: %s", c.Of, onKeys(c), c.Right, rows)
		}
	case "left":
		if after.rows > left.rows {
			w.find(w.mergeScore(90, node, c, left), "merge", node,
				"keys of %s are duplicate%s, so rows of %s are repeated: %s", c.Right, onKeys(c),
				c.Of, rows)
		}
		if unmatched > 0 {
			score := w.newMissingScore(89, node, unmatched, after.rows)
			if strings.Contains(c.Text, "indicator=") && unmatched < after.rows {
				score = weaker(score)
			}
			w.find(score, "merge", node, "%d of %d rows matched nothing in %s%s and have missing values: %s", unmatched,
				after.rows,
				c.Right, onKeys(c), rows)
		}
	default:
		if after.rows > max(left.rows, right.rows) {
			score := scoreLikely // an outer merge is to keep the rows of both sides
			if after.rows > left.rows+right.rows && how != "cross" {
				score = 80
			}
			w.find(score, "merge", node, "%s merge: keys are duplicate or unmatched%s: %s", how, onKeys(c), rows)
		}
	}
	if how != "left" && unmatched > 0 {
		w.find(w.newMissingScore(scoreLikely, node, unmatched, after.rows), "merge", node,
			"%d rows of the result have no match in %s%s", unmatched, c.Right, onKeys(c))
	}
}

// repeatsRows reports whether an inner merge with as many rows as its left side has other rows than that. A merge keeps
// the order of the left side, so its first rows differ then, or the missing values in a column of the left side. It
// returns false if the recorded facts do not show a difference.
func repeatsRows(c program.Check, left, right, after *tableFacts) bool {
	for _, column := range left.columns {
		merged := after.column(column.name)
		isKey := slices.Contains(c.Keys, column.name)
		if merged == nil || merged.dtype != column.dtype || right.column(column.name) != nil && !isKey {
			continue
		}
		if column.missing >= 0 && merged.missing >= 0 && merged.missing != column.missing {
			return true
		}
		before, now := left.cellsOf(column.name), after.cellsOf(column.name)
		keepsOrder := c.Given["sort"] == "" && c.Call != "merge_ordered"
		if keepsOrder && len(before) == len(now) && !slices.Equal(before, now) {
			return true
		}
	}
	return false
}

func onKeys(c program.Check) string {
	var parts []string
	for _, key := range []string{"on", "left_on", "right_on"} {
		if text := c.Given[key]; text != "" {
			parts = append(parts, key+"="+text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// unmatched returns how many rows of a merge have no match on the right: the missing values of a column that only the
// right side has, and that has none there. It returns -1 if that is unknown.
func (w *slicer) unmatched(c program.Check, left, right, after *tableFacts) int64 {
	for _, column := range right.columns {
		if column.missing != 0 || left.column(column.name) != nil || slices.Contains(c.RightKeys, column.name) {
			continue
		}
		if merged := after.column(column.name); merged != nil {
			return merged.missing
		}
	}
	return -1
}

func (w *slicer) checkSort(node *Step, _ *program.Statement, c program.Check) {
	t := w.tableBefore(node, c.Of)
	if c.How == "'stable'" || c.How == "'mergesort'" || t == nil {
		return
	}
	keys := strings.Join(c.Keys, ", ")
	for _, key := range c.Keys {
		if found := t.numberText(key); found != "" && c.Call == "sort_values" && textOrderDiffers(t.cellsOf(key)) {
			w.find(scoreProven, "text_numbers", node, "%s compares text, not numbers: the values of %s are strings "+
				"such as '%s'", c.Call, key, program.Clip(found, 30))
		}
	}
	switch c.Call {
	case "drop_duplicates":
		score, dropped := scoreHint+5, ""
		if after := w.tableAfter(node); after != nil && after.rows < t.rows && keys != "" {
			score, dropped = scoreLikely, fmt.Sprintf(", and drops %d of %d rows", t.rows-after.rows, t.rows)
		}
		w.find(score, "order", node, "%s keeps the first row of each %s%s; it depends on the order of the rows", c.Text,
			keys, dropped)
	case "sort_values": // by several keys, it is stable
		cells := t.cellsOf(strings.Join(c.Keys, ""))
		isWhole := int64(len(cells)) == t.rows
		if len(c.Keys) > 1 || len(c.Keys) == 0 && t.kind == "DataFrame" || isWhole && !hasEqual(cells) {
			return
		}
		score := scorePossible + 5
		if hasEqual(cells) {
			score = scoreLikely + 4
		}
		if keys == "" {
			keys = "its values"
		}
		w.find(score, "order", node, "%s orders by %s alone and is not stable: rows that are equal there come in no "+
			"fixed order; kind=\"stable\" keeps theirs", c.Call, keys)
	}
}

func (w *slicer) checkConcat(node *Step, _ *program.Statement, c program.Check) {
	if c.Ignores || strings.Contains(c.Axis, "1") || strings.Contains(c.Axis, "columns") {
		return
	}
	w.find(scorePossible, "duplicate_index", node, "%s keeps the labels of each part, so the index has duplicate "+
		"labels; "+
		"ignore_index=True makes new ones", c.Text)
}

func (w *slicer) checkCoerce(node *Step, _ *program.Statement, c program.Check) {
	if after := w.tableAfter(node); after != nil {
		column := after.column(c.Column)
		if column != nil && column.missing >= 0 {
			made := column.missing
			if before := w.tableBefore(node, c.Of); before != nil && before.column(c.Column) != nil {
				made -= max(before.column(c.Column).missing, 0)
			}
			if made > 0 {
				score, example := scoreLikely, ""
				if before := w.tableBefore(node, c.Of); before != nil {
					text := lostNumber(node.after, w.table, before.cellsOf(c.Column), after.cellsOf(c.Column))
					if text != "" {
						score, example = scoreProven, fmt.Sprintf(", such as '%s'", program.Clip(text, 30))
					}
				}
				if made == after.rows {
					score = scoreProven
				}
				w.find(score, "coerced", node, "errors=\"coerce\" made %d of %d values missing that could not "+
					"be converted%s", made, after.rows, example)
			}
			return
		}
	}
	w.find(scorePossible, "coerced", node, "%s turns what it cannot convert into missing values", c.Text)
}

// maxEffectChecks bounds the statements that are searched for one without an effect.
const maxEffectChecks = 50

// checkWithoutEffect tells of statements that seem to change a variable of the slice and did not.
func (w *slicer) checkWithoutEffect() {
	names := map[string]bool{w.question.Name: true}
	for _, node := range w.nodes {
		names[node.Name] = true
		for _, read := range node.Reads {
			names[read.Name] = true
		}
	}
	left := maxEffectChecks
	for i := range w.program.Statements {
		st := &w.program.Statements[i]
		for _, c := range append(st.ChecksOf("chained"), st.ChecksOf("discarded")...) {
			if names[c.Of] && c.Of != "" && left > 0 {
				left--
				w.checkNoChange(st, c)
			}
		}
	}
}

// checkNoChange tells of the last execution of a statement if it did not change the variable that it is about.
func (w *slicer) checkNoChange(st *program.Statement, c program.Check) {
	step := w.lastStepAt([]int64{st.Line}, 0, w.out.Step)
	if step == 0 {
		return
	}
	before, err := w.stateAt(step)
	if err != nil {
		return
	}
	after, err := w.stateAt(step + 1)
	if err != nil {
		return
	}
	v := before.Resolve(w.table, c.Of)
	a, okA := before.ValueOf(w.table, v)
	b, okB := after.ValueOf(w.table, v)
	if !okA || !okB || a != b {
		return
	}
	node := &Step{Step: step, Line: before.CurrentFrame().Line}
	o, p := w.object(before, a), w.object(after, b)
	isTable := w.tableOf(before, o) != nil
	if o != nil && p != nil && o.Version != p.Version || !isTable && a.Tag != recording.TagText {
		return
	}
	if c.Kind == "chained" && isTable {
		w.find(93, "chained_assignment", node, "%s was assigned to a copy, so %s did not change: use %s.loc[rows, "+
			"column] = ...",
			c.Text, c.Of, c.Of)
	} else if c.Kind == "discarded" {
		w.find(91, "discarded", node, "%s returns a new object, which is not kept: %s did not change", c.Text, c.Of)
	}
}
