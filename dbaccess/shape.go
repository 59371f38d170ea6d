package dbaccess

import (
	"reflect"
	"strings"
	"sync"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// shape is what is to be known of one of the parser's Go types: how its JSON is read
// into it, and where the nodes below it are. It is found by reflection once, and not at
// every node.
type shape struct {
	name     string // of the node
	goType   reflect.Type
	allowed  bool
	byName   map[string]*field // all, by their names in JSON
	below    []*field          // those that hold nodes; of a choice, one
	location int               // -1: there is none
}

// field is one of a type's. One of a form that no node had when this was written is
// not known, and a tree that has it can't be read.
type field struct {
	index   int // in the Go type
	form    form
	below   *shape           // aNode, aList
	numbers map[string]int32 // aName
	choice  reflect.Type     // aChoice: the struct that holds what was chosen, as
	chosen  *field
}

type form byte

const (
	aNode form = iota
	aList
	aChoice // one of several, each in a struct of its own
	aName   // of an enumeration
	aText
	aWhole
	aFlag
)

// shapes are those of a tree's type and all below it.
var shapes = sync.OnceValue(func() map[reflect.Type]*shape {
	all := map[reflect.Type]*shape{}
	addShape(all, reflect.TypeFor[pg_query.ParseResult]())
	return all
})

func shapeOf(t reflect.Type) *shape { return shapes()[t] }

var aMessage = reflect.TypeFor[proto.Message]()

func addShape(all map[reflect.Type]*shape, t reflect.Type) *shape {
	if s := all[t]; s != nil {
		return s
	}
	message := reflect.New(t).Interface().(proto.Message).ProtoReflect()
	s := &shape{name: string(message.Descriptor().Name()), goType: t, byName: map[string]*field{}, location: -1}
	s.allowed = allowedNodes[s.name]
	all[t] = s
	for i := range t.NumField() {
		goField := t.Field(i)
		if !goField.IsExported() {
			continue
		}
		if goField.Name == "Location" && goField.Type.Kind() == reflect.Int32 {
			s.location = i
		}
		of := goField.Tag.Get("protobuf_oneof")
		if of == "" {
			if f := newField(all, goField, i); f != nil {
				s.byName[jsonName(goField)] = f
				if f.below != nil {
					s.below = append(s.below, f)
				}
			}
			continue
		}
		s.below = append(s.below, &field{index: i, form: aChoice})
		choices := message.Descriptor().Oneofs().ByName(protoreflect.Name(of)).Fields()
		for j := range choices.Len() {
			one := message.New()
			one.Set(choices.Get(j), one.NewField(choices.Get(j)))
			choice := reflect.ValueOf(one.Interface()).Elem().Field(i).Elem().Type().Elem()
			if f := newField(all, choice.Field(0), 0); f != nil {
				s.byName[jsonName(choice.Field(0))] = &field{index: i, form: aChoice, choice: choice, chosen: f}
			}
		}
	}
	return s
}

// newField is nil for one that can't be read.
func newField(all map[reflect.Type]*shape, f reflect.StructField, index int) *field {
	switch kind := f.Type.Kind(); {
	case f.Type.Implements(aMessage):
		return &field{index: index, form: aNode, below: addShape(all, f.Type.Elem())}
	case kind == reflect.Slice && f.Type.Elem().Implements(aMessage):
		return &field{index: index, form: aList, below: addShape(all, f.Type.Elem().Elem())}
	case f.Type.Implements(reflect.TypeFor[protoreflect.Enum]()):
		values := reflect.Zero(f.Type).Interface().(protoreflect.Enum).Descriptor().Values()
		numbers := map[string]int32{}
		for i := range values.Len() {
			numbers[string(values.Get(i).Name())] = int32(values.Get(i).Number())
		}
		return &field{index: index, form: aName, numbers: numbers}
	case kind == reflect.String:
		return &field{index: index, form: aText}
	case kind == reflect.Int32 || kind == reflect.Int64 || kind == reflect.Uint32 || kind == reflect.Uint64:
		return &field{index: index, form: aWhole}
	case kind == reflect.Bool:
		return &field{index: index, form: aFlag}
	}
	return nil
}

// jsonName is what a field is called in JSON.
func jsonName(f reflect.StructField) (name string) {
	for _, part := range strings.Split(f.Tag.Get("protobuf"), ",") {
		if as, ok := strings.CutPrefix(part, "name="); ok && name == "" {
			name = as
		} else if as, ok := strings.CutPrefix(part, "json="); ok {
			name = as
		}
	}
	return name
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

// each visits the nodes right below one, which are pointers.
func (s *shape) each(node reflect.Value, visit func(*shape, reflect.Value)) {
	for _, f := range s.below {
		v, below := node.Field(f.index), f.below
		switch f.form {
		case aList:
			for i := range v.Len() {
				visit(below, v.Index(i))
			}
			continue
		case aChoice:
			if v = chosen(v); v.IsValid() {
				below = shapeOf(v.Type().Elem())
			}
		}
		if v.IsValid() && !v.IsNil() {
			visit(below, v)
		}
	}
}
