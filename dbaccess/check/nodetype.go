package check

import (
	"reflect"
	"strings"
	"sync"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// nodeType describes one of the parser's Go types. It says how the type's JSON is read and lists the
// fields with child nodes. It is built once by reflection, so reading and walking a tree needs little reflection.
type nodeType struct {
	name             string // of the node in protobuf
	goType           reflect.Type
	isAllowed        bool
	fieldsByJSONName map[string]*nodeField
	childFields      []*nodeField // fields that hold nodes; one for each oneof
	locationIndex    int          // index of the field Location, or -1
}

// nodeField describes a field. A tree with a field of an unknown form cannot be read.
type nodeField struct {
	index        int // in the Go struct
	form         fieldForm
	childType    *nodeType        // formNode, formList
	enumNumbers  map[string]int32 // formEnum
	oneofWrapper reflect.Type     // formOneof: the struct around oneofField
	oneofField   *nodeField
}

type fieldForm byte

const (
	formNode fieldForm = iota
	formList
	formOneof // one of several fields, each in a struct of its own
	formEnum
	formString
	formInteger
	formBool
)

// nodeTypes returns the types of a parse tree.
var nodeTypes = sync.OnceValue(func() map[reflect.Type]*nodeType {
	all := map[reflect.Type]*nodeType{}
	addNodeType(all, reflect.TypeFor[pg_query.ParseResult]())
	return all
})

func nodeTypeOf(t reflect.Type) *nodeType { return nodeTypes()[t] }

var protoMessageType = reflect.TypeFor[proto.Message]()

func addNodeType(all map[reflect.Type]*nodeType, t reflect.Type) *nodeType {
	if s := all[t]; s != nil {
		return s
	}
	message := reflect.New(t).Interface().(proto.Message).ProtoReflect()
	s := &nodeType{
		name:             string(message.Descriptor().Name()),
		goType:           t,
		fieldsByJSONName: map[string]*nodeField{},
		locationIndex:    -1,
	}
	s.isAllowed = allowedNodes[s.name]
	all[t] = s
	for i := range t.NumField() {
		goField := t.Field(i)
		if !goField.IsExported() {
			continue
		}
		if goField.Name == "Location" && goField.Type.Kind() == reflect.Int32 {
			s.locationIndex = i
		}
		of := goField.Tag.Get("protobuf_oneof")
		if of == "" {
			if f := newNodeField(all, goField, i); f != nil {
				s.fieldsByJSONName[jsonName(goField)] = f
				if f.childType != nil {
					s.childFields = append(s.childFields, f)
				}
			}
			continue
		}
		s.childFields = append(s.childFields, &nodeField{index: i, form: formOneof})
		choices := message.Descriptor().Oneofs().ByName(protoreflect.Name(of)).Fields()
		for j := range choices.Len() {
			one := message.New()
			one.Set(choices.Get(j), one.NewField(choices.Get(j)))
			choice := reflect.ValueOf(one.Interface()).Elem().Field(i).Elem().Type().Elem()
			if f := newNodeField(all, choice.Field(0), 0); f != nil {
				s.fieldsByJSONName[jsonName(choice.Field(0))] = &nodeField{
					index:        i,
					form:         formOneof,
					oneofWrapper: choice,
					oneofField:   f,
				}
			}
		}
	}
	return s
}

// newNodeField returns nil for a field of an unknown form.
func newNodeField(all map[reflect.Type]*nodeType, f reflect.StructField, index int) *nodeField {
	switch kind := f.Type.Kind(); {
	case f.Type.Implements(protoMessageType):
		return &nodeField{index: index, form: formNode, childType: addNodeType(all, f.Type.Elem())}
	case kind == reflect.Slice && f.Type.Elem().Implements(protoMessageType):
		return &nodeField{index: index, form: formList, childType: addNodeType(all, f.Type.Elem().Elem())}
	case f.Type.Implements(reflect.TypeFor[protoreflect.Enum]()):
		values := reflect.Zero(f.Type).Interface().(protoreflect.Enum).Descriptor().Values()
		numbers := map[string]int32{}
		for i := range values.Len() {
			numbers[string(values.Get(i).Name())] = int32(values.Get(i).Number())
		}
		return &nodeField{index: index, form: formEnum, enumNumbers: numbers}
	case kind == reflect.String:
		return &nodeField{index: index, form: formString}
	case kind == reflect.Int32 || kind == reflect.Int64 || kind == reflect.Uint32 || kind == reflect.Uint64:
		return &nodeField{index: index, form: formInteger}
	case kind == reflect.Bool:
		return &nodeField{index: index, form: formBool}
	}
	return nil
}

// jsonName returns the name of a field in JSON.
func jsonName(f reflect.StructField) (name string) {
	for part := range strings.SplitSeq(f.Tag.Get("protobuf"), ",") {
		if as, ok := strings.CutPrefix(part, "name="); ok && name == "" {
			name = as
		} else if as, ok := strings.CutPrefix(part, "json="); ok {
			name = as
		}
	}
	return name
}

// offset returns the byte offset of a node in the statement, or -1 if it has none.
func (s *nodeType) offset(node reflect.Value) int {
	if s.locationIndex < 0 {
		return -1
	}
	return int(node.Field(s.locationIndex).Int())
}

// oneofMessage returns the message in a oneof. The result is invalid for a scalar or an empty oneof.
func oneofMessage(choice reflect.Value) reflect.Value {
	if choice.IsNil() {
		return reflect.Value{}
	}
	if one := choice.Elem().Elem().Field(0); one.Kind() == reflect.Pointer {
		return one
	}
	return reflect.Value{}
}

// forEachChild visits the direct children of a node, which are pointers.
func (s *nodeType) forEachChild(node reflect.Value, visit func(*nodeType, reflect.Value)) {
	for _, f := range s.childFields {
		v, below := node.Field(f.index), f.childType
		switch f.form {
		case formList:
			for i := range v.Len() {
				visit(below, v.Index(i))
			}
			continue
		case formOneof:
			if v = oneofMessage(v); v.IsValid() {
				below = nodeTypeOf(v.Type().Elem())
			}
		}
		if v.IsValid() && !v.IsNil() {
			visit(below, v)
		}
	}
}
