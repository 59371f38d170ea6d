package mcpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bridge serves one MCP client over a pair of streams by calling the /mcp endpoint of a running service. It returns
// when the input ends or ctx is done. url is the service's address, such as http://127.0.0.1:8080.
func Bridge(ctx context.Context, in io.ReadCloser, out io.WriteCloser, url, key, version string) error {
	b := &bridge{url: url, progress: map[string]progressTarget{}}
	client := mcp.NewClient(&mcp.Implementation{Name: "glasshouse mcp", Version: version},
		&mcp.ClientOptions{ProgressNotificationHandler: b.forwardProgress})
	remote, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: strings.TrimRight(url, "/") + "/mcp", DisableStandaloneSSE: true,
		HTTPClient: &http.Client{
			Transport: keyed{key}, // also for a redirect, which may lead to another host, so none is followed
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}, nil)
	if err != nil {
		return fmt.Errorf("connect to the service at %s: %w; check GLASSHOUSE_URL and GLASSHOUSE_KEY", url, err)
	}
	defer remote.Close()
	b.remote = remote
	server, err := b.server(ctx, version)
	if err != nil {
		return err
	}
	return server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
}

// keyed adds the key to each request.
type keyed struct{ key string }

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return http.DefaultTransport.RoundTrip(r)
}

// bridge has the connection to the service, and who waits for progress, by the token of the bridge's own call.
type bridge struct {
	url    string
	remote *mcp.ClientSession

	mu       sync.Mutex
	calls    int
	progress map[string]progressTarget
}

// progressTarget is a session that wants progress, and the token of its call. A client's token may be any number or
// string, so the bridge does not send it on.
type progressTarget struct {
	session *mcp.ServerSession
	token   any
}

// server returns a server with the tools and the resource templates of the service.
func (b *bridge) server(ctx context.Context, version string) (*mcp.Server, error) {
	tools, err := b.remote.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	templates, err := b.remote.ListResourceTemplates(ctx, nil)
	if err != nil {
		return nil, err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "glasshouse", Title: "Glasshouse", Version: version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{},
		}})
	server.AddReceivingMiddleware(answerLateInitialize)
	for _, tool := range tools.Tools {
		server.AddTool(tool, b.callTool)
	}
	for _, template := range templates.ResourceTemplates {
		server.AddResourceTemplate(template,
			func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return b.remote.ReadResource(ctx, &mcp.ReadResourceParams{URI: req.Params.URI})
			})
	}
	return server, nil
}

func (b *bridge) callTool(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: req.Params.Name, Arguments: req.Params.Arguments}
	if token := req.Params.GetProgressToken(); token != nil {
		b.mu.Lock()
		b.calls++
		own := strconv.Itoa(b.calls)
		b.progress[own] = progressTarget{req.Session, token}
		b.mu.Unlock()
		params.SetProgressToken(own)
		defer func() {
			b.mu.Lock()
			delete(b.progress, own)
			b.mu.Unlock()
		}()
	}
	result, err := b.remote.CallTool(ctx, params)
	if err != nil && ctx.Err() == nil { // the model reads it; a host shows an error of the protocol to nobody
		result, err = textResult(fmt.Sprintf("The service at %s did not answer: %v. If it was restarted, its sessions "+
			"and the programs that ran are gone: try again without session_id. If its key was revoked, the user must "+
			"set another.", b.url, err)), nil
		result.IsError = true
	}
	return result, err
}

func (b *bridge) forwardProgress(ctx context.Context, req *mcp.ProgressNotificationClientRequest) {
	own, _ := req.Params.ProgressToken.(string)
	b.mu.Lock()
	target, wanted := b.progress[own]
	b.mu.Unlock()
	if wanted {
		_ = target.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // a client that left is not an error
			ProgressToken: target.token, Message: req.Params.Message,
			Progress: req.Params.Progress, Total: req.Params.Total,
		})
	}
}
