package httpapi

import (
	"context"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"glasshouse/debugger/why"
	"glasshouse/policy"
	"glasshouse/sandbox"
)

// groups are gin's groups by how a request is admitted, each with one group per prefix.
type groups struct {
	public []*gin.RouterGroup // without a key
	pages  []*gin.RouterGroup // without a key, with any query: the pages read it themselves
	login  []*gin.RouterGroup // without a key, with every prefix
	keyed  []*gin.RouterGroup
	signed []*gin.RouterGroup // with a key or a signed URL
	upload []*gin.RouterGroup // with a key, and a large body
}

// routes registers routes with gin and describes each of them once in OpenAPI.
type routes struct {
	groups
	api             huma.API
	checkParameters func(huma.Operation) gin.HandlerFunc
}

// tag groups operations in the documentation.
type tag string

const (
	tagSandboxes     tag = "Sandboxes"
	tagExecutions    tag = "Executions"
	tagDatabase      tag = "Database"
	tagFiles         tag = "Files"
	tagArtifacts     tag = "Artifacts"
	tagRecordings    tag = "Recordings"
	tagDebugger      tag = "Debugger"
	tagPendingWrites tag = "Pending writes"
	tagEnvironments  tag = "Environments"
	tagHelp          tag = "Help"
	tagChat          tag = "Chat"
	tagKeys          tag = "Keys"
	tagReview        tag = "Review"
	tagMCP           tag = "MCP"
	tagService       tag = "Service"
)

// tagDescriptions are in the order in which /docs shows them: what a newcomer needs first, what an admin needs last.
var tagDescriptions = []*huma.Tag{
	{Name: string(tagExecutions), Description: "Run Python code; read, follow, cancel and list its executions."},
	{Name: string(tagSandboxes),
		Description: "Create and end sandboxes: isolated processes that keep variables and files between runs."},
	{Name: string(tagDatabase), Description: "List the databases, run read-only SQL on them, and read their schemas."},
	{Name: string(tagFiles), Description: "Upload files, which code finds in /data."},
	{Name: string(tagArtifacts), Description: "Download the files that executions have written."},
	{Name: string(tagHelp), Description: "Read which functions code finds without an import, and examples."},
	{Name: string(tagMCP), Description: "Connect agents by the Model Context Protocol."},
	{Name: string(tagChat), Description: "Converse with a language model that runs code in a sandbox."},
	{Name: string(tagRecordings),
		Description: "Go through the recorded steps of an execution: variables, changes and their reasons."},
	{Name: string(tagDebugger), Description: "Debug code while it runs, also by the Debug Adapter Protocol."},
	{Name: string(tagEnvironments), Description: "List the Python environments and their packages."},
	{Name: string(tagReview),
		Description: "List sandboxes, statements, connections and artifacts: your own, or all for an admin."},
	{Name: string(tagPendingWrites), Description: "List captured statements; an admin applies or rejects them."},
	{Name: string(tagKeys), Description: "Make and revoke API keys, and sign in to the pages."},
	{Name: string(tagService), Description: "Read health, metrics and this documentation."},
}

// newRoutes returns the routes of an API without operations.
func (a *api) newRoutes(router *gin.Engine, groups groups, version string) *routes {
	config := huma.DefaultConfig("Glasshouse", version)
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", "" // routeService serves them
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[sandbox.Object](), reflect.TypeFor[object]())
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[sandbox.Base64](), reflect.TypeFor[base64]())
	config.CreateHooks = nil // no $schema in responses
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: decode}
	config.Formats = map[string]huma.Format{"application/json": format, "json": format}
	config.RejectUnknownQueryParameters = true // a misspelt filter would have no effect
	config.Info.Description = "Runs Python code that AI agents write, next to PostgreSQL, and records everything that the code does."
	config.Tags = tagDescriptions
	config.Servers = []*huma.Server{
		{URL: "/"}, {URL: versionPrefix, Description: "The same routes, apart from those under the tag Service"},
	}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer"}}
	config.Security = []map[string][]string{{"key": {}}}
	var adapter everyPrefix
	for _, group := range groups.keyed {
		adapter = append(adapter, humagin.NewWithGroup(router, group, huma.Config{OpenAPI: &huma.OpenAPI{}}).Adapter())
	}
	r := &routes{groups, huma.NewAPI(config, adapter), a.checkParameters}
	r.api.UseMiddleware(decodesBody)
	return r
}

// schemaName returns the name of a type in the document. Package why has names that other packages have, too.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() == reflect.TypeFor[why.Step]().PkgPath() {
		return "Why" + t.Name()
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// everyPrefix is a huma.Adapter that registers an operation under every prefix. huma describes it once.
type everyPrefix []huma.Adapter

func (p everyPrefix) Handle(op *huma.Operation, handler func(huma.Context)) {
	for _, adapter := range p {
		adapter.Handle(op, handler)
	}
}

