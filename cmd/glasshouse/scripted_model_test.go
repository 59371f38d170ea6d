//go:build clients

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/png"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// modelCall is a call of a tool by the scripted model, and what the client must send the model for it.
type modelCall struct {
	name      string
	tool      string
	arguments map[string]any
	reads     string   // the name of the call whose execution this one reads
	wants     []string // texts; EXECUTION stands for the id of the execution that the call makes or reads
	images    int
}

// scriptedModel is the endpoint of a language model for one conversation. It speaks Anthropic's messages and OpenAI's
// responses and chat completions. It answers each request with the next call, and keeps what the client sends for it.
type scriptedModel struct {
	calls []modelCall

	mu       sync.Mutex
	results  []toolResult // one for each call that was answered
	problems []string
}

// toolResult is what a client sent to the model as the result of a call.
type toolResult struct {
	text   string
	images int    // PNGs
	raw    string // JSON
}

// modelTurn is one answer of the model: a call of a tool, or the end of the conversation if tool is empty.
type modelTurn struct {
	id              string
	tool, namespace string
	arguments       string // JSON
}

// modelAPIs has the functions that write a turn, by the path of the endpoint. They return an object, and the events of
// a stream.
var modelAPIs = map[string]func(modelTurn) (any, []any){
	"/v1/messages": anthropicMessage, "/v1/responses": openAIResponse, "/v1/chat/completions": openAIChat,
}

func (m *scriptedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	encode := modelAPIs[r.URL.Path]
	if encode == nil {
		http.NotFound(w, r)
		return
	}
	var request struct {
		Stream          bool
		Messages, Input []map[string]any
		Tools           []offeredTool
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	object, events := encode(m.next(append(request.Messages, request.Input...), request.Tools))
	if !request.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range events {
		text, _ := json.Marshal(event)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event.(map[string]any)["type"], text)
	}
}

// offeredTool is a tool of a request. Codex has a namespace of tools for each server; other clients put the server's
// name before that of the tool, or nothing.
type offeredTool struct {
	Name     string
	Function struct{ Name string }
	Tools    []offeredTool
}

// findTool returns the name and the namespace under which a client offers a tool of the service.
func findTool(tools []offeredTool, tool string) (name, namespace string, found bool) {
	for _, t := range tools {
		for _, name := range []string{t.Name, t.Function.Name} {
			if name == tool || strings.HasSuffix(name, "__"+tool) {
				return name, "", true
			}
		}
		if name, _, found := findTool(t.Tools, tool); found {
			return name, t.Name, true
		}
	}
	return "", "", false
}

// next keeps the result of the last call of a conversation, and returns the next turn.
func (m *scriptedModel) next(conversation []map[string]any, tools []offeredTool) modelTurn {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls, last := 0, -1
	for i, item := range conversation {
		if item["role"] == "assistant" || item["type"] == "function_call" {
			calls, last = calls+1, i
		}
	}
	if calls > len(m.results) && calls <= len(m.calls) {
		m.results = append(m.results, newToolResult(conversation[last+1:]))
	}
	turn := modelTurn{id: fmt.Sprintf("call_%d", calls)} // clients merge messages of one id
	if calls >= len(m.calls) {
		return turn
	}
	call := m.calls[calls]
	var found bool
	if turn.tool, turn.namespace, found = findTool(tools, call.tool); !found {
		m.problems = append(m.problems,
			fmt.Sprintf("%s: the client offers no tool %s; want all tools in each request", call.name, call.tool))
		return turn
	}
	arguments := map[string]any{}
	maps.Copy(arguments, call.arguments)
	if call.reads != "" {
		arguments["execution_id"] = m.id("execution_id", call.reads)
	}
	if call.tool == "run_python" && calls > 0 {
		arguments["session_id"] = m.id("session_id", m.calls[0].name)
	}
	text, _ := json.Marshal(arguments)
	turn.arguments = string(text)
	return turn
}

// id returns an id of the result of a call, as the model reads it: in text, or in JSON.
func (m *scriptedModel) id(field, call string) string {
	for i, c := range m.calls[:len(m.results)] {
		if c.name != call {
			continue
		}
		found := regexp.MustCompile(field + `\W+([0-9a-f]{32})`).FindStringSubmatch(m.results[i].text)
		if found != nil {
			return found[1]
		}
	}
	return "unknown"
}

// newToolResult reads the items of a conversation that follow the last call.
func newToolResult(items []map[string]any) toolResult {
	raw, _ := json.Marshal(items)
	r := toolResult{raw: string(raw)}
	for _, item := range items {
		r.read(item)
	}
	return r
}

