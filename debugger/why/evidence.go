package why

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

// missingHandlers are the calls that choose what becomes of missing values.
var missingHandlers = strings.Fields(
	"fillna dropna isna notna isnull notnull interpolate ffill bfill combine_first first_valid_index nan_to_num")

// gapMakers are the calls whose result has missing values by definition: at the ends of the rows, for combinations of
// labels that have no row, or where a condition says so.
var gapMakers = strings.Fields("shift diff pct_change rolling ewm reindex pivot pivot_table unstack mask where asfreq")

// weaker returns the score of a fact that has no evidence of an effect.
func weaker(score int) int { return min(score, scoreLikely) }

// handlesMissing reports whether a statement at or after a step chooses what becomes of the missing values of the
// variable that the step set.
func (w *slicer) handlesMissing(node *Step) bool {
	calls := func(st *program.Statement) bool {
		return slices.ContainsFunc(st.Calls, func(name string) bool { return slices.Contains(missingHandlers, name) })
	}
	if st := w.program.Get(node.statement); calls(st) {
		return true
	}
	for i := range w.program.Statements {
		st := &w.program.Statements[i]
		if calls(st) && (slices.Contains(st.Reads, node.Name) || slices.Contains(st.Mutates, node.Name)) &&
			w.lastStepAt(st.AppendLines(nil), 0, w.reader.Steps()+1) > node.Step {
			return true
		}
	}
	return false
}

// newMissingScore returns the score of missing values that a step made, by how surprising they are.
func (w *slicer) newMissingScore(score int, node *Step, missing, rows int64) int {
	st := w.program.Get(node.statement)
	isWanted := slices.ContainsFunc(st.Calls, func(name string) bool { return slices.Contains(gapMakers, name) }) ||
		len(st.ChecksOf("coerce")) > 0 // a finding of its own
	if missing < rows && (isWanted || w.handlesMissing(node)) {
		return weaker(score)
	}
	return score
}

// aggregated returns whether statements after a step aggregate columns, and whether one of those is in a table and is
// no key.
func (w *slicer) aggregated(node *Step, t *tableFacts, keys []string) (some, ofTable bool) {
	for i := range w.program.Statements {
		st := &w.program.Statements[i]
		if len(st.ChecksOf("aggregate")) == 0 || !w.hasRun(st) ||
			w.lastStepAt(st.AppendLines(nil), 0, w.reader.Steps()+1) < node.Step {
			continue
		}
		var groups []string
		for _, c := range st.ChecksOf("groupby") {
			groups = append(groups, c.Keys...)
		}
		text := w.program.Text(st)
		for _, c := range t.columns {
			if slices.Contains(keys, c.name) || slices.Contains(groups, c.name) || c.name == "" {
				continue
			}
			isNamed := slices.ContainsFunc(st.Checks, func(each program.Check) bool {
				return each.Kind == "aggregate" && each.Column == c.name
			})
			ofTable = ofTable || isNamed || strings.Contains(text, "'"+c.name+"'") ||
				strings.Contains(text, `"`+c.name+`"`)
		}
		some = true
	}
	return some, ofTable
}

// isWhole reports whether the object that a step changed is the variable's own, and not a part of it.
func (w *slicer) isWhole(node *Step) bool {
	through, ok := w.value(node, node.Through)
	return ok && through.Tag == recording.TagObject && through == node.value
}

// isPlainAlias reports whether one assignment such as b = a alone made a name another name of a variable.
func (w *slicer) isPlainAlias(node *Step) bool {
	found := false
	for i := range w.program.Statements {
		st := &w.program.Statements[i]
		for _, pair := range [][2]string{{node.Through, node.Name}, {node.Name, node.Through}} {
			found = found || slices.Contains(st.Sets, pair[0]) && slices.ContainsFunc(st.ChecksOf("alias"),
				func(c program.Check) bool { return c.Of == pair[1] })
		}
		if slices.Contains(st.Sets, node.Through) && len(st.ChecksOf("alias")) == 0 {
			return false
		}
	}
	return found
}

// timesIn returns how often the items of a container are the same object.
func timesIn(s *recording.State, container recording.Value, item uint64) (times int) {
	if container.Tag != recording.TagObject || s.Objects[container.Object] == nil {
		return 0
	}
	for _, v := range s.Objects[container.Object].Values {
		if v.Tag == recording.TagObject && v.Object == item {
			times++
		}
	}
	return times
}

