package httpapi

import (
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"glasshouse/policy"
)

// schemasKey is the key of an operation's metadata for the registry of all schemas.
const schemasKey = "schemas"

// unknownField returns the message for a field of the body that does not exist. location is its path, such as
// body.config.max_memory.
func unknownField(op *huma.Operation, location string) string {
	path := strings.Split(location, ".")
	name := path[len(path)-1]
	registry, _ := op.Metadata[schemasKey].(huma.Registry)
	if registry == nil || op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
		return policy.UnknownField(name, nil)
	}
	schema := op.RequestBody.Content["application/json"].Schema
	for _, part := range path[1 : len(path)-1] {
		part, _, isItem := strings.Cut(part, "[")
		if schema = resolve(registry, schema); schema == nil {
			break
		}
		if schema = schema.Properties[part]; schema != nil && isItem {
			schema = schema.Items
		}
	}
	var known []string
	if schema = resolve(registry, schema); schema != nil {
		for field := range schema.Properties {
			known = append(known, field)
		}
	}
	slices.Sort(known)
	return policy.UnknownField(name, known)
}

func resolve(registry huma.Registry, schema *huma.Schema) *huma.Schema {
	if schema != nil && schema.Ref != "" {
		return registry.SchemaFromRef(schema.Ref)
	}
	return schema
}
