package dbaccess

import (
	"reflect"
	"sync"

	"google.golang.org/protobuf/proto"
)

// shape is what the walk needs to know of one of the parser's Go types: it is found
// by reflection once, and not at every node. Fields that hold no message are not in it.
type shape struct {
	name     string // of the node
	allowed  bool
	fields   []field
	odd      string // a field of a form that no node had when this was written; such a node is refused
	unknown  int    // where what the parser's library does not know is kept
	location int    // -1: there is none
}

type field struct {
	index int
	form  form
}

type form byte

const (
	aNode form = iota
	aList
	aChoice // one of several, each in a struct of its own
)

var shapes sync.Map // of reflect.Type, that of a struct

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s, _ := shapes.LoadOrStore(t, newShape(t))
	return s.(*shape)
}

var aMessage = reflect.TypeFor[proto.Message]()

func newShape(t reflect.Type) *shape {
	message := reflect.New(t).Interface().(proto.Message)
	s := &shape{name: string(message.ProtoReflect().Descriptor().Name()), location: -1}
	s.allowed = allowedNodes[s.name]
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			if f.Name == "unknownFields" {
				s.unknown = i
			}
			continue
		}
		switch kind := f.Type.Kind(); {
		case f.Name == "Location" && kind == reflect.Int32:
			s.location = i
		case f.Type.Implements(aMessage):
			s.fields = append(s.fields, field{i, aNode})
		case kind == reflect.Slice && f.Type.Elem().Implements(aMessage):
			s.fields = append(s.fields, field{i, aList})
		case kind == reflect.Interface:
			s.fields = append(s.fields, field{i, aChoice})
		case !plain(f.Type):
			s.odd = f.Name
		}
	}
	return s
}

// plain says that a type can hold no message.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64, reflect.String:
		return true
	case reflect.Slice:
		return plain(t.Elem()) || t.Elem().Kind() == reflect.Uint8
	}
	return false
}

// at is where a node begins in the text, -1 where it does not say.
func (s *shape) at(node reflect.Value) int {
	if s.location < 0 {
		return -1
	}
	return int(node.Field(s.location).Int())
}

// chosen is the message in a choice; not valid where it is a plain value, or none.
func chosen(choice reflect.Value) reflect.Value {
	if choice.IsNil() {
		return reflect.Value{}
	}
	if one := choice.Elem().Elem().Field(0); one.Kind() == reflect.Pointer {
		return one
	}
	return reflect.Value{}
}

// each visits the nodes right below one.
func (s *shape) each(node reflect.Value, visit func(reflect.Value)) {
	for _, f := range s.fields {
		v := node.Field(f.index)
		switch f.form {
		case aList:
			for i := range v.Len() {
				visit(v.Index(i))
			}
			continue
		case aChoice:
			v = chosen(v)
		}
		if v.IsValid() && !v.IsNil() {
			visit(v)
		}
	}
}
