package expr

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"unicode/utf8"

	"glasshouse/debugger/recording"
)

// maxOperations bounds the nodes and the compared items of one evaluation, because a search evaluates a condition at
// very many steps.
const maxOperations = 10_000

var (
	errNotRecorded = errors.New("the recording does not have this value")
	errTooLong     = errors.New("the evaluation takes too many operations")
)

// ErrNewList means that the value of an expression is a list or tuple that is not in the recording.
var ErrNewList = errors.New("the value is a new list, which the recording does not have")

// object is a recorded object, by its number. All other values are nil, bool, *big.Int, float64, string and []any.
type object uint64

// Holds reports whether the condition is true in the current frame of s. It returns an error if the recording does not
// have the values that the condition needs.
func (c *Condition) Holds(s *recording.State, t *recording.Table) (bool, error) {
	e := evaluator{state: s, table: t, frame: s.Current, operations: new(int)}
	v, err := e.eval(c.node)
	if err != nil {
		return false, err
	}
	return e.isTrue(v)
}

// HoldsFor reports whether the condition is true for values of its names, which are bool, *big.Int, float64 or string.
// It returns an error if the condition needs a name without a value.
func (c *Condition) HoldsFor(values map[string]any) (bool, error) {
	e := evaluator{state: &recording.State{}, values: values, operations: new(int)}
	v, err := e.eval(c.node)
	if err != nil {
		return false, err
	}
	return e.isTrue(v)
}

// Value returns the value of the expression in a frame. It returns ErrNewList for a list or tuple that the expression
// itself makes, because a recorded value cannot represent a new list.
func (c *Condition) Value(s *recording.State, t *recording.Table, frame uint64) (recording.Value, error) {
	if name := c.Name(); name != "" {
		v, ok := s.LookUp(t, frame, evaluator{state: s, table: t, frame: frame}.mangled(name))
		if !ok {
			return v, undefined(name)
		}
		return v, nil
	}
	v, err := evaluator{state: s, table: t, frame: frame, operations: new(int)}.eval(c.node)
	if err != nil {
		return recording.Value{}, err
	}
	switch v := v.(type) {
	case nil:
		return recording.Value{Tag: recording.TagNone}, nil
	case bool:
		if v {
			return recording.Value{Tag: recording.TagTrue}, nil
		}
		return recording.Value{Tag: recording.TagFalse}, nil
	case *big.Int:
		return recording.IntValue(v), nil
	case float64:
		return recording.Value{Tag: recording.TagFloat, Float: math.Float64bits(v)}, nil
	case string:
		return recording.Value{Tag: recording.TagText, Text: v}, nil
	case object:
		return recording.Value{Tag: recording.TagObject, Object: uint64(v)}, nil
	}
	return recording.Value{}, ErrNewList
}

func undefined(name string) error { return fmt.Errorf("%s is not defined at this step", name) }

// evaluator evaluates one expression in a frame.
type evaluator struct {
	state      *recording.State
	table      *recording.Table
	frame      uint64
	operations *int // number of operations so far

	values map[string]any // of the names, in place of those of state; nil: there are none
}

// mangled returns the name that Python gives to a private name, such as __x, in the methods of a class.
func (e evaluator) mangled(name string) string {
	f := e.state.Frames[e.frame]
	if f == nil || !strings.HasPrefix(name, "__") || strings.HasSuffix(name, "__") {
		return name
	}
	owner := strings.TrimLeft(classOf(e.table.FunctionName(f.Code)), "_")
	if owner == "" {
		return name
	}
	return "_" + owner + name
}

// classOf returns the innermost class around a function with a qualified name, or "".
func classOf(function string) string {
	names := strings.Split(function, ".")
	for len(names) > 2 && names[len(names)-2] == "<locals>" {
		names = names[:len(names)-2] // a function in a function
	}
	if len(names) < 2 {
		return ""
	}
	return names[len(names)-2]
}

func (e evaluator) count(operations int) error {
	if *e.operations += operations; *e.operations > maxOperations {
		return errTooLong
	}
	return nil
}

