package httpapi

import (
	"github.com/coder/websocket"
	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/debugger/dap"
)

// editors takes a client of the Debug Adapter Protocol over a WebSocket: the stream that
// it would send over TCP, in binary messages of any length. Pages of other origins are
// refused.
func (a *api) editors(router *gin.Engine, at place) {
	at.api.OpenAPI().AddOperation(&huma.Operation{
		Method: "GET", Path: at.prefix + "/debug/dap", OperationID: "GET" + at.prefix + "/debug/dap",
		Summary:   "The Debug Adapter Protocol over a WebSocket; its attach has a token, and session, execution, or sandbox with code",
		Responses: map[string]*huma.Response{"101": {Description: "Binary messages, together the stream that TCP would have"}},
	})
	router.GET(at.prefix+"/debug/dap", func(g *gin.Context) {
		if err := a.service.MayDebug(callerFrom(g.Request.Context())); err != nil {
			a.problem(g, err)
			return
		}
		socket, err := websocket.Accept(g.Writer, g.Request, nil)
		if err != nil {
			return // it has answered
		}
		ctx := g.Request.Context()
		stream := websocket.NetConn(ctx, socket, websocket.MessageBinary)
		socket.SetReadLimit(dap.MaxFrame) // behind NetConn, which takes the limit away
		if err := dap.Serve(ctx, stream, a.service.AttachDAP); err != nil {
			a.log.WithError(err).Debug("a debugger's client")
		}
	})
}
