package why

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"glasshouse/debugger/expr"
	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

// minEvidentScore is the score of a finding for which the values of the run show an effect. It is lower for what only
// the code suggests.
const minEvidentScore = 70

// The scores order the findings: what the values prove comes before what only the code suggests.
const (
	scoreEdited   = 100
	scoreProven   = 85
	scoreLikely   = 65
	scorePossible = 45
	scoreHint     = 30
)

// checkEdit tells of a value that a person set.
func (w *slicer) checkEdit(node *Step) {
	if node.Role == "edited" {
		w.find(scoreEdited, "edit", node, "%s did not come from the code: %s set it in the debugger, with %s", node.Name,
			node.By, node.Code)
	}
}

// value returns a variable that a step could read, on arrival at the step.
func (w *slicer) value(node *Step, name string) (recording.Value, bool) {
	if name == "" {
		return recording.Value{}, false
	}
	return node.state.ValueOf(w.table, node.state.Resolve(w.table, name))
}

func (w *slicer) object(s *recording.State, v recording.Value) *recording.Object {
	if v.Tag != recording.TagObject {
		return nil
	}
	return s.Objects[v.Object]
}

// length returns the number of items of a variable, and -1 if it is unknown.
func (w *slicer) length(node *Step, name string) int64 {
	v, ok := w.value(node, name)
	switch {
	case !ok:
		return -1
	case v.Tag == recording.TagText:
		return int64(len([]rune(v.Text)))
	}
	if o := w.object(node.state, v); o != nil {
		return o.Length
	}
	return -1
}

var iteratorType = regexp.MustCompile(
	`^(generator|map|filter|zip|enumerate|reversed|\w*iterator|_csv\.reader|itertools\..*)$`)

// checkIterate tells that an iterator had been used up by an earlier step.
func (w *slicer) checkIterate(node *Step, _ *program.Statement, c program.Check) {
	v, ok := w.value(node, c.Of)
	if !ok || !iteratorType.MatchString(node.state.TypeOf(w.table, v)) {
		return
	}
	var lines []int64
	for i, st := range w.program.Statements {
		if slices.ContainsFunc(st.ChecksOf("iterate"), func(other program.Check) bool { return other.Of == c.Of }) &&
			(i+1 != node.statement || st.Kind != "for") {
			lines = st.AppendLines(lines)
		}
	}
	step := w.lastStepAt(lines, 0, node.Step)
	if step == 0 {
		return
	}
	s, err := w.stateAt(step)
	if err != nil || s.CurrentFrame() == nil {
		return
	}
	before, ok := s.ValueOf(w.table, s.Resolve(w.table, c.Of))
	if !ok || before != v {
		return
	}
	f := s.CurrentFrame()
	if w.usesUp(step, w.program.At(w.table.FunctionName(f.Code), f.Line), c.Of) {
		w.find(95, "exhausted_iterator", node, "%s is a %s, which gives its items once: line %d (step %d) had used "+
			"it up, so nothing was left here", c.Of, s.TypeOf(w.table, before), f.Line, step)
		return
	}
	w.find(scorePossible+15, "exhausted_iterator", node, "%s is a %s, which gives its items once: line %d (step %d) "+
		"used it before, so this step got those that were left", c.Of, s.TypeOf(w.table, before), f.Line, step)
}

// exhausting are the calls that take all items of an iterable, unless they raise.
var exhausting = strings.Fields("sum list tuple set frozenset sorted max min dict Counter join DataFrame Series " +
	"fromiter reduce extend writerows mean fmean stdev pstdev median comprehension")

// usesUp reports whether a statement takes all items of a variable: the execution with this step ended without an
// exception, and a loop without a break.
func (w *slicer) usesUp(step, number int, name string) bool {
	st := w.program.Get(number)
	s, err := w.stateAt(step)
	if err != nil || w.completed(step, s.Current) == 0 {
		return false
	}
	for _, c := range st.ChecksOf("iterate") {
		if c.Of != name {
			continue
		}
		if c.Call == "for" { // the last step of a loop that ends by itself is its head
			var body []int64
			for i := range w.program.Statements {
				inner := &w.program.Statements[i]
				if w.program.IsIn(i+1, number) && i+1 != number && inner.Branch == "" {
					body = inner.AppendLines(body)
				}
			}
			next := w.completed(step, s.Current)
			after, err := w.stateAt(next)
			return err == nil && (after.CurrentFrame() == nil || !slices.Contains(body, after.CurrentFrame().Line))
		}
		if slices.Contains(exhausting, c.Call) || c.Call == "generator" && w.isWhollyUsed(st) {
			return true
		}
	}
	return false
}

