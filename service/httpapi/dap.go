package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/coder/websocket"
	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/debugger/dap"
	"glasshouse/sandbox"
	"glasshouse/service/access"
)

func (a *api) routeDAP(r *routes) {
	op := r.describe("GET", "/debug/dap", "connectDAP", tagDebugger,
		"Connect a client of the Debug Adapter Protocol by a WebSocket", http.StatusBadRequest, http.StatusForbidden)
	op.Description = "Binary messages together carry the stream that DAP has over TCP. " +
		"attach takes a token, and session, execution, replay, or sandbox with code."
	op.Responses["101"] = &huma.Response{Description: "The WebSocket is open"}
	r.describeErrors(&op, http.StatusUpgradeRequired)
	r.handle(r.keyed, op, a.serveDAP)
}

// serveDAP carries the Debug Adapter Protocol in a WebSocket: the stream that a client would send over TCP,
// in binary messages of any length. A page of another origin is rejected.
func (a *api) serveDAP(g *gin.Context) {
	ctx := g.Request.Context()
	if err := access.MayDebug(callerFrom(ctx)); err != nil {
		a.fail(g, err)
		return
	}
	plain := &plainErrors{ResponseWriter: g.Writer}
	socket, err := websocket.Accept(plain, g.Request, nil)
	if err != nil {
		a.fail(g, handshakeError(plain.status, err))
		return
	}
	// The protocol tells the client when its key is lost, so the loss must not end the connection before.
	connection := context.WithoutCancel(ctx)
	stream := websocket.NetConn(connection, socket, websocket.MessageBinary)
	socket.SetReadLimit(dap.MaxFrameBytes) // after NetConn, which removes the limit
	attach := func(attaching context.Context, in dap.Attach) (*dap.Target, error) {
		target, err := a.debug.Attach(attaching, in)
		if err == nil {
			ofToken := target.Authorize
			target.Authorize = func(asking context.Context) error {
				return errors.Join(access.LostKey(ctx), ofToken(asking))
			}
		}
		return target, err
	}
	if err := dap.Serve(connection, stream, attach); err != nil {
		a.log.WithError(err).WithField("request_id", infoFrom(ctx).id).Debug("a DAP connection failed")
	}
}

// handshakeError returns the error of a request that is not a WebSocket handshake, or not an acceptable one.
func handshakeError(status int, err error) error {
	switch status {
	case http.StatusUpgradeRequired:
		return sandbox.Errorf(sandbox.FaultUpgrade, "this route takes WebSockets only: %s", err)
	case http.StatusForbidden: // another origin
		return sandbox.Errorf(sandbox.FaultForbidden, "%s", err)
	case http.StatusBadRequest, http.StatusMethodNotAllowed:
		return sandbox.Errorf(sandbox.FaultMalformed, "the WebSocket handshake is invalid: %s", err)
	}
	return err
}