// read adds the texts and images of an item, and of the parts in it.
func (r *toolResult) read(item map[string]any) {
	for _, field := range []string{"content", "output", "text"} {
		switch value := item[field].(type) {
		case string:
			r.text += value + "\n"
			var inside any
			if json.Unmarshal([]byte(value), &inside) == nil { // a model reads through the escapes of JSON
				r.text += leaves(inside) + "\n"
			}
		case []any:
			for _, part := range value {
				if part, ok := part.(map[string]any); ok {
					r.read(part)
				}
			}
		}
	}
	for _, image := range []string{
		textAt(item, "source", "data"),   // of Anthropic's messages
		textAt(item, "image_url"),        // of OpenAI's responses
		textAt(item, "image_url", "url"), // of OpenAI's chat completions
	} {
		data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(image, "data:image/png;base64,"))
		if err != nil {
			continue
		}
		if _, err := png.Decode(bytes.NewReader(data)); err == nil {
			r.images++
		}
	}
}

// textAt returns the string at a path of fields, or "".
func textAt(value any, path ...string) string {
	for _, field := range path {
		object, _ := value.(map[string]any)
		value = object[field]
	}
	text, _ := value.(string)
	return text
}

// check compares what the model was sent with what the calls want.
func (m *scriptedModel) check(t *testing.T) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, problem := range m.problems {
		t.Error(problem)
	}
	if len(m.results) != len(m.calls) {
		t.Errorf("got results of %d calls, want %d", len(m.results), len(m.calls))
	}
	for i, result := range m.results {
		call := m.calls[i]
		execution := call.name
		if call.reads != "" {
			execution = call.reads
		}
		for _, want := range call.wants {
			want = strings.ReplaceAll(want, "EXECUTION", m.id("execution_id", execution))
			if !strings.Contains(result.text, want) {
				t.Errorf("%s: the model was sent %.3000s, want %q in it", call.name, result.raw, want)
			}
		}
		if result.images != call.images {
			t.Errorf("%s: the model was sent %d images, want %d: %.3000s", call.name, result.images, call.images,
				result.raw)
		}
	}
}

// anthropicMessage returns a turn as a message of Anthropic's API.
func anthropicMessage(turn modelTurn) (any, []any) {
	type object = map[string]any
	usage := object{"input_tokens": 1, "output_tokens": 1}
	block, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": "Done."}
	reason := "end_turn"
	if turn.tool != "" {
		block = object{"type": "tool_use", "id": turn.id, "name": turn.tool, "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": turn.arguments}
		reason = "tool_use"
	}
	message := object{
		"id": "message_" + turn.id, "type": "message", "role": "assistant", "model": "scripted", "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}
	return message, []any{
		object{"type": "message_start", "message": message},
		object{"type": "content_block_start", "index": 0, "content_block": block},
		object{"type": "content_block_delta", "index": 0, "delta": delta},
		object{"type": "content_block_stop", "index": 0},
		object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": usage},
		object{"type": "message_stop"},
	}
}

// openAIResponse returns a turn as a response of OpenAI's API.
func openAIResponse(turn modelTurn) (any, []any) {
	type object = map[string]any
	item := object{
		"type": "message", "id": "message_" + turn.id, "role": "assistant", "status": "completed",
		"content": []any{object{"type": "output_text", "text": "Done.", "annotations": []any{}}},
	}
	if turn.tool != "" {
		item = object{
			"type": "function_call", "id": "item_" + turn.id, "call_id": turn.id, "name": turn.tool,
			"arguments": turn.arguments, "status": "completed",
		}
		if turn.namespace != "" {
			item["namespace"] = turn.namespace
		}
	}
	response := object{
		"id": "response_" + turn.id, "object": "response", "created_at": 0, "model": "scripted", "status": "completed",
		"output": []any{item}, "parallel_tool_calls": false, "tool_choice": "auto", "tools": []any{},
		"usage": object{
			"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
			"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0},
		},
	}
	return response, []any{
		object{"type": "response.created", "response": object{"id": response["id"]}},
		object{"type": "response.output_item.done", "output_index": 0, "item": item},
		object{"type": "response.completed", "response": response},
	}
}

// openAIChat returns a turn as a chat completion of OpenAI's API. The clients that use it ask for no stream.
func openAIChat(turn modelTurn) (any, []any) {
	type object = map[string]any
	message, reason := object{"role": "assistant", "content": "Done."}, "stop"
	if turn.tool != "" {
		reason = "tool_calls"
		message = object{"role": "assistant", "content": nil, "tool_calls": []any{object{
			"id": turn.id, "type": "function", "function": object{"name": turn.tool, "arguments": turn.arguments},
		}}}
	}
	return object{
		"id": "completion_" + turn.id, "object": "chat.completion", "created": 0, "model": "scripted",
		"choices": []any{object{"index": 0, "message": message, "finish_reason": reason}},
		"usage":   object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
	}, nil
}