// isWhollyUsed reports whether a statement calls no function that may leave items of a generator expression.
func (w *slicer) isWhollyUsed(st *program.Statement) bool {
	uses := func(name string) bool { return slices.Contains(exhausting, name) }
	return slices.ContainsFunc(st.Calls, uses) && !slices.ContainsFunc(st.Calls, func(name string) bool {
		return slices.Contains([]string{"any", "all", "next", "zip", "islice", "takewhile", "iter", "map", "filter",
			"enumerate", "chain"}, name)
	})
}

func (w *slicer) checkLengths(node *Step, _ *program.Statement, c program.Check) {
	if c.Strict || len(c.Names) < 2 {
		return
	}
	var sizes []string
	differ, first := false, int64(-1)
	for _, name := range c.Names {
		n := w.length(node, name)
		if n < 0 {
			return
		}
		sizes = append(sizes, fmt.Sprintf("%s has %d", name, n))
		differ, first = differ || first >= 0 && n != first, n
	}
	if differ && !w.pairsNeighbours(c) {
		w.find(90, "different_lengths", node, "%s stops at the shortest: %s items", c.Text, strings.Join(sizes, ", "))
	}
}

// pairsNeighbours reports whether a call goes over a list and a slice of it, which is shorter on purpose.
func (w *slicer) pairsNeighbours(c program.Check) bool {
	return len(c.Names) == 2 && w.isSliceOf(c.Names[0], c.Names[1]) ||
		slices.ContainsFunc(c.Names, func(name string) bool { return strings.Contains(c.Text, name+"[") })
}

func (w *slicer) checkSelect(node *Step, _ *program.Statement, c program.Check) {
	index, ok := w.value(node, c.Names[0])
	if !ok {
		return
	}
	if index.Tag == recording.TagInt && index.Int < 0 {
		w.find(scoreLikely, "negative_index", node, "%s is %d, which counts from the end of %s", c.Names[0], index.Int,
			c.Of)
	}
	mask, of := w.length(node, c.Names[0]), w.length(node, c.Of)
	if o := w.object(node.state, index); o != nil && mask >= 0 && of >= 0 && mask != of && w.isMask(node.state, o) {
		w.find(90, "different_lengths", node, "the mask %s has %d items, and %s has %d", c.Names[0], mask, c.Of, of)
	}
}

// isMask reports whether an object holds truth values.
func (w *slicer) isMask(s *recording.State, o *recording.Object) bool {
	if t := w.tableOf(s, o); t != nil {
		return len(t.columns) == 1 && t.columns[0].dtype == "bool" || t.dtype == "bool"
	}
	return len(o.Values) > 0 && (o.Values[0].Tag == recording.TagTrue || o.Values[0].Tag == recording.TagFalse)
}

// integer returns the integer that a name or a literal stands for, or nil.
func (w *slicer) integer(node *Step, text string) *big.Int {
	text = strings.TrimSpace(text)
	if v, ok := w.value(node, text); ok {
		return v.BigInt()
	}
	if n, ok := new(big.Int).SetString(text, 10); ok {
		return n
	}
	return nil
}

func (w *slicer) checkFloorDivision(node *Step, _ *program.Statement, c program.Check) {
	score := scoreLikely
	left, right, _ := strings.Cut(c.Text, "//")
	if x, y := w.integer(node, left), w.integer(node, right); x != nil && y != nil && y.Sign() != 0 {
		if rest := new(big.Int).Mod(x, y); rest.Sign() != 0 {
			w.find(scoreLikely+4, "floor_division", node, "%s drops the fraction: %s // %s leaves a rest of %s", c.Text,
				x, y, rest)
			return
		}
		score = scoreHint
	}
	w.find(score, "floor_division", node, "%s drops the fraction: // rounds down, / does not", c.Text)
}

