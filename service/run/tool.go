package run

import "encoding/json"

// Tool is a function of the service that a language model may call.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON schema of the arguments, an object
}

// ToolResult is the result of a call, as the model reads it.
type ToolResult struct {
	Text    string
	IsError bool
}

// ToolRun is an execution that a tool has made. Log is nil if the execution has no events.
type ToolRun struct {
	ExecutionID string
	Log         *EventLog
}
