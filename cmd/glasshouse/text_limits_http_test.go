package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// openAPI is what the document of the HTTP API says about requests.
type openAPI struct {
	Paths      map[string]map[string]openAPIOperation
	Components struct{ Schemas map[string]*openAPISchema }
}

type openAPIOperation struct {
	ID         string                `json:"operationId"`
	Security   []map[string][]string // empty: the operation takes no key
	Parameters []struct {
		Name, In string
		Schema   *openAPISchema
	}
	Body struct {
		Content map[string]struct{ Schema *openAPISchema }
	} `json:"requestBody"`
}

type openAPISchema struct {
	Ref        string `json:"$ref"`
	Type       any    // a name, or a list with null
	Enum       []any
	Format     string
	MaxLength  int
	Minimum    float64
	Required   []string
	Properties map[string]*openAPISchema
	Items      *openAPISchema
	OneOf      []*openAPISchema
}

func (s *openAPISchema) is(kind string) bool { return strings.Contains(fmt.Sprint(s.Type), kind) }

// httpFields returns the text fields of all routes of the HTTP API, from its document. A text without a limit fails the
// test. Paths name the sandbox with this id.
func (c textClient) httpFields(t *testing.T, sandboxID string) (list []textField) {
	t.Helper()
	_, text := c.ask(t, "GET", "/openapi.json", nil)
	var document openAPI
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	for path, operations := range document.Paths {
		for method, op := range operations {
			if method == "head" || op.Security != nil && len(op.Security) == 0 { // HEAD has no text that says why
				continue
			}
			list = append(list, c.operationFields(t, &document, strings.ToUpper(method), path, op, sandboxID)...)
		}
	}
	return list
}

func (c textClient) operationFields(
	t *testing.T, document *openAPI, method, path string, op openAPIOperation, sandboxID string,
) (list []textField) {
	t.Helper()
	pathValues := map[string]string{"{id}": strings.Repeat("0", 32)}
	if strings.HasPrefix(path, "/sandbox/") {
		pathValues["{id}"] = sandboxID
	}
	for _, p := range op.Parameters {
		if p.In == "path" && len(p.Schema.Enum) > 0 {
			pathValues["{"+p.Name+"}"] = fmt.Sprint(p.Schema.Enum[0])
		}
	}
	// with returns the path with a value for one of its parameters.
	with := func(name, value string) string {
		filled := path
		for parameter, other := range pathValues {
			if parameter != name {
				filled = strings.ReplaceAll(filled, parameter, other)
			}
		}
		return strings.NewReplacer(name, value, "{", "", "}", "").Replace(filled)
	}
	body := op.Body.Content["application/json"].Schema
	var minimal any
	if body != nil {
		minimal = document.minimal(body)
	}
	for _, p := range op.Parameters {
		if !p.Schema.is("string") || len(p.Schema.Enum) > 0 || p.Schema.Format == "date-time" {
			continue
		}
		list = append(list, textField{
			name: op.ID + " " + p.In + "." + p.Name, maxBytes: p.Schema.MaxLength,
			send: func(t *testing.T, text string) (int, string) {
				t.Helper()
				switch p.In {
				case "path":
					return c.ask(t, method, with("{"+p.Name+"}", text), minimal)
				case "query":
					return c.ask(t, method, with("", "")+"?"+p.Name+"="+url.QueryEscape(text), minimal)
				}
				return c.ask(t, method, with("", ""), minimal, p.Name, text)
			},
		})
	}
	if body == nil {
		return list
	}
	document.eachText(body, func(v any) any { return v }, "", func(name string, s *openAPISchema, wrap func(any) any) {
		list = append(list, c.bodyField(op.ID+" "+name, s.MaxLength, method, with("", ""),
			func(text string) any { return wrap(text) }))
	})
	return list
}

func (d *openAPI) resolve(s *openAPISchema) *openAPISchema {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return d.Components.Schemas[name]
	}
	return s
}

// minimal returns a value of a schema with the required fields only.
func (d *openAPI) minimal(s *openAPISchema) any {
	switch s = d.resolve(s); {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.is("object"):
		value := map[string]any{}
		for _, name := range s.Required {
			value[name] = d.minimal(s.Properties[name])
		}
		return value
	case s.is("array"):
		return []any{}
	case s.is("string"):
		return "x"
	}
	return s.Minimum
}