var (
	lengthText  = regexp.MustCompile(`^len\([^()]*\)( ?- ?\d+)?$`)
	minusNumber = regexp.MustCompile(`- ?\d+$`)
)

// checkRange tells of a range over the length of something that leaves out indexes. That is right in a loop over pairs.
func (w *slicer) checkRange(node *Step, _ *program.Statement, c program.Check) {
	stop, start := c.Args[0], "0"
	if len(c.Args) > 1 {
		start, stop = c.Args[0], c.Args[1]
	}
	if len(c.Args) > 2 || !lengthText.MatchString(stop) {
		return
	}
	var left []string
	if start == "1" {
		left = append(left, "begins at 1: index 0 is left out")
	}
	if minusNumber.MatchString(stop) {
		left = append(left, fmt.Sprintf("ends before %s: the last index is left out", stop))
	}
	if len(left) > 0 {
		w.find(scorePossible, "off_by_one", node, "%s %s", c.Text, strings.Join(left, ", and "))
	}
}

func (w *slicer) checkSlice(node *Step, _ *program.Statement, c program.Check) {
	var left []string
	if c.First > 0 {
		left = append(left, fmt.Sprintf("leaves out the first %d", c.First))
	} else if c.First < 0 {
		left = append(left, fmt.Sprintf("keeps only the last %d", -c.First))
	}
	if c.Last < 0 {
		left = append(left, fmt.Sprintf("leaves out the last %d", -c.Last))
	} else if c.Last > 0 {
		left = append(left, fmt.Sprintf("ends before item %d", c.Last))
	}
	text := c.Text + " " + strings.Join(left, " and ")
	if n := w.length(node, c.Of); n >= 0 {
		text += fmt.Sprintf(" of %d items", n)
	}
	w.find(scorePossible, "off_by_one", node, "%s", text)
}

var numericText = regexp.MustCompile(`^\s*[-+]?\d+([.,]\d+)*\s*$`)

// numberTexts returns one of the items of a list that are texts of numbers, and "" if not all are.
func (w *slicer) numberTexts(s *recording.State, v recording.Value) string {
	o := w.object(s, v)
	if o == nil || len(o.Values) == 0 || w.tableOf(s, o) != nil {
		return ""
	}
	found := ""
	for i, item := range o.Values {
		if o.Form == recording.Pairs && i%2 == 0 {
			continue
		}
		if item.Tag != recording.TagText || !numericText.MatchString(item.Text) {
			return ""
		}
		found = item.Text
	}
	return found
}

// itemsOf returns the recorded items of a list, or the values of a dict.
func itemsOf(o *recording.Object) (items []recording.Value) {
	for i, v := range o.Values {
		if o.Form != recording.Pairs || i%2 > 0 {
			items = append(items, v)
		}
	}
	return items
}

func (w *slicer) checkOrder(node *Step, _ *program.Statement, c program.Check) {
	v, ok := w.value(node, c.Of)
	if !ok {
		return
	}
	if found := w.numberTexts(node.state, v); found != "" && textOrderDiffers(itemsOf(w.object(node.state, v))) {
		w.find(scoreProven, "text_numbers", node, "%s compares text, not numbers: the items of %s are strings such "+
			"as '%s'", c.Text,
			c.Of, found)
	}
}

func (w *slicer) checkArithmetic(node *Step, st *program.Statement, c program.Check) {
	for _, name := range c.Names {
		v, ok := w.value(node, name)
		if !ok {
			continue
		}
		text := w.numberTexts(node.state, v)
		if v.Tag == recording.TagText && numericText.MatchString(v.Text) {
			text = v.Text
		}
		if text != "" {
			effect := map[string]string{"+": "joins texts", "*": "repeats the text"}[c.Call]
			if effect == "" {
				effect = "works on text"
			}
			w.find(scoreProven, "text_numbers", node, "%s %s: %s is the string '%s', not a number", c.Text, effect,
				name, program.Clip(text, 30))
			return
		}
	}
	w.checkAlignment(node, c)
}