// checkAliasing tells of a change of a variable through another name.
func (w *slicer) checkAliasing(node *Step) {
	through := w.valueAt(node, node.Through)
	times := 0
	if node.after != nil && through.Tag == recording.TagObject {
		times = timesIn(node.after, node.value, through.Object)
	}
	switch {
	case node.Through == "" || node.Through == "self" || node.Through == "cls":
	case node.sharesMemory:
		w.find(scoreLikely, "aliasing", node, "%s was changed in place through %s, an array that shares its memory",
			node.Name, node.Through)
	case times > 1:
		w.find(scoreProven, "aliasing", node, "%s was changed in place through %s, one object that is in it %d times",
			node.Name, node.Through, times)
	case !w.isWhole(node):
		how := "which shares an object with it"
		if slices.Contains(node.state.Reachable(w.valueAt(node, node.Name)), through.Object) {
			how = "a part of it"
		}
		w.find(scorePossible, "aliasing", node, "%s was changed in place through %s, %s", node.Name, node.Through, how)
	case node.Function != "":
		w.find(scoreLikely, "aliasing", node, "%s was changed in place by %s, which has the same object as %s",
			node.Name, node.Function, node.Through)
	case w.isPlainAlias(node):
		w.find(scoreProven, "aliasing", node, "%s was changed in place through %s, another name of the same object",
			node.Name, node.Through)
	default:
		w.find(scoreLikely, "aliasing", node, "%s was changed in place through %s, another name of the same object",
			node.Name, node.Through)
	}
}

var unitOfNumber = regexp.MustCompile(`[\s,_$€£%]`)

// numberIn returns the number that a text stands for, also with separators, a currency or a percent sign.
func numberIn(text string) (float64, bool) {
	n, err := strconv.ParseFloat(unitOfNumber.ReplaceAllString(text, ""), 64)
	return n, err == nil && !math.IsNaN(n)
}

// textOrderDiffers reports whether texts of numbers have another order than the numbers.
func textOrderDiffers(values []recording.Value) bool {
	type item struct {
		text   string
		number float64
	}
	var items []item
	for _, v := range values {
		if v.Tag != recording.TagText {
			return false
		}
		n, ok := numberIn(v.Text)
		if !ok {
			return false
		}
		items = append(items, item{v.Text, n})
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.text, b.text) })
	return !slices.IsSortedFunc(items, func(a, b item) int { return cmp.Compare(a.number, b.number) })
}

// lostNumber returns a text with a digit that a conversion made missing, and "" if the recorded rows have none.
func lostNumber(s *recording.State, t *recording.Table, before, after []recording.Value) string {
	if len(before) != len(after) {
		return ""
	}
	for i, v := range before {
		switch s.Preview(t, after[i], 10) {
		case "nan", "NaT", "<NA>", "None":
			if v.Tag == recording.TagText && strings.ContainsAny(v.Text, "0123456789") {
				return v.Text
			}
		}
	}
	return ""
}

// similarKey returns the key of a dict that differs from a text or a number in type, case or space only, or "".
func (w *slicer) similarKey(s *recording.State, dict *recording.Object, key recording.Value) string {
	if dict == nil || dict.Form != recording.Pairs {
		return ""
	}
	plain := func(v recording.Value) string {
		return strings.ToLower(strings.Trim(s.Preview(w.table, v, 80), "'\" \t"))
	}
	for i := 0; i+1 < len(dict.Values); i += 2 {
		if v := dict.Values[i]; v.Tag != recording.TagObject && plain(v) == plain(key) {
			return s.Preview(w.table, v, 40)
		}
	}
	return ""
}

// isEmptyValue reports whether the asked value shows that nothing was left to compute with.
func (w *slicer) isEmptyValue() bool {
	return w.out.Name == "exception" || slices.Contains([]string{"nan", "None", "NaT", "<NA>", "inf", "-inf"},
		w.out.Value)
}

// areSeries reports whether the rows of a table are several series one after another: each value of a column is in one
// block of rows, and another column rises in each block and falls at each border.
func (w *slicer) areSeries(s *recording.State, t *tableFacts, groups []recording.Value) bool {
	if len(slices.Compact(slices.Clone(groups))) != distinct(groups) || distinct(groups) < 2 {
		return false
	}
	for i := range t.columns {
		cells := t.cellsOf(t.columns[i].name)
		if len(cells) != len(groups) {
			continue
		}
		isSeries := true
		for j := 1; j < len(cells) && isSeries; j++ {
			rises := w.compareCells(s, cells[j-1], cells[j]) < 0
			isSeries = rises == (groups[j] == groups[j-1])
		}
		if isSeries {
			return true
		}
	}
	return false
}

func distinct(values []recording.Value) int {
	seen := map[recording.Value]bool{}
	for _, v := range values {
		seen[v] = true
	}
	return len(seen)
}

