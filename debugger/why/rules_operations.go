package why

// This file has the rules about operations of a step.

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"glasshouse/debugger/expr"
	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

// value returns a variable that a step could read, on arrival at the step.
func (w *slicer) value(node *Step, name string) (recording.Value, bool) {
	if name == "" {
		return recording.Value{}, false
	}
	return node.state.ValueOf(w.table, node.state.Resolve(w.table, name))
}

// valueAt returns the value of a variable on arrival at a step, or no value.
func (w *slicer) valueAt(node *Step, name string) recording.Value {
	v, _ := w.value(node, name)
	return v
}

func (w *slicer) object(s *recording.State, v recording.Value) *recording.Object {
	if v.Tag != recording.TagObject {
		return nil
	}
	return s.Objects[v.Object]
}

var iteratorType = regexp.MustCompile(
	`^(generator|map|filter|zip|enumerate|reversed|\w*iterator|_csv\.reader|itertools\..*)$`)

// checkIterate tells that an iterator had been used up by an earlier step.
func (w *slicer) checkIterate(node *Step, c program.Check) {
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
		w.find(node, "%s is a %s, which gives its items once: line %d (step %d) had used "+
			"it up, so nothing was left here", c.Of, s.TypeOf(w.table, before), f.Line, step)
		return
	}
	w.findAt(60, node, "%s is a %s, which gives its items once: line %d (step %d) "+
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

// checkFloorDivision tells of a rest that // drops.
func (w *slicer) checkFloorDivision(node *Step, c program.Check) {
	left, right, _ := strings.Cut(c.Text, "//")
	x, y := w.integer(node, left), w.integer(node, right)
	if x == nil || y == nil || y.Sign() == 0 {
		return
	}
	if rest := new(big.Int).Mod(x, y); rest.Sign() != 0 {
		w.find(node, "%s drops the fraction: %s // %s leaves a rest of %s", c.Text, x, y, rest)
	}
}

// maxTurns bounds the executions of a line that are searched for a key that a dict does not have.
const maxTurns = 8

// checkDefaultItem tells of keys that a dict does not have, so that its get returned the default.
func (w *slicer) checkDefaultItem(node *Step, c program.Check) {
	st := w.program.Get(node.statement)
	if len(c.Args) < 2 {
		return // forged
	}
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
		w.find(node, "%s gave its default %s: %s has no key %s, but %s", c.Text, c.Args[1], c.Of, example, similar)
	case missing > 0:
		often := ""
		if turns > 1 {
			often = fmt.Sprintf(" in %d of the last %d turns", missing, turns)
		}
		w.findAt(scoreLikely, node, "%s gave its default %s%s: %s has no key %s", c.Text, c.Args[1],
			often, c.Of, example)
	}
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

// checkTruncation tells of a conversion to integers, unless all its values are integers already.
func (w *slicer) checkTruncation(node *Step, c program.Check) {
	isInteger := func(f columnFacts) bool { return f.name == c.Column && integerType.MatchString(f.dtype) }
	if t := w.tableBefore(node, c.Of); t != nil && slices.ContainsFunc(t.columns, isInteger) {
		return
	}
	if c.Call == "int" || strings.Contains(c.To, "int") {
		w.find(node, "%s cuts fractions off: 2.9 becomes 2", c.Text)
	}
}

var integerType = regexp.MustCompile(`(?i)^(u?int\d*|bool)$`)

// checkDropped tells of rows with equal keys, of which drop_duplicates keeps the first one.
func (w *slicer) checkDropped(node *Step, c program.Check) {
	before, after := w.tableBefore(node, c.Of), w.tableAfter(node)
	if len(c.Keys) == 0 || before == nil || after == nil || after.rows >= before.rows {
		return
	}
	w.find(node, "%s keeps the first row of each %s, and drops %d of %d rows; it depends on the order of the rows",
		c.Text, strings.Join(c.Keys, ", "), before.rows-after.rows, before.rows)
}