// checkDefaults tells of a default argument that keeps what earlier calls put into it.
func (w *slicer) checkDefaults(node *Step) {
	st := w.program.Get(node.statement)
	if node.Function == "" {
		return
	}
	for number := st.In; number > 0; number = w.program.Get(number).In {
		def := w.program.Get(number)
		if def.Kind != "def" {
			continue
		}
		for _, c := range def.ChecksOf("default") {
			if !slices.Contains(st.Mutates, c.Of) {
				continue
			}
			n := w.length(node, c.Of)
			score, text := scorePossible, ""
			if n > 0 {
				score = scoreProven
				if o := w.object(node.state, w.valueAt(node, c.Of)); o != nil && o.Form == recording.Pairs &&
					w.isCache(st.Function, c.Of) {
					score = scorePossible
				}
				text = fmt.Sprintf("; it had %d items from earlier calls here", n)
			}
			w.find(score, "mutable_default", node, "%s is a mutable default argument of %s, one object for all "+
				"calls%s", c.Of, c.Call,
				text)
		}
		return
	}
}

// checkSetAgain tells of a variable that has changed since a step read it.
func (w *slicer) checkSetAgain(node *Step) {
	if node.Times != 1 || node.Role == "condition" {
		return
	}
	end, err := w.stateAt(w.out.Step)
	if err != nil {
		return
	}
	for _, read := range node.Reads {
		v := node.state.Resolve(w.table, read.Name)
		if v.Frame != 0 || read.Name == node.Name || read.Name == w.out.Name {
			continue
		}
		before, _ := node.state.ValueOf(w.table, v)
		if now, ok := end.ValueOf(w.table, v); ok && now != before && before.Tag != recording.TagObject {
			w.find(scorePossible+10, "set_again", node, "%s was %s here and is %s now: it was set again after this "+
				"step had read it",
				read.Name, read.Value, end.Preview(w.table, now, 40))
		}
	}
}

func (w *slicer) checkKeys(node *Step, _ *program.Statement, c program.Check) {
	if node.after == nil || !node.hasValue || len(c.Names) == 0 {
		return
	}
	o, from := w.object(node.after, node.value), w.length(node, c.Names[0])
	if o != nil && o.Form == recording.Pairs && o.Length >= 0 && from > o.Length {
		w.find(scoreLikely, "equal_keys", node, "%d items of %s gave %d keys: with equal keys, the last item is kept",
			from,
			c.Names[0], o.Length)
	}
}

func (w *slicer) checkNaN(node *Step, _ *program.Statement, c program.Check) {
	w.find(scoreProven, "compares_nan", node, "%s: NaN equals nothing, not even itself; use isna()", c.Text)
}

func (w *slicer) checkPrecedence(node *Step, _ *program.Statement, c program.Check) {
	w.find(scoreProven, "precedence", node, "%s compares with (%s), because %s binds more tightly than a comparison: "+
		"put each condition in parentheses", c.Text, c.Args[0], c.Call)
}

// maxTurns bounds the executions of a line that are searched for a key that a dict does not have.
const maxTurns = 8

// checkDefaultItem tells of keys that a dict does not have, so that its get returned the default.
func (w *slicer) checkDefaultItem(node *Step, st *program.Statement, c program.Check) {
	isIn, err := expr.Parse(fmt.Sprintf("(%s) in %s", c.Args[0], c.Of))
	if err != nil || slices.Contains(st.Mutates, c.Of) { // counts[key] = counts.get(key, 0) + 1
		return
	}
	lines := []int64{st.Line}
	step, turns, missing, example, similar := node.Step+1, 0, 0, "", ""
	if node.after != nil { // with the steps of a comprehension in the statement
		step = max(step, node.after.Step)
	}
	for range maxTurns {
		if step = w.lastStepAt(lines, 0, step); step == 0 {
			break
		}
		s, err := w.stateAt(step)
		if err != nil {
			break
		}
		has, err := isIn.Holds(s, w.table)
		if err != nil {
			continue // the key is not known at this step
		}
		if turns++; has {
			continue
		}
		missing++
		if key, err := expr.Parse(c.Args[0]); err == nil && similar == "" {
			v, _ := key.Value(s, w.table, s.Current)
			dict, _ := s.ValueOf(w.table, s.Resolve(w.table, c.Of))
			if similar = w.similarKey(s, w.object(s, dict), v); similar != "" || example == "" {
				example = s.Preview(w.table, v, 40)
			}
		}
	}
	switch {
	case missing > 0 && similar != "":
		w.find(scoreProven, "default_item", node, "%s gave its default %s: %s has no key %s, but %s", c.Text, c.Args[1],
			c.Of, example, similar)
	case missing > 0:
		often := ""
		if turns > 1 {
			often = fmt.Sprintf(" in %d of the last %d turns", missing, turns)
		}
		w.find(scoreLikely, "default_item", node, "%s gave its default %s%s: %s has no key %s", c.Text, c.Args[1],
			often, c.Of, example)
	case turns == 0:
		w.find(scorePossible, "default_item", node, "%s gives %s for each key that %s does not have", c.Text, c.Args[1],
			c.Of)
	}
}

