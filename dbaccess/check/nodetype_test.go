package check

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

// TestFieldsOfAllowedNodes fails if an allowed node has a field that nobody reviewed. Add a reviewed
// field to testdata/fields.txt.
func TestFieldsOfAllowedNodes(t *testing.T) {
	var out strings.Builder
	messages := (&pg_query.Node{}).ProtoReflect().Descriptor().ParentFile().Messages()
	for _, name := range slices.Sorted(maps.Keys(allowedNodes)) {
		if name == "Node" { // the oneof of all nodes
			continue
		}
		described := messages.ByName(protoreflect.Name(name))
		if described == nil {
			t.Errorf("the parser has no node %s", name)
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
		t.Errorf("testdata/fields.txt (%v) differs; the fields are now:\n%s", err, out.String())
	}
}

// TestNodeTypesCoverEveryField expects every field of every node to be readable, and every message to be
// visited by the walk, so that nothing escapes the check.
func TestNodeTypesCoverEveryField(t *testing.T) {
	messages := (&pg_query.Node{}).ProtoReflect().Descriptor().ParentFile().Messages()
	if messages.Len() < 200 {
		t.Fatalf("got %d kinds of nodes, want at least 200", messages.Len())
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
				t.Errorf("%s has no node type", name)
			}
			continue
		}
		want, choices := 0, map[string]bool{}
		for j := range described.Fields().Len() {
			f := described.Fields().Get(j)
			planned := f.IsList() && f.Message() == nil ||
				f.Kind() == protoreflect.DoubleKind // only set by the planner
			if _, read := s.fieldsByJSONName[f.JSONName()]; read == planned {
				t.Errorf("%s.%s: readable = %v", s.name, f.JSONName(), read)
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
					t.Errorf("%s.%s is visited as %s", s.name, f.Name(), got)
				}
				seen++
			})
			if seen != 1 {
				t.Errorf("%s.%s is visited %d times, want once", s.name, f.Name(), seen)
			}
		}
		if s.name != string(described.Name()) || len(s.childFields) != want {
			t.Errorf("%s: got %+v, want %d child fields", described.Name(), s, want)
		}
		if at := described.Fields().ByName("location"); (at != nil && at.Kind() == protoreflect.Int32Kind) != (s.locationIndex >= 0) {
			t.Errorf("%s: got location index %d", s.name, s.locationIndex)
		}
	}
}