func (e evaluator) eval(n node) (any, error) {
	if err := e.count(1); err != nil {
		return nil, err
	}
	switch n.op {
	case opValue:
		return n.value, nil
	case opName:
		if e.values != nil {
			v, ok := e.values[n.text]
			if !ok {
				return nil, undefined(n.text)
			}
			return v, nil
		}
		v, ok := e.state.LookUp(e.table, e.frame, e.mangled(n.text))
		if !ok {
			return nil, undefined(n.text)
		}
		return e.fromRecorded(v)
	case "and", "or":
		v, err := e.eval(n.operands[0])
		if err != nil {
			return nil, err
		}
		if yes, err := e.isTrue(v); err != nil || yes == (n.op == "or") {
			return v, err
		}
		return e.eval(n.operands[1])
	case opComparison:
		return e.comparison(n)
	}
	operands := make([]any, len(n.operands))
	for i, operand := range n.operands {
		var err error
		if operands[i], err = e.eval(operand); err != nil {
			return nil, err
		}
	}
	switch n.op {
	case opList:
		return operands, nil
	case "not":
		yes, err := e.isTrue(operands[0])
		return !yes, err
	case opNegate:
		return arithmetic("-", new(big.Int), operands[0])
	case opAttribute:
		return e.lookUpKey(operands[0], e.mangled(n.text), recording.Attributes)
	case opSubscript:
		return e.subscript(operands[0], operands[1])
	case opCall:
		if n.text == "len" {
			return e.length(operands[0])
		}
		if negative, err := e.compare("<", operands[0], new(big.Int)); err != nil || !negative {
			return operands[0], err
		}
		return arithmetic("-", new(big.Int), operands[0])
	}
	if err := e.count(arithmeticCost(operands[0], operands[1])); err != nil {
		return nil, err
	}
	return arithmetic(n.op, operands[0], operands[1])
}

// comparison evaluates a chain of comparisons up to the first one that is false.
func (e evaluator) comparison(n node) (any, error) {
	left, err := e.eval(n.operands[0])
	if err != nil {
		return nil, err
	}
	for i, op := range n.comparisons {
		right, err := e.eval(n.operands[i+1])
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

// fromRecorded converts a recorded value.
func (e evaluator) fromRecorded(v recording.Value) (any, error) {
	switch v.Tag {
	case recording.TagNone:
		return nil, nil
	case recording.TagTrue, recording.TagFalse:
		return v.Tag == recording.TagTrue, nil
	case recording.TagInt, recording.TagBigInt:
		return v.BigInt(), nil
	case recording.TagFloat:
		return math.Float64frombits(v.Float), nil
	case recording.TagText:
		return v.Text, nil
	case recording.TagObject:
		if o := e.state.Objects[v.Object]; o != nil {
			if scalar, ok := o.Scalar(); ok {
				return e.fromRecorded(scalar)
			}
		}
		return object(v.Object), nil
	}
	return nil, errNotRecorded
}

// isTrue returns the truth value of v.
func (e evaluator) isTrue(v any) (bool, error) {
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
	return n.Sign() != 0, nil
}

func (e evaluator) length(v any) (*big.Int, error) {
	switch v := v.(type) {
	case string:
		return big.NewInt(int64(utf8.RuneCountInString(v))), nil
	case []any:
		return big.NewInt(int64(len(v))), nil
	case object:
		if o := e.state.Objects[uint64(v)]; o != nil && o.Length >= 0 && o.Form != recording.Attributes {
			return big.NewInt(o.Length), nil
		}
		return nil, errNotRecorded
	}
	return nil, errors.New("len() needs a text or a container")
}

// lookUpKey returns the value of a key in an object of pairs or attributes.
func (e evaluator) lookUpKey(of any, key any, form recording.Form) (any, error) {
	number, ok := of.(object)
	o := e.state.Objects[uint64(number)]
	if !ok || o == nil || o.Form != form {
		return nil, errNotRecorded
	}
	if err := e.count(len(o.Values)); err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(o.Values); i += 2 {
		k, err := e.fromRecorded(o.Values[i])
		if err != nil {
			continue
		}
		if same, err := e.equal(k, key); err == nil && same {
			return e.fromRecorded(o.Values[i+1])
		}
	}
	return nil, errNotRecorded
}

func (e evaluator) subscript(of, key any) (any, error) {
	if number, ok := of.(object); ok {
		o := e.state.Objects[uint64(number)]
		if o == nil || o.Form != recording.Items {
			return e.lookUpKey(of, key, recording.Pairs)
		}
		i, ok := key.(*big.Int)
		if !ok || !i.IsInt64() {
			return nil, errNotRecorded
		}
		at := i.Int64()
		if at < 0 {
			at += o.Length
		}
		if at < 0 || at >= int64(len(o.Values)) {
			return nil, errNotRecorded
		}
		return e.fromRecorded(o.Values[at])
	}
	list, ok := of.([]any)
	i, isInt := key.(*big.Int)
	if !ok || !isInt || !i.IsInt64() || i.Int64() < 0 || i.Int64() >= int64(len(list)) {
		return nil, errNotRecorded
	}
	return list[i.Int64()], nil
}

func (e evaluator) compare(op string, a, b any) (bool, error) {
	switch op {
	case "==", "!=":
		same, err := e.equal(a, b)
		return same == (op == "=="), err
	case "is", "is not":
		return identical(a, b) == (op == "is"), nil
	case "in", "not in":
		has, err := e.contains(b, a)
		return has == (op == "in"), err
	}
	order, err := order(a, b)
	switch op {
	case "<":
		return order < 0, err
	case "<=":
		return order <= 0, err
	case ">":
		return order > 0, err
	}
	return order >= 0, err
}

// order returns -1, 0 or 1 if a is less than, equal to or greater than b.
func order(a, b any) (int, error) {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), nil
		}
		return 0, errors.New("a text can only be compared with a text")
	}
	if x, ok := toInt(a); ok {
		if y, ok := toInt(b); ok {
			return x.Cmp(y), nil
		}
		if g, ok := b.(float64); ok && !math.IsNaN(g) {
			return new(big.Float).SetInt(x).Cmp(big.NewFloat(g)), nil
		}
		return 0, errNotRecorded
	}
	f, ok := a.(float64)
	g, gIsNumber := toFloat(b)
	if !ok || !gIsNumber || math.IsNaN(f) || math.IsNaN(g) {
		return 0, errNotRecorded
	}
	return big.NewFloat(f).Cmp(big.NewFloat(g)), nil
}