// compareCells compares two values of a column: numbers as such, others by their text.
func (w *slicer) compareCells(s *recording.State, a, b recording.Value) int {
	x, y := s.Preview(w.table, a, 60), s.Preview(w.table, b, 60)
	m, errM := strconv.ParseFloat(x, 64)
	n, errN := strconv.ParseFloat(y, 64)
	if errM == nil && errN == nil {
		return cmp.Compare(m, n)
	}
	return strings.Compare(x, y)
}

// valueAt returns the value of a variable on arrival at a step, or no value.
func (w *slicer) valueAt(node *Step, name string) recording.Value {
	v, _ := w.value(node, name)
	return v
}

// isCache reports whether a function looks up results of earlier calls in a default argument: it asks whether it has
// them, and never returns the object itself.
func (w *slicer) isCache(function, name string) (found bool) {
	for i := range w.program.Statements {
		st := &w.program.Statements[i]
		if st.Function != function {
			continue
		}
		if w.program.Text(st) == "return "+name {
			return false
		}
		found = found || st.Kind == "if" && slices.Contains(st.Reads, name)
	}
	return found
}

// handledScore returns the score of an exception that a try statement caught: it is high if the handler takes every
// exception and looks at none, or if a text with a number could not be converted.
func (w *slicer) handledScore(number int, text string) int {
	if found := quoted.FindStringSubmatch(text); found != nil && strings.Contains(text, "convert") ||
		found != nil && strings.Contains(text, "invalid literal") {
		if _, isNumber := numberIn(found[1]); isNumber {
			return scoreProven
		}
	}
	for _, st := range w.program.Statements {
		if st.Kind != "except" || st.In != number || len(st.Sets) > 0 {
			continue
		}
		for _, c := range st.ChecksOf("except") {
			if c.Text == "" || strings.Contains(c.Text, "BaseException") || broadException.MatchString(c.Text) {
				return scoreProven
			}
		}
	}
	return scoreLikely
}

var (
	quoted         = regexp.MustCompile(`'([^']*)'`)
	broadException = regexp.MustCompile(`\bException\b`)
)

// isSliceOf reports whether a statement made one of two variables by slicing the other one.
func (w *slicer) isSliceOf(a, b string) bool {
	return slices.ContainsFunc(w.program.Statements, func(st program.Statement) bool {
		return slices.ContainsFunc(st.ChecksOf("slice"), func(c program.Check) bool {
			return c.Of == a && slices.Contains(st.Sets, b) || c.Of == b && slices.Contains(st.Sets, a)
		})
	})
}

// keepers are the calls that keep a function which they are given, to call it later.
var keepers = strings.Fields("append insert add setdefault extend put register connect bind partial submit update " +
	"call_later call_soon add_done_callback subscribe on")

// isKept reports whether a lambda of a statement is kept, and not only called by the statement.
func isKept(st *program.Statement) bool {
	return len(st.Calls) == 0 ||
		slices.ContainsFunc(st.Calls, func(name string) bool { return slices.Contains(keepers, name) })
}

// mergeScore returns the score of rows of the left side that a merge repeated or dropped. They matter to values that
// later statements aggregate from columns of the left side, and not to those from columns of the right one.
func (w *slicer) mergeScore(score int, node *Step, c program.Check, left *tableFacts) int {
	if some, ofLeft := w.aggregated(node, left, c.Keys); some && !ofLeft {
		return weaker(score)
	}
	return score
}

// checkTextAggregate tells of an aggregate of a column of texts. The order of texts matters if it is another one than
// that of the numbers that they stand for.
func (w *slicer) checkTextAggregate(node *Step, c program.Check, t *tableFacts, column *columnFacts) {
	cells := t.cellsOf(column.name)
	isOrder := slices.Contains([]string{"max", "min", "median", "idxmax", "idxmin", "argsort"}, c.Call)
	isNumbers := len(cells) > 0 && !slices.ContainsFunc(cells, func(v recording.Value) bool {
		_, ok := numberIn(v.Text)
		return v.Tag != recording.TagText || !ok
	})
	switch {
	case isOrder && isNumbers && textOrderDiffers(cells):
		w.find(scoreProven, "text_numbers", node,
			"%s works on text: %s has the type %s, so '9' comes after '10'", c.Call,
			name(column, c.Of), column.dtype)
	case !isOrder && isNumbers:
		w.find(scoreProven, "text_numbers", node, "%s works on text: %s has the type %s, so + joins", c.Call,
			name(column, c.Of), column.dtype)
	case !isOrder:
		w.find(scorePossible, "text_numbers", node, "%s works on text: %s has the type %s", c.Call, name(column, c.Of),
			column.dtype)
	}
}
