package httpapi

import (
	"net/http"

	"github.com/coder/websocket"
	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/debugger/dap"
)

func (a *api) routeDAP(r *routes) {
	op := r.describe("GET", "/debug/dap", "connectDAP", tagDebugger,
		"Connect a client of the Debug Adapter Protocol by a WebSocket", http.StatusForbidden)
	op.Description = "Binary messages together carry the stream that DAP has over TCP. " +
		"attach takes a token, and session, execution, or sandbox with code."
	op.Responses["101"] = &huma.Response{Description: "The WebSocket is open"}
	op.Responses["426"] = &huma.Response{Description: "The request is not a WebSocket handshake"}
	r.handle(r.keyed, op, a.serveDAP)
}

// serveDAP carries the Debug Adapter Protocol in a WebSocket: the stream that a client would send over TCP,
// in binary messages of any length. A page of another origin is rejected.
func (a *api) serveDAP(g *gin.Context) {
	ctx := g.Request.Context()
	if err := a.service.MayDebug(callerFrom(ctx)); err != nil {
		a.fail(g, err)
		return
	}
	socket, err := websocket.Accept(g.Writer, g.Request, nil)
	if err != nil {
		return // Accept has sent the error response
	}
	stream := websocket.NetConn(ctx, socket, websocket.MessageBinary)
	socket.SetReadLimit(dap.MaxFrameBytes) // after NetConn, which removes the limit
	if err := dap.Serve(ctx, stream, a.service.AttachDAP); err != nil {
		a.log.WithError(err).WithField("request_id", infoFrom(ctx).id).Debug("a DAP connection failed")
	}
}
