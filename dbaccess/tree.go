package dbaccess

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// deepest is how many messages may stand in one another.
const deepest = 10_000

var (
	errDeep = errors.New("the statement nests too deep")
	errTree = errors.New("what the parser says of the statement can't be read")
)

// treeOf reads the parser's tree, in the form of JSON that it writes: no space between
// the tokens, and the names of protobuf. What has no place in the tree's Go types, or
// has one twice, is an error, so all that was parsed is judged. (The writer leaves out
// whole numbers below zero; nothing is judged by one.) Its strings are parts of the text.
func treeOf(text string) (*pg_query.ParseResult, error) {
	r, tree := treeReader{text: text}, &pg_query.ParseResult{}
	node := reflect.ValueOf(tree).Elem()
	if err := r.message(shapeOf(node.Type()), node, 0); err != nil {
		return nil, err
	}
	if r.at < len(text) || !utf8.ValidString(text) {
		return nil, errTree
	}
	return tree, nil
}

// treeReader reads on from a byte of the text.
type treeReader struct {
	text string
	at   int
}

func (r *treeReader) message(s *shape, into reflect.Value, depth int) error {
	if depth > deepest {
		return errDeep
	}
	if !r.take('{') {
		return errTree
	}
	for first := true; !r.take('}'); first = false {
		if !first && !r.take(',') {
			return errTree
		}
		name, ok := r.quoted()
		f := s.byName[name]
		if !ok || f == nil || !r.take(':') {
			return errTree
		}
		if err := r.field(f, into, depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *treeReader) field(f *field, node reflect.Value, depth int) error {
	into := node.Field(f.index)
	if !into.IsZero() {
		return errTree
	}
	ok := false
	switch f.form {
	case aNode:
		one := reflect.New(f.below.goType)
		into.Set(one)
		return r.message(f.below, one.Elem(), depth+1)
	case aChoice:
		one := reflect.New(f.choice)
		if n, ok := node.Addr().Interface().(*pg_query.Node); ok {
			assign(&n.Node, one.Interface())
		} else {
			into.Set(one)
		}
		return r.field(f.chosen, one.Elem(), depth)
	case aList:
		return r.list(f.below, into, depth)
	case aName:
		var name string
		var n int32
		if name, ok = r.quoted(); ok {
			n, ok = f.numbers[name]
			into.SetInt(int64(n))
		}
	case aText:
		var s string
		s, ok = r.quoted()
		into.SetString(s)
	case aWhole:
		var n int64
		if n, ok = r.number(); ok && into.CanInt() {
			into.SetInt(n)
			ok = into.Int() == n
		} else if ok {
			into.SetUint(uint64(n))
			ok = n >= 0 && into.Uint() == uint64(n)
		}
	case aFlag:
		ok = strings.HasPrefix(r.text[r.at:], "true") // the writer leaves out what is false
		r.at += len("true")
		into.SetBool(ok)
	}
	if !ok {
		return errTree
	}
	return nil
}

func (r *treeReader) list(s *shape, into reflect.Value, depth int) error {
	if !r.take('[') {
		return errTree
	}
	for first := true; !r.take(']'); first = false {
		if !first && !r.take(',') {
			return errTree
		}
		one := reflect.New(s.goType)
		if nodes, ok := into.Addr().Interface().(*[]*pg_query.Node); ok {
			*nodes = append(*nodes, one.Interface().(*pg_query.Node))
		} else {
			into.Set(reflect.Append(into, one))
		}
		if err := r.message(s, one.Elem(), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *treeReader) take(c byte) bool {
	if r.at == len(r.text) || r.text[r.at] != c {
		return false
	}
	r.at++
	return true
}

// quoted reads a string; one without escapes stays where it is.
func (r *treeReader) quoted() (string, bool) {
	if !r.take('"') {
		return "", false
	}
	left, escapes := r.text[r.at:], false
	for i := 0; i < len(left); i++ {
		switch left[i] {
		case '"':
			r.at += i + 1
			if escapes {
				return unescaped(left[:i])
			}
			return left[:i], true
		case '\\':
			escapes = true
			i++
		}
	}
	return "", false
}

func unescaped(text string) (s string, ok bool) {
	err := json.Unmarshal([]byte(`"`+text+`"`), &s)
	return s, err == nil
}

func (r *treeReader) number() (int64, bool) {
	begin := r.at
	for r.at < len(r.text) && (r.text[r.at] == '-' || r.text[r.at] >= '0' && r.text[r.at] <= '9') {
		r.at++
	}
	n, err := strconv.ParseInt(r.text[begin:r.at], 10, 64)
	return n, err == nil
}

// assign sets an interface, for which reflection takes much longer.
func assign[T any](into *T, one any) { *into = one.(T) }
