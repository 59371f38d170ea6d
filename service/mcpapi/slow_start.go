package mcpapi

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answerLateInitialize is middleware for a client that has given up its server/discover while the service was starting,
// and then sends initialize. Both messages wait in the stream, and server/discover has chosen the protocol without
// sessions by the time of initialize. The error of an unsupported version tells the client to send server/discover
// again; the SDK's own error ("duplicate initialize") would end the connection.
func answerLateInitialize(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if session, ok := req.GetSession().(*mcp.ServerSession); ok && method == "initialize" {
			versions := mcp.SupportedProtocolVersions() // newest first
			if first := session.InitializeParams(); first != nil && first.ProtocolVersion == versions[0] {
				data, err := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: versions[:1]})
				if err != nil {
					return nil, err
				}
				return nil, &jsonrpc.Error{
					Code:    mcp.CodeUnsupportedProtocolVersion,
					Message: "server/discover has chosen version " + versions[0] + ": send server/discover again",
					Data:    data,
				}
			}
		}
		return next(ctx, method, req)
	}
}
