package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// mcpRows returns the rows of the Model Context Protocol. Their peer is the same run over the plain API, in the same
// service, so the ratio is the cost of the protocol.
func mcpRows(options) []measurement {
	return []measurement{
		{name: "tools/list over MCP", unit: milliseconds, samples: manySamples,
			open: func(ctx context.Context, g *glasshouse) (sampler, error) {
				return only(g.timeMCP(ctx, "tools/list", map[string]any{}, `"run_python"`)), nil
			}},
		{name: "1+1 by run_python over MCP, live sandbox", unit: milliseconds, samples: manySamples,
			peerName: "the same by execute", open: openMCPRun, peer: openPlainRun},
	}
}

func openMCPRun(ctx context.Context, g *glasshouse) (sampler, error) {
	id, err := g.create(ctx, nil)
	params := map[string]any{"name": "run_python", "arguments": map[string]any{"code": "1+1", "session_id": id}}
	return sampler{g.timeMCP(ctx, "tools/call", params, "result: 2"), g.removal(ctx, id)}, err
}

func openPlainRun(ctx context.Context, b *bench) (sampler, error) {
	g, err := b.service(ctx, "")
	if err != nil {
		return sampler{}, err
	}
	return inSandbox(nil, "1+1", isTwo.check, false)(ctx, g)
}

// timeMCP is a sample of the time from one message of the protocol to the last byte of its answer, which must contain
// want.
func (c *client) timeMCP(ctx context.Context, method string, params map[string]any, want string) sampleFunc {
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	header := "Authorization: Bearer " + c.key + "\r\nContent-Type: application/json\r\n" +
		"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n"
	return func() (float64, error) {
		var answer []byte
		took, callErr := timeIt(func() (err error) {
			_, answer, err = c.alone.exchange(ctx, "POST", "/mcp", header, message)
			return err
		})
		err := errors.Join(err, callErr)
		if err == nil && !strings.Contains(string(answer), want) {
			err = fmt.Errorf("%s over MCP: got %.300q, want %q in it", method, answer, want)
		}
		return took, err
	}
}
