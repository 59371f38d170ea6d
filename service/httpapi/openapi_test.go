package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/sirupsen/logrus"
)

func TestEveryRouteIsDescribed(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetOutput(io.Discard)
	router, openapi := newRouter(Config{Log: log, Version: "test"})
	if len(router.Routes()) < 80 {
		t.Errorf("got %d routes, want at least 80", len(router.Routes()))
	}
	parameter := regexp.MustCompile(`[:*](\w+)`)
	routed := map[string]bool{} // method and OpenAPI path
	for _, r := range router.Routes() {
		if strings.Contains(r.Handler, "methodNotAllowed") {
			continue
		}
		path := parameter.ReplaceAllString(strings.TrimPrefix(r.Path, versionPrefix), "{$1}")
		routed[r.Method+" "+path] = true
		item := openapi.Paths[path]
		if item == nil {
			t.Errorf("%s %s: the path is not in OpenAPI", r.Method, r.Path)
			continue
		}
		operation := operationsOf(item)[r.Method]
		if operation == nil {
			t.Errorf("%s %s: the method is not in OpenAPI", r.Method, r.Path)
			continue
		}
		checkOperation(t, operation)
	}
	for path, item := range openapi.Paths {
		if strings.HasPrefix(path, versionPrefix) {
			t.Errorf("%s: described twice; want the path without the prefix only", path)
		}
		for method := range operationsOf(item) {
			if !routed[method+" "+path] {
				t.Errorf("%s %s is in OpenAPI, but gin has no route for it", method, path)
			}
		}
	}
}

// huma takes null for an optional field at any depth of a body, and the document says so.
func TestOptionalFieldsOfBodiesMayBeNull(t *testing.T) {
	t.Parallel()
	_, openapi := newRouter(Config{Log: logrus.New(), Version: "test"})
	all := openapi.Components.Schemas
	var check func(path string, s *huma.Schema)
	check = func(path string, s *huma.Schema) {
		if s = dereference(all, s); s == nil {
			return
		}
		if rows := s.Properties["max_rows"]; rows != nil {
			if rows.Nullable {
				t.Errorf("%s.max_rows is described to be null, which a policy refuses", path)
			}
			return
		}
		for name, property := range s.Properties {
			p := dereference(all, property)
			if p.Type != "" && !p.Nullable && !slices.Contains(s.Required, name) {
				t.Errorf("%s.%s may be absent, and is not described to be null", path, name)
			}
			check(path+"."+name, p)
			check(path+"."+name+"[]", p.Items)
		}
	}
	for path, item := range openapi.Paths {
		for method, op := range operationsOf(item) {
			if op.RequestBody != nil && op.RequestBody.Content["application/json"] != nil {
				check(method+" "+path+" body", op.RequestBody.Content["application/json"].Schema)
			}
		}
	}
}

// dereference returns the schema that s refers to, or s.
func dereference(all huma.Registry, s *huma.Schema) *huma.Schema {
	for s != nil && s.Ref != "" {
		s = all.SchemaFromRef(s.Ref)
	}
	return s
}

func checkOperation(t *testing.T, op *huma.Operation) {
	t.Helper()
	if !regexp.MustCompile(`^[a-z]+[A-Z0-9][A-Za-z0-9]*$`).MatchString(op.OperationID) {
		t.Errorf("%s %s: got operationId %q, want a readable one such as createSandbox", op.Method, op.Path,
			op.OperationID)
	}
	if len(op.Tags) != 1 || !knownTag(op.Tags[0]) {
		t.Errorf("%s: got tags %v, want one of tagDescriptions", op.OperationID, op.Tags)
	}
	if op.Summary == "" {
		t.Errorf("%s: no summary", op.OperationID)
	}
	want := []string{"422", "500", "503"}
	if !reflect.DeepEqual(op.Security, []map[string][]string{}) { // needs a key
		want = append(want, "401", "429")
	}
	if strings.Contains(op.Path, "{") {
		want = append(want, "404")
	}
	if op.RequestBody != nil {
		want = append(want, "400", "413")
	}
	succeeds := false
	for status, response := range op.Responses {
		succeeds = succeeds || status < "400"
		if response.Description == "" {
			t.Errorf("%s: status %s has no description", op.OperationID, status)
		}
	}
	if !succeeds {
		t.Errorf("%s: no status of success", op.OperationID)
	}
	for _, status := range want {
		if op.Responses[status] == nil {
			t.Errorf("%s: status %s is not described", op.OperationID, status)
		}
	}
	for _, name := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(op.Path, -1) {
		described := false
		for _, parameter := range op.Parameters {
			described = described || parameter.In == "path" && parameter.Name == name[1]
		}
		if !described {
			t.Errorf("%s: the path parameter %s is not described", op.OperationID, name[1])
		}
	}
}