// narrowInteger matches integer types that small numbers do not fit.
var narrowInteger = regexp.MustCompile(`(?i)\b(u?)int(8|16|32)\b`)

func (w *slicer) checkConvert(node *Step, _ *program.Statement, c program.Check) {
	if found := narrowInteger.FindStringSubmatch(c.To); found != nil {
		bits, _ := strconv.Atoi(found[2])
		if found[1] == "" {
			bits--
		}
		w.find(scoreLikely, "overflow", node, "%s: values, and results of arithmetic, above %d wrap around without an "+
			"error", c.Text, int64(1)<<bits-1)
	}
	if t := w.tableBefore(node, c.Of); t != nil {
		if column := t.column(c.Column); column != nil && isInteger.MatchString(column.dtype) {
			return
		}
	}
	if c.Call == "int" || strings.Contains(c.To, "int") {
		w.find(scorePossible+5, "truncation", node, "%s cuts fractions off: 2.9 becomes 2", c.Text)
	}
}

var isInteger = regexp.MustCompile(`(?i)^(u?int\d*|bool)$`)

// checkClosure tells of a lambda that reads a variable of the loop that it is made in.
func (w *slicer) checkClosure(node *Step, st *program.Statement, c program.Check) {
	for number := st.In; number > 0 && isKept(st); number = w.program.Get(number).In {
		outer := w.program.Get(number)
		if outer.Kind == "def" || outer.Kind == "class" {
			return
		}
		for _, name := range c.Names {
			if outer.Kind == "for" && slices.Contains(outer.Sets, name) {
				w.find(scoreLikely+5, "late_binding", node, "%s reads %s when it is called, not when it is made: "+
					"after the loop that is the last %s for all of them", c.Text, name, name)
			}
		}
	}
}

func (w *slicer) checkTime(node *Step, st *program.Statement, c program.Check) {
	converts := func(other program.Check) bool {
		return other.Of == c.Of && (other.Call == "tz_convert" || other.Call == "astimezone")
	}
	if slices.ContainsFunc(st.ChecksOf("time"), converts) {
		return // the statement chooses the zone
	}
	zone := ""
	if v, ok := w.value(node, c.Of); ok {
		if t := w.tableOf(node.state, w.object(node.state, v)); t != nil {
			if column := t.column(c.Column); column != nil {
				if _, found, ok := strings.Cut(column.dtype, ", "); ok {
					zone = strings.TrimSuffix(found, "]")
				}
			}
		} else if text := node.state.Preview(w.table, v, 200); strings.Contains(text, "utc") || strings.Contains(text,
			"UTC") ||
			strings.Contains(text, "+00:00") {
			zone = "UTC"
		}
	}
	switch {
	case zone != "":
		w.find(scoreLikely, "time_zone", node, "%s is about the time zone %s: a local day or hour may be another "+
			"one", c.Text, zone)
	case c.Call == "tz_localize" || c.Call == "replace" && strings.Contains(c.Text, "tzinfo"):
		w.find(scorePossible+10, "time_zone", node, "%s sets or drops the time zone and keeps the clock time; "+
			"tz_convert keeps the "+
			"moment", c.Text)
	case slices.Contains([]string{"utcnow", "now", "today", "fromtimestamp", "utcfromtimestamp"}, c.Call):
		w.find(scorePossible, "time_zone", node, "%s depends on the clock and the time zone of the machine (UTC)",
			c.Text)
	case c.Call == "strptime":
		w.find(scoreHint, "time_zone", node, "%s has no time zone", c.Text)
	}
}
