package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/service/webui"
)

// readyTimeout bounds the checks of /readyz.
const readyTimeout = 2 * time.Second

// routeService routes health, metrics and documentation. They have no prefix.
func (a *api) routeService(r *routes) {
	get := func(path, id, summary, status, contentType string, schema *huma.Schema) huma.Operation {
		op := r.describe(http.MethodGet, path, id, tagService, summary)
		op.Responses[status] = &huma.Response{Description: summary}
		if contentType != "" {
			op.Responses[status].Content = map[string]*huma.MediaType{contentType: {Schema: schema}}
		}
		return op
	}
	text := &huma.Schema{Type: huma.TypeString}
	object := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}

	r.handle(r.public, get("/healthz", "getHealth", "Check that the process answers", "200", "application/json",
		object), func(g *gin.Context) {
		g.JSON(http.StatusOK, gin.H{"status": "ok"})
	})
	r.handle(r.public, get("/readyz", "getReadiness", "Check that executions are accepted", "200", "application/json",
		object), func(g *gin.Context) {
		ctx, cancel := context.WithTimeout(g.Request.Context(), readyTimeout)
		defer cancel()
		unavailableDatabases, err := a.runs.Ready(ctx)
		if err != nil {
			a.fail(g, err)
			return
		}
		g.JSON(http.StatusOK, gin.H{"status": "ready", "unavailable_databases": unavailableDatabases})
	})
	r.handle(r.keyed[:1], get("/metrics", "getMetrics", "Get metrics in Prometheus's text format", "200", "text/plain",
		text), a.serveMetrics)
	r.handle(r.public, get("/", "redirectToPages", "Redirect to /ui/", "302", "", nil), func(g *gin.Context) {
		g.Redirect(http.StatusFound, webui.Prefix)
	})
	page := get(webui.Prefix+"{path}", "getPage", "Get a page for people, or a file of it", "200", "text/html", text)
	page.Parameters = []*huma.Param{stringParam("path", "path", "The path of a page or of a file")}
	page.Responses["404"] = &huma.Response{
		Description: "There is no such file", Content: map[string]*huma.MediaType{"text/plain": {Schema: text}},
	}
	r.handle(r.pages, page, gin.WrapH(webui.Embedded()))
	r.handle(r.public, get("/docs", "getDocs", "Get this documentation as a page", "200", "text/html", text),
		gin.WrapF(webui.Embedded().ServeDocs))
	encode := sync.OnceValues(func() ([]byte, error) { // when first asked for: all routes are registered by then
		return json.Marshal(r.api.OpenAPI())
	})
	const documentType = "application/openapi+json"
	r.handle(r.public, get("/openapi.json", "getOpenAPI", "Get the OpenAPI 3.1 document", "200", documentType, object),
		func(g *gin.Context) {
			body, err := encode()
			if err != nil {
				a.fail(g, err)
				return
			}
			g.Data(http.StatusOK, documentType, body)
		})
}