func (p everyPrefix) ServeHTTP(w http.ResponseWriter, r *http.Request) { p[0].ServeHTTP(w, r) }

// describe returns the description of a route with a key. statuses are the errors of this route in addition to those of
// every such route: a missing key, a page of another origin, a used-up limit, an unreadable query, an unknown path.
func (r *routes) describe(method, path, id string, t tag, summary string, statuses ...int) huma.Operation {
	op := huma.Operation{
		Method: method, Path: path, OperationID: id, Tags: []string{string(t)}, Summary: summary,
		MaxBodyBytes: maxBody, Responses: map[string]*huma.Response{},
		Metadata: map[string]any{schemasKey: r.api.OpenAPI().Components.Schemas},
	}
	r.describeErrors(&op, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity,
		http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable)
	if strings.Contains(path, "{") {
		r.describeErrors(&op, http.StatusNotFound)
	}
	r.describeErrors(&op, statuses...)
	return op
}

// bodyStatuses are the errors of every route with a body.
var bodyStatuses = []int{
	http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
}

func (r *routes) describeErrors(op *huma.Operation, statuses ...int) {
	for _, status := range statuses {
		response := &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{problemType: {Schema: r.schema(reflect.TypeFor[Problem]())}},
		}
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			response.Headers = map[string]*huma.Param{
				"Retry-After": {Description: "Seconds", Schema: &huma.Schema{Type: huma.TypeInteger}},
			}
		}
		op.Responses[strconv.Itoa(status)] = response
	}
}

// schema returns a reference to the schema of t.
func (r *routes) schema(t reflect.Type) *huma.Schema {
	return r.api.OpenAPI().Components.Schemas.Schema(t, true, "")
}

// jsonContent returns the description of a JSON body of type T.
func jsonContent[T any](r *routes) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{"application/json": {Schema: r.schema(reflect.TypeFor[T]())}}
}

func binaryContent() map[string]*huma.MediaType {
	binary := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	return map[string]*huma.MediaType{"application/octet-stream": {Schema: binary}}
}

func stringParam(in, name, description string) *huma.Param {
	return &huma.Param{Name: name, In: in, Required: in == "path", Description: description,
		Schema: &huma.Schema{Type: huma.TypeString}}
}

// route registers an operation that huma decodes, validates and encodes.
func route[I, O any](a *api, r *routes, op huma.Operation, handle func(context.Context, sandbox.Key, *I) (*O, error)) {
	type output struct{ Body *O }
	if _, hasBody := reflect.TypeFor[I]().FieldByName("Body"); hasBody {
		r.describeErrors(&op, bodyStatuses...)
	}
	huma.Register(r.api, op, func(ctx context.Context, in *I) (*output, error) {
		infoFrom(ctx).decoded()
		out, err := handle(ctx, callerFrom(ctx), in)
		if err := a.humaError(ctx, err); err != nil {
			return nil, err
		}
		return &output{out}, nil
	})
}

// handle describes an operation and registers its gin handler in each of the groups.
func (r *routes) handle(groups []*gin.RouterGroup, op huma.Operation, handler gin.HandlerFunc) {
	handlers := []gin.HandlerFunc{r.checkParameters(op), handler}
	if isPublic := slices.Equal(groups, r.public) || slices.Equal(groups, r.pages); isPublic {
		handlers = handlers[1:]               // probes may add anything, such as a time that defeats caches
		op.Security = []map[string][]string{} // none
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests} {
			delete(op.Responses, strconv.Itoa(status))
		}
	}
	r.api.OpenAPI().AddOperation(&op)
	for _, group := range groups {
		group.Handle(op.Method, ginPath(op.Path), handlers...)
	}
}

// finish completes the description when all routes are registered, and routes methods that a path does not have.
func (r *routes) finish(a *api) {
	openapi := r.api.OpenAPI()
	for path, item := range openapi.Paths {
		for method, op := range operationsOf(item) {
			a.methods = append(a.methods, pathMethod{strings.Split(path, "/"), method})
			r.finishOperation(op)
			for _, p := range op.Parameters {
				if p.In == "query" && p.Explode != nil && *p.Explode {
					a.repeatable[ginPath(path)] = append(a.repeatable[ginPath(path)], p.Name)
				}
			}
		}
	}
	// A path such as /sandbox/create also matches /sandbox/{id}, which has other methods, and gin would redirect
	// /sandbox/{id}/files to /sandbox/{id}/files/{path}.
	for path := range openapi.Paths {
		own := a.methodsOf(path)
		for _, other := range a.methods {
			if (other.matches(path) || other.matches(path+"/")) && !slices.Contains(own, other.method) {
				own = append(own, other.method)
				for _, group := range r.keyed {
					group.Handle(other.method, ginPath(path), a.methodNotAllowed)
				}
			}
		}
	}
}

