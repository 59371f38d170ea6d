package dbaccess

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Each field of the nodes that are allowed was looked at: a new one must be, too, and
// then goes into the list.
func TestFieldsOfAllowedNodes(t *testing.T) {
	var out strings.Builder
	messages := (&pg_query.Node{}).ProtoReflect().Descriptor().ParentFile().Messages()
	for _, name := range slices.Sorted(maps.Keys(allowedNodes)) {
		if name == "Node" { // which has one of each
			continue
		}
		described := messages.ByName(protoreflect.Name(name))
		if described == nil {
			t.Errorf("there is no node %s", name)
			continue
		}
		out.WriteString(name + ":")
		for i := range described.Fields().Len() {
			out.WriteString(" " + string(described.Fields().Get(i).Name()))
		}
		out.WriteByte('\n')
	}
	want, err := os.ReadFile("testdata/fields.txt")
	if err != nil || out.String() != string(want) {
		t.Errorf("%v; the fields are now:\n%s", err, out.String())
	}
}

// Every field of every kind of node that the parser's library describes can be read, and
// the walk sees every message, so nothing can stand where it is not judged.
func TestShapesHoldEveryField(t *testing.T) {
	messages := (&pg_query.Node{}).ProtoReflect().Descriptor().ParentFile().Messages()
	if messages.Len() < 200 {
		t.Fatalf("only %d kinds of nodes", messages.Len())
	}
	for i := range messages.Len() {
		described := messages.Get(i)
		kind, err := protoregistry.GlobalTypes.FindMessageByName(described.FullName())
		if err != nil {
			t.Fatal(err)
		}
		s := nodeTypeOf(reflect.TypeOf(kind.New().Interface()).Elem())
		if s == nil {
			if name := described.Name(); name != "ScanResult" && name != "ScanToken" {
				t.Errorf("%s is not in a tree", name)
			}
			continue
		}
		want, choices := 0, map[string]bool{}
		for j := range described.Fields().Len() {
			f := described.Fields().Get(j)
			planned := f.IsList() && f.Message() == nil || f.Kind() == protoreflect.DoubleKind // no statement that was only parsed has one
			if _, read := s.fieldsByJSONName[f.JSONName()]; read == planned {
				t.Errorf("%s.%s is read: %v", s.name, f.JSONName(), read)
			}
			if f.Message() == nil {
				continue
			}
			one := kind.New()
			if f.IsList() {
				one.Mutable(f).List().AppendMutable()
			} else {
				one.Mutable(f)
			}
			if of := f.ContainingOneof(); of == nil {
				want++
			} else if !choices[string(of.Name())] {
				choices[string(of.Name())] = true
				want++
			}
			seen := 0
			s.forEachChild(reflect.ValueOf(one.Interface()).Elem(), func(is *nodeType, below reflect.Value) {
				if got := nodeTypeOf(below.Type().Elem()).name; is.name != got || got != string(f.Message().Name()) {
					t.Errorf("%s.%s is seen as %s", s.name, f.Name(), got)
				}
				seen++
			})
			if seen != 1 {
				t.Errorf("%s.%s is seen %d times", s.name, f.Name(), seen)
			}
		}
		if s.name != string(described.Name()) || len(s.childFields) != want {
			t.Errorf("%s: %+v, want %d fields with nodes", described.Name(), s, want)
		}
		if at := described.Fields().ByName("location"); (at != nil && at.Kind() == protoreflect.Int32Kind) != (s.locationIndex >= 0) {
			t.Errorf("%s: the place of its location is %d", s.name, s.locationIndex)
		}
	}
}