func identical(a, b any) bool {
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
	if x, ok := toFloat(a); ok {
		y, ok := toFloat(b)
		if m, isInt := toInt(a); ok && isInt {
			if n, isInt := toInt(b); isInt {
				return m.Cmp(n) == 0, nil
			}
		}
		if _, isObject := b.(object); isObject {
			return false, errNotRecorded
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
	x, err := e.items(a, false)
	if err != nil {
		return false, err
	}
	y, err := e.items(b, false)
	if err != nil {
		return false, err
	}
	if len(x) != len(y) {
		return false, nil
	}
	for i := range x {
		if _, nested := x[i].(object); nested {
			return false, errNotRecorded
		}
		if same, err := e.equal(x[i], y[i]); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// items returns the items of a list, or, if keys is set, the keys of a dict. All of them must be recorded.
func (e evaluator) items(v any, keys bool) ([]any, error) {
	if list, ok := v.([]any); ok {
		return list, e.count(len(list))
	}
	number, ok := v.(object)
	o := e.state.Objects[uint64(number)]
	if !ok || o == nil || o.Exactness != recording.Exact ||
		o.Form != recording.Items && (o.Form != recording.Pairs || !keys) {
		return nil, errNotRecorded
	}
	if err := e.count(len(o.Values)); err != nil {
		return nil, err
	}
	stride := 1
	if o.Form == recording.Pairs {
		stride = 2
	}
	var out []any
	for i := 0; i < len(o.Values); i += stride {
		item, err := e.fromRecorded(o.Values[i])
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func (e evaluator) contains(container, wanted any) (bool, error) {
	if text, ok := container.(string); ok {
		part, ok := wanted.(string)
		return ok && strings.Contains(text, part), nil
	}
	items, err := e.items(container, true)
	if err != nil {
		return false, err
	}
	for _, item := range items {
		same, err := e.equal(item, wanted)
		if err == errTooLong || err == nil && same {
			return same, err
		}
	}
	return false, nil
}
