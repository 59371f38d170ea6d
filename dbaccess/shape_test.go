package dbaccess

import (
	"reflect"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// The walk sees every message of every kind of node that the parser's library
// describes, so nothing can stand where it is not judged.
func TestShapesHoldEveryMessage(t *testing.T) {
	var node pg_query.Node
	messages := node.ProtoReflect().Descriptor().ParentFile().Messages()
	if messages.Len() < 200 {
		t.Fatalf("only %d kinds of nodes", messages.Len())
	}
	for i := range messages.Len() {
		described := messages.Get(i)
		kind, err := protoregistry.GlobalTypes.FindMessageByName(described.FullName())
		if err != nil {
			t.Fatal(err)
		}
		goType := reflect.TypeOf(kind.New().Interface()).Elem()
		s := shapeOf(goType)
		want, choices := 0, map[string]bool{}
		for j := range described.Fields().Len() {
			f := described.Fields().Get(j)
			one := kind.New()
			switch {
			case f.Message() == nil:
				continue
			case f.IsMap():
				if s.odd == "" {
					t.Errorf("%s.%s is a map, and not refused", s.name, f.Name())
				}
				continue
			case f.IsList():
				one.Mutable(f).List().AppendMutable()
			default:
				one.Mutable(f)
			}
			if of := f.ContainingOneof(); of == nil {
				want++
			} else if !choices[string(of.Name())] {
				choices[string(of.Name())] = true
				want++
			}
			seen := 0
			s.each(reflect.ValueOf(one.Interface()).Elem(), func(below reflect.Value) {
				if got := shapeOf(below.Type().Elem()).name; got != string(f.Message().Name()) {
					t.Errorf("%s.%s is seen as %s", s.name, f.Name(), got)
				}
				seen++
			})
			if seen != 1 {
				t.Errorf("%s.%s is seen %d times", s.name, f.Name(), seen)
			}
		}
		if s.name != string(described.Name()) || len(s.fields) != want || goType.Field(s.unknown).Name != "unknownFields" {
			t.Errorf("%s: %+v, want %d fields", described.Name(), s, want)
		}
		if at := described.Fields().ByName("location"); (at != nil && at.Kind() == protoreflect.Int32Kind) != (s.location >= 0) {
			t.Errorf("%s: the place of its location is %d", s.name, s.location)
		}
	}
}
