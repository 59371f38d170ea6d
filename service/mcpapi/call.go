package mcpapi

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"glasshouse/sandbox"
	"glasshouse/service/run"
)

// This file lets other packages of the service call the tools without a connection.

// registeredTool is a tool with its implementation. A failed call is a result for the model.
type registeredTool struct {
	*mcp.Tool
	call func(context.Context, sandbox.Key, *mcp.CallToolRequest) *mcp.CallToolResult
}

// Tools returns the tools that the server offers.
func (s *Server) Tools() []run.Tool {
	var out []run.Tool
	for _, t := range s.tools {
		schema, _ := t.InputSchema.(json.RawMessage)
		out = append(out, run.Tool{Name: t.Name, Description: t.Description, Schema: schema})
	}
	return out
}

// CallTool calls a tool on behalf of the caller. onRun gets each execution that the tool makes: one of Python code when
// it begins, and one of a statement when it has ended. CallTool has no error: the answer tells the model what is wrong.
func (s *Server) CallTool(
	ctx context.Context, caller sandbox.Key, name string, arguments json.RawMessage, onRun func(run.ToolRun),
) run.ToolResult {
	ctx = context.WithValue(ctx, runListenerKey{}, onRun)
	for _, t := range s.tools {
		if t.Name == name {
			return answerOf(t.call(ctx, caller, &mcp.CallToolRequest{
				Params: &mcp.CallToolParamsRaw{Name: name, Arguments: arguments},
			}))
		}
	}
	return run.ToolResult{Text: noTool(name, s.toolNames()), IsError: true}
}

// answerOf returns the text of a result. A model that reads text only does not get the images; the text names them.
func answerOf(result *mcp.CallToolResult) run.ToolResult {
	var texts []string
	for _, content := range result.Content {
		switch content := content.(type) {
		case *mcp.TextContent:
			texts = append(texts, content.Text)
		case *mcp.ImageContent:
			texts = append(texts, "["+content.MIMEType+", which the user sees and you do not]")
		}
	}
	return run.ToolResult{Text: strings.Join(texts, "\n"), IsError: result.IsError}
}

type runListenerKey struct{}

// reportRun passes an execution to the onRun function of CallTool, if there is one. log may be nil.
func reportRun(ctx context.Context, executionID string, log *run.EventLog) {
	if onRun, ok := ctx.Value(runListenerKey{}).(func(run.ToolRun)); ok && onRun != nil && executionID != "" {
		onRun(run.ToolRun{ExecutionID: executionID, Log: log})
	}
}
