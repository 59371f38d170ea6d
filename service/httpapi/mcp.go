package httpapi

import (
	"bytes"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
)

// routeMCP routes the endpoint of the Model Context Protocol. It has no prefix: clients configure one address.
func (a *api) routeMCP(r *routes, server MCP) {
	if server == nil {
		return
	}
	op := r.describe(http.MethodPost, "/mcp", "callMCP", tagMCP,
		"Send one message of the Model Context Protocol, version 2026-07-28 or older (Streamable HTTP, stateless)",
		append(bodyStatuses, http.StatusNotFound)...)
	object := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	op.RequestBody = &huma.RequestBody{
		Required: true,
		Content:  map[string]*huma.MediaType{"application/json": {Schema: object}},
	}
	op.Responses["200"] = &huma.Response{
		Description: "The answer, as JSON or as events",
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: object}, "text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
		},
	}
	op.Responses["202"] = &huma.Response{Description: "The message was a notification"}
	r.handle(r.keyed[:1], op, func(g *gin.Context) {
		text, err := io.ReadAll(g.Request.Body)
		if err == nil {
			err = checkBody(text)
		} else {
			err = bodyTooLarge(maxBody)
		}
		if err != nil {
			a.fail(g, err)
			return
		}
		g.Request.Body = io.NopCloser(bytes.NewReader(text))
		server.ServeHTTP(g.Writer, g.Request, callerFrom(g.Request.Context()))
	})
}
