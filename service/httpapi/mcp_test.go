package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"glasshouse/sandbox"
	"glasshouse/service/httpapi"
	"glasshouse/service/mcpapi"
)

// serveMCP serves the API with the Model Context Protocol until the end of the test, and returns its URL.
func serveMCP(t *testing.T) string {
	log := logrus.New()
	server := httptest.NewServer(httpapi.New(httpapi.Config{
		Service: testService, Log: log, Version: "test",
		MCP: mcpapi.New(mcpapi.Config{Service: testService, Log: log, Version: "test"}),
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// The library that serves the Model Context Protocol answers some mistakes with plain text, which becomes a problem.
// Its own errors in JSON stay as they are.
func TestMistakesInMCPMessagesAreProblems(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	c.server = serveMCP(t)
	const both = "application/json, text/event-stream"
	const list = `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`
	for _, body := range []string{`{}`, `{"jsonrpc": "2.0", "id": 1, "result": {}}`} {
		wantProblem(t, c.do(t, "POST", "/mcp", body, "Accept", both), http.StatusUnprocessableEntity, "invalid-input",
			"method")
	}
	wantProblem(t, c.do(t, "POST", "/mcp", list, "Accept", "image/png"), http.StatusBadRequest, "malformed", "Accept")
	a := c.do(t, "POST", "/mcp", list, "Accept", both, "Content-Type", "text/plain")
	wantProblem(t, a, http.StatusUnsupportedMediaType, "invalid-input", "application/json")
	for _, batch := range []string{"[" + list + "]", " \n[" + strings.Repeat(list+",", 1000) + list + "]", "[]"} {
		wantProblem(t, c.do(t, "POST", "/mcp", batch, "Accept", both), http.StatusUnprocessableEntity, "invalid-input",
			"batch")
	}
	a = c.do(t, "DELETE", "/mcp", nil)
	wantProblem(t, a, http.StatusMethodNotAllowed, "method-not-allowed", "DELETE")
	if got := a.header.Get("Allow"); got != "POST" {
		t.Errorf("got Allow %q, want POST", got)
	}
	if a = c.do(t, "POST", "/mcp", list, "Accept", both); a.status != http.StatusOK {
		t.Errorf("a message without a mistake: got HTTP %d: %s", a.status, a.text)
	}
}