// eachText calls found with each string in a schema that may have any text, and with a function that returns a value of
// the whole body for a value of the string.
func (d *openAPI) eachText(
	s *openAPISchema, wrap func(any) any, name string, found func(string, *openAPISchema, func(any) any),
) {
	s = d.resolve(s)
	switch {
	case s.is("string"):
		if len(s.Enum) == 0 && s.Format != "date-time" {
			found(name, s, wrap)
		}
	case s.is("array"):
		d.eachText(s.Items, func(v any) any { return wrap([]any{v}) }, name+"[]", found)
	case s.is("object"):
		for field, inner := range s.Properties {
			all, _ := d.minimal(s).(map[string]any)
			d.eachText(inner, func(v any) any {
				filled := maps.Clone(all)
				filled[field] = v
				return wrap(filled)
			}, strings.TrimPrefix(name+"."+field, "."), found)
		}
	}
	for _, form := range s.OneOf {
		d.eachText(form, wrap, name, found)
	}
}

// mcpFields returns the arguments of the tools of MCP that are names: all strings of their schemas but those whose
// length package run limits.
func (c textClient) mcpFields(t *testing.T) (list []textField) {
	t.Helper()
	mcp := mcpClient{&client{c.url, c.key}, "2026-07-28"}
	var tools struct {
		Tools []struct {
			Name  string
			Input openAPISchema `json:"inputSchema"`
		}
	}
	answer := mcp.request(t, "tools/list", map[string]any{})
	_, data, _ := strings.Cut(answer.body, "data:")
	var message struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(data), &message); err != nil || json.Unmarshal(message.Result, &tools) != nil {
		t.Fatalf("got %.300s, %v, want a list of tools", answer.body, err)
	}
	document := &openAPI{}
	for _, tool := range tools.Tools {
		document.eachText(&tool.Input, func(v any) any { return v }, "",
			func(name string, _ *openAPISchema, wrap func(any) any) {
				if slices.Contains([]string{"code", "sql", "text", "base64"}, name) {
					return
				}
				list = append(list, textField{
					name: "mcp " + tool.Name + " " + name, maxBytes: sandbox.MaxNameBytes,
					send: func(t *testing.T, text string) (int, string) {
						t.Helper()
						arguments, _ := wrap(text).(map[string]any)
						answer := mcp.tool(t, tool.Name, arguments)
						if answer.Result.IsError {
							return http.StatusUnprocessableEntity, answer.text()
						}
						return answer.status, answer.text()
					},
				})
			})
	}
	return list
}

// debuggerFields returns the texts of breakpoints, which a debug session of a sandbox keeps.
func (c textClient) debuggerFields(t *testing.T, sandboxID string) (list []textField) {
	t.Helper()
	const maxBytes = 64 << 10
	session := c.must(t, "POST", "/sandbox/"+sandboxID+"/debug/sessions",
		map[string]any{"code": "x = 1\ny = 2", "stop_on_entry": true}, "session_id")
	for field, command := range map[string]string{
		"condition": "setBreakpoints", "hitCondition": "setBreakpoints", "logMessage": "setBreakpoints",
		"dataId": "setDataBreakpoints",
	} {
		list = append(list, c.bodyField("dap "+command+" "+field, maxBytes, "POST",
			"/debug/sessions/"+session+"/"+command, func(text string) any {
				if field == "dataId" {
					text = "1:" + text
				}
				return map[string]any{
					"source": map[string]any{}, "breakpoints": []map[string]any{{"line": 1, field: text}},
				}
			}))
	}
	return list
}

// TestTextsOfTheHTTPAPIAreLimited sends the longest text to each string of each request that the document and the tools
// of MCP have, and to those of breakpoints, and a longer one.
func TestTextsOfTheHTTPAPIAreLimited(t *testing.T) {
	t.Parallel()
	c, _ := startTextClient(t)
	id := c.must(t, "POST", "/sandbox/create", map[string]any{}, "sandbox_id")
	debugged := c.must(t, "POST", "/sandbox/create", map[string]any{}, "sandbox_id")
	fields := slices.Concat(c.httpFields(t, id), c.mcpFields(t), c.debuggerFields(t, debugged))
	if len(fields) < 100 {
		t.Fatalf("got %d fields, want all of the APIs", len(fields))
	}
	for _, f := range fields {
		if f.maxBytes == 0 {
			t.Errorf("%s has no limit", f.name)
			continue
		}
		f.check(t)
	}
	if status, answer := c.ask(t, "GET", "/me", nil); status != http.StatusOK {
		t.Errorf("after all requests: got HTTP %d %s, want 200", status, answer)
	}
}
