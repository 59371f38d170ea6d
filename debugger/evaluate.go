package debugger

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// What an expression comes to is nil, bool, *big.Int, float64, string, []any or
// object; errUnknown is what the recording does not tell.
type object uint64

var errUnknown = errors.New("the recording does not tell")

// Holds says whether the condition is true where a step has arrived: in its frame's
// variables, and then in the namespace's.
func (c *Condition) Holds(s *State, t *Table) (bool, error) {
	v, err := c.Value(s, t, s.Current)
	if err != nil {
		return false, err
	}
	return evaluator{state: s, table: t}.truth(v)
}

// Value returns what the expression comes to in a frame.
func (c *Condition) Value(s *State, t *Table, frame uint64) (any, error) {
	return evaluator{s, t, s.Frames[frame], new(int)}.eval(c.node)
}

// LookUp returns a variable of a frame, or of the namespace.
func (s *State) LookUp(t *Table, frame uint64, name string) (Value, bool) {
	number := t.byName[name]
	if f := s.Frames[frame]; f != nil && number != 0 {
		if v, ok := f.Variables[number]; ok {
			return v, true
		}
	}
	v, ok := s.Globals[number]
	return v, ok && number != 0
}

// maxWork bounds one evaluation, in nodes and in items that are looked at: a search
// evaluates at each of very many steps.
const maxWork = 10_000

var errWork = errors.New("this is too long to work out")

type evaluator struct {
	state *State
	table *Table
	frame *Frame
	done  *int // of maxWork
}

func (e evaluator) work(n int) error {
	if *e.done += n; *e.done > maxWork {
		return errWork
	}
	return nil
}

func (e evaluator) eval(n node) (any, error) {
	if err := e.work(1); err != nil {
		return nil, err
	}
	switch n.op {
	case "value":
		return n.value, nil
	case "name":
		number := uint64(0)
		if e.frame != nil {
			number = e.frame.Number
		} else {
			number = e.state.Current
		}
		v, ok := e.state.LookUp(e.table, number, n.text)
		if !ok {
			return nil, fmt.Errorf("there is no %s here", n.text)
		}
		return e.take(v)
	case "and", "or":
		v, err := e.eval(n.parts[0])
		if err != nil {
			return nil, err
		}
		if yes, err := e.truth(v); err != nil || yes == (n.op == "or") {
			return v, err
		}
		return e.eval(n.parts[1])
	case "comparison":
		return e.comparison(n)
	}
	parts := make([]any, len(n.parts))
	for i, part := range n.parts {
		var err error
		if parts[i], err = e.eval(part); err != nil {
			return nil, err
		}
	}
	switch n.op {
	case "list":
		return parts, nil
	case "not":
		yes, err := e.truth(parts[0])
		return !yes, err
	case "negate":
		return arithmetic("-", new(big.Int), parts[0])
	case "attribute":
		return e.member(parts[0], n.text, Attributes)
	case "subscript":
		return e.subscript(parts[0], parts[1])
	case "call":
		if n.text == "len" {
			return e.length(parts[0])
		}
		if yes, err := e.compare("<", parts[0], new(big.Int)); err != nil || !yes {
			return parts[0], err
		}
		return arithmetic("-", new(big.Int), parts[0])
	}
	return arithmetic(n.op, parts[0], parts[1])
}

// comparison goes along a chain as far as it holds.
func (e evaluator) comparison(n node) (any, error) {
	left, err := e.eval(n.parts[0])
	if err != nil {
		return nil, err
	}
	for i, op := range n.chain {
		right, err := e.eval(n.parts[i+1])
		if err != nil {
			return nil, err
		}
		if yes, err := e.compare(op, left, right); err != nil || !yes {
			return false, err
		}
		left = right
	}
	return true, nil
}

// take turns a recorded value into one of ours.
func (e evaluator) take(v Value) (any, error) {
	switch v.Tag {
	case TagNone:
		return nil, nil
	case TagTrue, TagFalse:
		return v.Tag == TagTrue, nil
	case TagInt, TagBigInt:
		return v.BigInt(), nil
	case TagFloat:
		return math.Float64frombits(v.Float), nil
	case TagText:
		return v.Text, nil
	case TagObject:
		return object(v.Object), nil
	}
	return nil, errUnknown
}

func (e evaluator) truth(v any) (bool, error) {
	switch v := v.(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	case *big.Int:
		return v.Sign() != 0, nil
	case float64:
		return v != 0, nil
	case string:
		return v != "", nil
	case []any:
		return len(v) > 0, nil
	}
	n, err := e.length(v)
	if err != nil {
		return false, err
	}
	return n.(*big.Int).Sign() != 0, nil
}

func (e evaluator) length(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return big.NewInt(int64(utf8.RuneCountInString(v))), nil
	case []any:
		return big.NewInt(int64(len(v))), nil
	case object:
		if o := e.state.Objects[uint64(v)]; o != nil && o.Length >= 0 && o.Form != Attributes {
			return big.NewInt(o.Length), nil
		}
		return nil, errUnknown
	}
	return nil, errors.New("it has no length")
}

