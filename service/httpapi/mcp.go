package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/sandbox"
)

// routeMCP routes the endpoint of the Model Context Protocol. It has no prefix: clients configure one address.
func (a *api) routeMCP(r *routes, server MCP) {
	if server == nil {
		return
	}
	op := r.describe(http.MethodPost, "/mcp", "callMCP", tagMCP,
		"Send one message of the Model Context Protocol, version 2026-07-28 or older (Streamable HTTP, stateless)",
		append(bodyStatuses, http.StatusNotFound)...)
	object, text := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}, &huma.Schema{Type: huma.TypeString}
	message := &huma.Schema{
		Type: huma.TypeObject, Required: []string{"jsonrpc", "method"}, AdditionalProperties: true,
		Properties: map[string]*huma.Schema{
			"jsonrpc": {Type: huma.TypeString, Enum: []any{"2.0"}}, "params": object,
			"method": {Type: huma.TypeString, MinLength: new(1)},
			"id":     {OneOf: []*huma.Schema{text, {Type: huma.TypeInteger}}, Description: "Absent in a notification"},
		},
	}
	op.RequestBody = &huma.RequestBody{
		Required: true,
		Content:  map[string]*huma.MediaType{"application/json": {Schema: message}},
	}
	op.Responses["200"] = &huma.Response{
		Description: "The answer, as JSON or as events",
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: object}, "text/event-stream": eventSchema("A message, as JSON"),
		},
	}
	op.Responses["202"] = &huma.Response{Description: "The message was a notification"}
	r.handle(r.keyed[:1], op, func(g *gin.Context) {
		body, err := io.ReadAll(g.Request.Body)
		if err == nil {
			a.cpu.Compute(callerFrom(g.Request.Context()).User, len(body), func() { err = checkMessage(body) })
		}
		if err != nil {
			a.fail(g, readError(err))
			return
		}
		g.Request.Body = io.NopCloser(bytes.NewReader(body))
		plain := &plainErrors{ResponseWriter: g.Writer, keepJSON: true}
		server.ServeHTTP(plain, g.Request, callerFrom(g.Request.Context()))
		if plain.status > 0 {
			p := &Problem{RequestID: infoFrom(g.Request.Context()).id,
				Detail: sandbox.Shorten(strings.TrimSpace(plain.text.String()), maxProblemText)}
			p.setFault(statusFault(plain.status), plain.status)
			writeProblem(g, p)
		}
	})
}

// checkMessage returns an error for a body that is not strict JSON, or not a message that a stateless server takes: it
// asks its clients nothing, so a message without a method, which would be an answer, is a mistake. A batch of messages
// would pass the limit of requests, and its answer could be a hundred times as large.
func checkMessage(body []byte) error {
	if err := checkBody(body); err != nil {
		return err
	}
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		return sandbox.Errorf(sandbox.FaultInvalid, "the body is a batch; send each message in a request of its own")
	}
	var message map[string]json.RawMessage
	if json.Unmarshal(body, &message) == nil && message["method"] == nil {
		return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "method", Detail: "the message has no method"}
	}
	for _, field := range []string{"method", "id"} { // the answer may repeat it
		var name string
		_ = json.Unmarshal(message[field], &name) // an id may be a number
		if err := sandbox.CheckSize(field, sandbox.MaxNameBytes, len(name)); err != nil {
			return err
		}
	}
	return nil // the server says what else is wrong
}