// operationsOf returns the operations of a path by method.
func operationsOf(item *huma.PathItem) map[string]*huma.Operation {
	operations := map[string]*huma.Operation{
		"GET": item.Get, "HEAD": item.Head, "POST": item.Post, "PUT": item.Put, "DELETE": item.Delete,
	}
	maps.DeleteFunc(operations, func(_ string, op *huma.Operation) bool { return op == nil })
	return operations
}

// boundTexts gives each string of a request the limit of a name, at any depth, unless it has a limit of its own. A text
// that may be long, such as code, has the limit of 4 000 000 characters, which a body of maxBody has space for.
func (r *routes) boundTexts(s *huma.Schema) {
	if s.Ref != "" {
		s = r.api.OpenAPI().Components.Schemas.SchemaFromRef(s.Ref)
	}
	if s.Type == huma.TypeString && s.MaxLength == nil {
		s.MaxLength = new(sandbox.MaxNameBytes)
		s.PrecomputeMessages()
	}
	if s.Items != nil {
		r.boundTexts(s.Items)
	}
	for _, inner := range slices.Concat(slices.Collect(maps.Values(s.Properties)), s.OneOf) {
		r.boundTexts(inner)
	}
}

// finishOperation describes what holds for the requests of all operations.
func (r *routes) finishOperation(op *huma.Operation) {
	// The parameters of an operation without a key are not checked: a provider of identities sends long ones.
	isPublic := op.Security != nil && len(op.Security) == 0
	for _, p := range op.Parameters {
		if !isPublic {
			r.boundTexts(p.Schema)
		}
	}
	for _, p := range op.Parameters {
		if p.In != "query" {
			continue
		}
		switch s := p.Schema; s.Type { // rejectAmbiguousQuery
		case huma.TypeString:
			s.MinLength = new(1)
		case huma.TypeArray:
			s.MinItems = new(1)
		}
	}
	if op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
		return
	}
	delete(op.RequestBody.Content, "application/octet-stream") // huma adds it for an input with RawBody
	r.boundTexts(op.RequestBody.Content["application/json"].Schema)
	r.acceptNull(op.RequestBody.Content["application/json"].Schema)
}

// acceptNull describes that huma takes null for an optional property that is absent, at any depth. The service reads
// the fields of a policy itself, and accepts no null.
func (r *routes) acceptNull(s *huma.Schema) {
	schemas := r.api.OpenAPI().Components.Schemas
	ofPolicy := schemas.SchemaFromRef(r.schema(reflect.TypeFor[policy.Policy]()).Ref).Properties
	if s.Ref != "" {
		s = schemas.SchemaFromRef(s.Ref)
	}
	hasPolicy := s.Properties["max_rows"] != nil
	for name, property := range s.Properties {
		if property.Items != nil {
			r.acceptNull(property.Items)
		}
		isOfPolicy := hasPolicy && ofPolicy[name] != nil
		if isOfPolicy || slices.Contains(s.Required, name) || property.Nullable { // or described for another body
			continue
		}
		nullable := *property
		if property.Ref != "" { // other schemas may refer to it, too
			nullable = *schemas.SchemaFromRef(property.Ref)
			nullable.Properties = maps.Clone(nullable.Properties)
		}
		r.acceptNull(&nullable)
		if nullable.Type != "" {
			nullable.Nullable = true
			if nullable.Enum != nil {
				nullable.Enum = append(slices.Clip(nullable.Enum), nil)
			}
		}
		s.Properties[name] = &nullable
	}
}

// pathMethod is a method of an OpenAPI path.
type pathMethod struct {
	segments []string
	method   string
}

// matches reports whether a request for path, which may itself have parameters, could be one for p.
func (p pathMethod) matches(path string) bool {
	given := strings.Split(path, "/")
	for n, segment := range p.segments {
		switch isParameter := strings.HasPrefix(segment, "{"); {
		case n >= len(given), !isParameter && segment != given[n]:
			return false
		case segment == "{path}":
			return true
		}
	}
	return len(given) == len(p.segments)
}

func (p pathMethod) parameters() int { return strings.Count(strings.Join(p.segments, "/"), "{") }

// methodsOf returns the methods of the path that is most like a request's.
func (a *api) methodsOf(path string) (methods []string) {
	fewest := math.MaxInt
	for _, p := range a.methods {
		if n := p.parameters(); n <= fewest && p.matches(path) {
			if n < fewest {
				fewest, methods = n, nil
			}
			methods = append(methods, p.method)
		}
	}
	slices.Sort(methods)
	return methods
}

// ginPath turns an OpenAPI path into gin's: {id} matches one segment, and {path} the rest of the path.
func ginPath(path string) string {
	return strings.NewReplacer("{path}", "*path", "{", ":", "}", "").Replace(path)
}
