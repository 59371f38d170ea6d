package httpapi

import (
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"glasshouse/sandbox"
)

// countRequest counts a request. Both prefixes of a route count together.
func (a *api) countRequest(g *gin.Context) {
	start, client := time.Now(), g.Request.Context() // authenticate replaces the context by one that ends with it
	g.Next()
	route := g.FullPath()
	if rest, ok := strings.CutPrefix(route, versionPrefix+"/"); ok {
		route = "/" + rest
	}
	a.metrics.RequestEnded(route, g.Request.Method, g.Writer.Status(), time.Since(start),
		client.Err() != nil)
}

// serveMetrics answers an admin with all metrics. Another caller gets those of the requests, and the numbers of the
// executions and sandboxes that the caller may see.
func (a *api) serveMetrics(g *gin.Context) {
	ctx := g.Request.Context()
	if callerFrom(ctx).Role == sandbox.RoleAdmin {
		a.metrics.Handler().ServeHTTP(g.Writer, g.Request)
		return
	}
	statistics, err := a.records.Statistics(ctx, callerFrom(ctx))
	if err != nil {
		a.fail(g, err)
		return
	}
	a.metrics.HandlerFor(statistics).ServeHTTP(g.Writer, g.Request)
}
