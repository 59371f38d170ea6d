package dap

import (
	"encoding/json"
	"slices"
	"strings"
)

// Clients may count lines and columns from 0. This package counts both from 1.

// zeroBasedFields returns the fields of messages that the client counts from 0.
func (c *connection) zeroBasedFields() []string {
	var fields []string
	if !c.client.LinesStartAt1 {
		fields = append(fields, "line", "endLine", "lines")
	}
	if !c.client.ColumnsStartAt1 {
		fields = append(fields, "column", "endColumn")
	}
	return fields
}

// fromClient returns a request's arguments with lines and columns counted from 1.
func (c *connection) fromClient(arguments json.RawMessage) json.RawMessage {
	fields := c.zeroBasedFields()
	if fields == nil || len(arguments) == 0 {
		return arguments
	}
	var v any
	if json.Unmarshal(arguments, &v) != nil {
		return arguments // the handler reports the error
	}
	text, err := json.Marshal(addToFields(v, fields, 1))
	if err != nil {
		return arguments
	}
	return text
}

// toClient returns the body of a response or an event with lines and columns as the client counts them, and with the
// client's path instead of the program's source.
func (c *connection) toClient(body any) any {
	fields := c.zeroBasedFields()
	if c.attached.Path == "" && fields == nil || body == nil {
		return body
	}
	text, err := json.Marshal(body)
	if err != nil {
		return body
	}
	var out any
	if json.Unmarshal(text, &out) != nil {
		return body
	}
	if c.attached.Path != "" {
		setSourcePath(out, c.attached.Path)
	}
	return addToFields(out, fields, -1)
}

// addToFields adds a number to the fields of these names, at any depth.
func addToFields(v any, fields []string, number float64) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = addToFields(v[i], fields, number)
		}
	case map[string]any:
		for name, value := range v {
			if slices.Contains(fields, name) {
				value = add(value, number)
			}
			v[name] = addToFields(value, fields, number)
		}
	}
	return v
}

// add adds a number to a number, or to each number of a list.
func add(v any, number float64) any {
	switch v := v.(type) {
	case float64:
		return v + number
	case []any:
		for i := range v {
			v[i] = add(v[i], number)
		}
	}
	return v
}

// setSourcePath replaces each source that is the program by a path, at any depth of the message.
func setSourcePath(v any, path string) {
	switch v := v.(type) {
	case []any:
		for _, each := range v {
			setSourcePath(each, path)
		}
	case map[string]any:
		if v["name"] == program.Name && v["sourceReference"] == float64(program.SourceReference) {
			delete(v, "sourceReference")
			v["path"], v["name"] = path, path[strings.LastIndexAny(path, `/\`)+1:]
			return
		}
		for _, each := range v {
			setSourcePath(each, path)
		}
	}
}