// member looks a key up in an object of pairs or of attributes.
func (e evaluator) member(of any, key any, form Form) (any, error) {
	number, ok := of.(object)
	o := e.state.Objects[uint64(number)]
	if !ok || o == nil || o.Form != form {
		return nil, errUnknown
	}
	if err := e.work(len(o.Values)); err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(o.Values); i += 2 {
		k, err := e.take(o.Values[i])
		if err != nil {
			continue
		}
		if same, err := e.equal(k, key); err == nil && same {
			return e.take(o.Values[i+1])
		}
	}
	return nil, errUnknown
}

func (e evaluator) subscript(of, key any) (any, error) {
	if number, ok := of.(object); ok {
		o := e.state.Objects[uint64(number)]
		if o == nil || o.Form != Items {
			return e.member(of, key, Pairs)
		}
		i, ok := key.(*big.Int)
		if !ok || !i.IsInt64() {
			return nil, errUnknown
		}
		at := i.Int64()
		if at < 0 {
			at += o.Length
		}
		if at < 0 || at >= int64(len(o.Values)) {
			return nil, errUnknown
		}
		return e.take(o.Values[at])
	}
	list, ok := of.([]any)
	i, whole := key.(*big.Int)
	if !ok || !whole || !i.IsInt64() || i.Int64() < 0 || i.Int64() >= int64(len(list)) {
		return nil, errUnknown
	}
	return list[i.Int64()], nil
}

func (e evaluator) compare(op string, a, b any) (bool, error) {
	switch op {
	case "==", "!=":
		same, err := e.equal(a, b)
		return same == (op == "=="), err
	case "is", "is not":
		same := e.identical(a, b)
		return same == (op == "is"), nil
	case "in", "not in":
		has, err := e.contains(b, a)
		return has == (op == "in"), err
	}
	var order int
	if x, ok := a.(string); ok {
		y, ok := b.(string)
		if !ok {
			return false, fmt.Errorf("a text and another value have no order")
		}
		order = strings.Compare(x, y)
	} else if x, ok := number(a); ok && b != nil {
		if y, ok := number(b); ok {
			order = x.Cmp(y)
		} else if g, ok := b.(float64); ok && !math.IsNaN(g) {
			order = new(big.Float).SetInt(x).Cmp(big.NewFloat(g))
		} else {
			return false, errUnknown
		}
	} else if f, ok := a.(float64); ok && !math.IsNaN(f) {
		g, ok := double64(b)
		if !ok || math.IsNaN(g) {
			return false, errUnknown
		}
		order = big.NewFloat(f).Cmp(big.NewFloat(g))
	} else {
		return false, errUnknown
	}
	switch op {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
}

func (e evaluator) identical(a, b any) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case object:
		y, ok := b.(object)
		return ok && x == y
	}
	return false
}

func (e evaluator) equal(a, b any) (bool, error) {
	if x, ok := double64(a); ok {
		y, ok := double64(b)
		if m, whole := number(a); ok && whole {
			if n, whole := number(b); whole {
				return m.Cmp(n) == 0, nil
			}
		}
		_, unknown := b.(object)
		if unknown {
			return false, errUnknown
		}
		return ok && x == y, nil
	}
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return ok && x == y, nil
	case nil:
		return b == nil, nil
	}
	x, err := e.list(a, false)
	if err != nil {
		return false, err
	}
	y, err := e.list(b, false)
	if err != nil {
		return false, err
	}
	if len(x) != len(y) {
		return false, nil
	}
	for i := range x {
		if _, deep := x[i].(object); deep {
			return false, errUnknown
		}
		if same, err := e.equal(x[i], y[i]); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// list returns the items of a list, or the keys of a dict, that is wholly known.
func (e evaluator) list(v any, keys bool) ([]any, error) {
	if list, ok := v.([]any); ok {
		return list, e.work(len(list))
	}
	number, ok := v.(object)
	o := e.state.Objects[uint64(number)]
	if !ok || o == nil || o.Form != Items && (o.Form != Pairs || !keys) || o.Exactness != Exact {
		return nil, errUnknown
	}
	if err := e.work(len(o.Values)); err != nil {
		return nil, err
	}
	step := 1
	if o.Form == Pairs {
		step = 2
	}
	var out []any
	for i := 0; i < len(o.Values); i += step {
		item, err := e.take(o.Values[i])
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func (e evaluator) contains(in, what any) (bool, error) {
	if text, ok := in.(string); ok {
		part, ok := what.(string)
		return ok && strings.Contains(text, part), nil
	}
	items, err := e.list(in, true)
	if err != nil {
		return false, err
	}
	for _, item := range items {
		same, err := e.equal(item, what)
		if err == errWork || err == nil && same {
			return same, err
		}
	}
	return false, nil
}