func knownTag(name string) bool {
	for _, tag := range tagDescriptions {
		if tag.Name == name {
			return true
		}
	}
	return false
}

// New must not change what other users of gin and huma in the process see.
func TestNewSetsNoGlobals(t *testing.T) {
	before := reflect.ValueOf(huma.NewErrorWithContext).Pointer()
	strict := huma.ValidateStrictCasing
	replaced := func(huma.Context, int, string, ...error) huma.StatusError { return nil }
	huma.NewErrorWithContext, huma.ValidateStrictCasing = replaced, false
	t.Cleanup(func() { huma.NewErrorWithContext, huma.ValidateStrictCasing = newProblem, strict })
	New(Config{Log: logrus.New(), Version: "test"})
	if reflect.ValueOf(huma.NewErrorWithContext).Pointer() == before || huma.ValidateStrictCasing {
		t.Error("New changed a global of huma; want that in init only")
	}
}

// DescribedAnswers returns a function that returns an error unless OpenAPI describes an answer: its status and, if it
// is JSON, its body. A request without a route is described.
func DescribedAnswers() func(method, path, status, contentType string, text []byte) error {
	_, openapi := newRouter(Config{Log: logrus.New(), Version: "test"})
	type route struct {
		method    string
		path      *regexp.Regexp
		literal   bool // no parameters: it wins over a route with parameters
		responses map[string]*huma.Response
	}
	var routes []route
	parameter := regexp.MustCompile(`\\{(\w+)\\}`)
	for path, item := range openapi.Paths {
		pattern := parameter.ReplaceAllStringFunc(regexp.QuoteMeta(path), func(name string) string {
			if name == `\{path\}` {
				return ".+"
			}
			return "[^/]+"
		})
		for method, op := range operationsOf(item) {
			routes = append(routes, route{method, regexp.MustCompile("^" + pattern + "$"), !strings.Contains(path, "{"),
				op.Responses})
		}
	}
	return func(method, path, status, contentType string, text []byte) error {
		if status == "404" || status == "405" {
			return nil // also the answer to a path or a method without a route
		}
		path, _, _ = strings.Cut(strings.TrimPrefix(path, versionPrefix), "?")
		var found *route
		for _, r := range routes {
			if r.method == method && r.path.MatchString(path) && (found == nil || r.literal) {
				found = &r
			}
		}
		if found == nil {
			return nil
		}
		response := found.responses[status]
		if response == nil {
			return fmt.Errorf("OpenAPI does not describe the status")
		}
		content := response.Content[contentType]
		var body any
		if content == nil || content.Schema == nil || contentType != "application/json" ||
			json.Unmarshal(text, &body) != nil {
			return nil
		}
		var result huma.ValidateResult
		huma.Validate(openapi.Components.Schemas, content.Schema, huma.NewPathBuffer([]byte{}, 0),
			huma.ModeReadFromServer, body, &result)
		nulls := checkNulls(openapi.Components.Schemas, content.Schema, "body", body)
		return errors.Join(append(result.Errors, nulls)...)
	}
}

// checkNulls returns an error if a field is null that may not be: huma accepts null for every optional field.
func checkNulls(all huma.Registry, s *huma.Schema, path string, v any) (err error) {
	if s = dereference(all, s); s == nil {
		return nil
	}
	switch v := v.(type) {
	case nil:
		if s.Type != "" && !s.Nullable {
			return fmt.Errorf("%s is null, want %s", path, s.Type)
		}
	case []any:
		for i, item := range v {
			err = errors.Join(err, checkNulls(all, s.Items, fmt.Sprintf("%s[%d]", path, i), item))
		}
	case map[string]any:
		for name, field := range v {
			of := s.Properties[name]
			if of == nil {
				of, _ = s.AdditionalProperties.(*huma.Schema)
			}
			err = errors.Join(err, checkNulls(all, of, path+"."+name, field))
		}
	}
	return err
}
