package check

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// maxTreeDepth bounds the nesting of messages.
const maxTreeDepth = 10_000

var (
	errTreeTooDeep    = errors.New("the statement is nested too deeply")
	errUnreadableTree = errors.New("the parse tree of the statement cannot be read")
)

// readTree reads the parser's tree from the JSON that it writes: no white space between tokens, and
// protobuf names. A field that is unknown or occurs twice is an error, so everything that was
// parsed is also checked. (The parser's writer omits negative integers; no check depends on one.)
// Strings of the tree share the memory of text.
func readTree(text string) (*pg_query.ParseResult, error) {
	r, tree := treeReader{text: text}, &pg_query.ParseResult{}
	node := reflect.ValueOf(tree).Elem()
	if err := r.message(nodeTypeOf(node.Type()), node, 0); err != nil {
		return nil, err
	}
	if r.offset < len(text) || !utf8.ValidString(text) {
		return nil, errUnreadableTree
	}
	return tree, nil
}

// treeReader reads a text from an offset.
type treeReader struct {
	text   string
	offset int
}

func (r *treeReader) message(s *nodeType, into reflect.Value, depth int) error {
	if depth > maxTreeDepth {
		return errTreeTooDeep
	}
	if !r.accept('{') {
		return errUnreadableTree
	}
	for first := true; !r.accept('}'); first = false {
		if !first && !r.accept(',') {
			return errUnreadableTree
		}
		name, ok := r.quoted()
		f := s.fieldsByJSONName[name]
		if !ok || f == nil || !r.accept(':') {
			return errUnreadableTree
		}
		if err := r.field(f, into, depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *treeReader) field(f *nodeField, node reflect.Value, depth int) error {
	into := node.Field(f.index)
	if !into.IsZero() {
		return errUnreadableTree
	}
	ok := false
	switch f.form {
	case formNode:
		one := reflect.New(f.childType.goType)
		into.Set(one)
		return r.message(f.childType, one.Elem(), depth+1)
	case formOneof:
		one := reflect.New(f.oneofWrapper)
		if n, ok := node.Addr().Interface().(*pg_query.Node); ok {
			assignTo(&n.Node, one.Interface())
		} else {
			into.Set(one)
		}
		return r.field(f.oneofField, one.Elem(), depth)
	case formList:
		return r.list(f.childType, into, depth)
	case formEnum:
		var name string
		var n int32
		if name, ok = r.quoted(); ok {
			n, ok = f.enumNumbers[name]
			into.SetInt(int64(n))
		}
	case formString:
		var s string
		s, ok = r.quoted()
		into.SetString(s)
	case formInteger:
		var n int64
		if n, ok = r.number(); ok && into.CanInt() {
			into.SetInt(n)
			ok = into.Int() == n
		} else if ok {
			into.SetUint(uint64(n))
			ok = n >= 0 && into.Uint() == uint64(n)
		}
	case formBool:
		ok = strings.HasPrefix(r.text[r.offset:], "true") // the writer omits false
		r.offset += len("true")
		into.SetBool(ok)
	}
	if !ok {
		return errUnreadableTree
	}
	return nil
}

func (r *treeReader) list(s *nodeType, into reflect.Value, depth int) error {
	if !r.accept('[') {
		return errUnreadableTree
	}
	for first := true; !r.accept(']'); first = false {
		if !first && !r.accept(',') {
			return errUnreadableTree
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

func (r *treeReader) accept(c byte) bool {
	if r.offset == len(r.text) || r.text[r.offset] != c {
		return false
	}
	r.offset++
	return true
}

// quoted reads a string. A string without escapes is not copied.
func (r *treeReader) quoted() (string, bool) {
	if !r.accept('"') {
		return "", false
	}
	left, escapes := r.text[r.offset:], false
	for i := 0; i < len(left); i++ {
		switch left[i] {
		case '"':
			r.offset += i + 1
			if escapes {
				return unescape(left[:i])
			}
			return left[:i], true
		case '\\':
			escapes = true
			i++
		}
	}
	return "", false
}

func unescape(text string) (s string, ok bool) {
	err := json.Unmarshal([]byte(`"`+text+`"`), &s)
	return s, err == nil
}

func (r *treeReader) number() (int64, bool) {
	begin := r.offset
	for r.offset < len(r.text) && (r.text[r.offset] == '-' || r.text[r.offset] >= '0' && r.text[r.offset] <= '9') {
		r.offset++
	}
	n, err := strconv.ParseInt(r.text[begin:r.offset], 10, 64)
	return n, err == nil
}

// assignTo sets an interface value; reflect.Value.Set takes much longer.
func assignTo[T any](into *T, one any) { *into = one.(T) }
