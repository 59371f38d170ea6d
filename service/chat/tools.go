package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"glasshouse/service/run"
)

// modelTool is a tool as the model sees it.
type modelTool struct {
	completionTool
	inSession bool // it works in the session of the conversation
	hasWait   bool // and waits for the end of a run
	hasTitle  bool // a run of it can have a title
}

// runWait is how long a tool waits for the end of a run, in seconds: the most that it takes. A client of MCP waits
// less, because its host ends the call.
const runWait = 300

// modelTools returns the tools without the arguments that the conversation sets: the model cannot name another session.
func modelTools(tools []run.Tool) []modelTool {
	var out []modelTool
	for _, t := range tools {
		var schema struct {
			Type       string                     `json:"type"`
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
			Additional bool                       `json:"additionalProperties"`
		}
		if err := json.Unmarshal(t.Schema, &schema); err != nil {
			panic(fmt.Sprintf("the schema of the tool %s: %v", t.Name, err)) // a mistake in our own tools
		}
		tool := modelTool{}
		_, tool.inSession = schema.Properties["session_id"]
		_, tool.hasTitle = schema.Properties["title"]
		if tool.inSession {
			_, tool.hasWait = schema.Properties["wait_seconds"]
			for _, name := range []string{"session_id", "wait_seconds"} {
				delete(schema.Properties, name)
				schema.Required = slices.DeleteFunc(schema.Required, func(r string) bool { return r == name })
			}
		}
		tool.Type, tool.Function.Name, tool.Function.Description = "function", t.Name, t.Description
		tool.Function.Parameters, _ = json.Marshal(schema) // it was JSON
		out = append(out, tool)
	}
	return out
}

// tool returns the tool with a name; nil: there is none.
func (c *Chat) tool(name string) *modelTool {
	for n := range c.tools {
		if c.tools[n].Function.Name == name {
			return &c.tools[n]
		}
	}
	return nil
}

// arguments returns the arguments of a call with those that the conversation sets, and the execution that they name. A
// run without a title gets one.
func (t *modelTool) arguments(text, session, title string) (arguments json.RawMessage, execution string, err error) {
	given := map[string]json.RawMessage{}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil || given == nil {
			return nil, "", errors.Join(errors.New("the arguments must be a JSON object; nothing ran"), err)
		}
	}
	_ = json.Unmarshal(given["execution_id"], &execution) // another type is refused by the tool
	if t.inSession {
		given["session_id"], _ = json.Marshal(session)
	}
	if _, ok := given["title"]; t.hasTitle && !ok && title != "" {
		given["title"], _ = json.Marshal(title)
	}
	if t.hasWait {
		given["wait_seconds"], _ = json.Marshal(runWait)
	}
	arguments, err = json.Marshal(given)
	return arguments, execution, err
}
