package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// maxTestResults bounds the results of a user of the test service, as the service does: two large answers fit that no
// client reads, if one is written at a time.
const maxTestResults = 192 << 20

// TestAnswersThatTheirEncodingMakesTooLarge runs statements whose results are small as PostgreSQL sends them, and large
// as they are written for a client.
func TestAnswersThatTheirEncodingMakesTooLarge(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	mcpURL := serveMCP(t)
	longNames := make([]string, 100)
	for i := range longNames {
		longNames[i] = fmt.Sprintf(`NULL AS "%s%04d"`, strings.Repeat("\x01", 56), i)
	}
	for name, sql := range map[string]string{
		"escapes": `SELECT repeat(chr(1), 12000000) AS a`,
		"NULLs with long names": `SELECT ` + strings.Repeat("a.*, ", 15) + `a.* FROM (SELECT ` +
			strings.Join(longNames, ", ") + `) a, generate_series(1, 1000)`,
		"an array": `SELECT array_fill(repeat(chr(1), 10), ARRAY[1200000]) AS a`,
	} {
		t.Run(name, func(t *testing.T) {
			a := c.do(t, "POST", "/database/query", map[string]any{"query": sql})
			if a.status != http.StatusUnprocessableEntity || a.get("refusal.reason") != "too-large" ||
				!strings.Contains(string(a.text), "64 MiB") || !strings.Contains(string(a.text), "LIMIT") {
				t.Errorf("got %d %.300s, want 422 too-large with the limit and what to do", a.status, a.text)
			}
			tools := c
			tools.server = mcpURL
			a = tools.callTool(t, "2025-06-18", "query_database", map[string]any{"sql": sql, "limit": 1})
			if a.status != http.StatusOK || len(a.text) > 1<<20 {
				t.Errorf("MCP: got %d and %d bytes, want 200 and a short answer", a.status, len(a.text))
			}
		})
	}
	id := c.create(t, map[string]any{"max_memory_mb": 512})
	e := c.run(t, id, `db_query("SELECT array_fill(1::float8, ARRAY[8000000]) AS a")`)
	if e.get("status") != "failed" || e.get("exception.type") != "DatabaseError" ||
		!strings.Contains(string(e.text), "too-large") || !strings.Contains(string(e.text), "unnest") {
		t.Errorf("db_query: got %.500s, want a DatabaseError that says what to do", e.text)
	}
	e = c.run(t, id, `rows = db_query("SELECT array_fill(1, ARRAY[1000000]) AS a")
len(rows[0]["a"])`)
	if e.get("result") != 1000000.0 {
		t.Errorf("db_query of an array that fits: got %.500s", e.text)
	}
}

// TestUnreadAnswersOfAUserAreLimited makes a user's answers wait for clients that do not read. Other users go on.
func TestUnreadAnswersOfAUserAreLimited(t *testing.T) {
	t.Parallel()
	// As in the service, two large answers fit. They are larger than the buffers of a connection.
	server := serveDatabases(t, dbaccess.Config{
		Name: "unread", URL: knowledgeURL, Results: limit.NewResults(maxTestResults / 3),
	})
	c := server.newUser(t, nil)
	query := map[string]any{"query": `SELECT repeat('x', 20000000) AS a`, "database": "unread"}
	body, err := json.Marshal(query)
	if err != nil {
		t.Fatal(err)
	}
	unread := make([]*http.Response, 2)
	for i := range unread {
		request, err := http.NewRequestWithContext(t.Context(), "POST", c.server+"/database/query",
			strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+c.secret)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request) // returns with the status, before the rows are read
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if unread[i] = response; response.StatusCode != http.StatusOK {
			t.Fatalf("answer %d: got %s, want 200", i, response.Status)
		}
	}
	a := c.do(t, "POST", "/database/query", query)
	if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("the third one: got %d %.300s, want 429 with Retry-After", a.status, a.text)
	}
	other := server.newUser(t, nil)
	if a := other.do(t, "POST", "/database/query", query); a.status != http.StatusOK {
		t.Errorf("another user: got %d %.300s, want 200", a.status, a.text)
	}
	for _, response := range unread {
		_ = response.Body.Close()
	}
	eventually(t, "a statement after the clients have left", func() bool {
		return c.do(t, "POST", "/database/query", query).status == http.StatusOK
	})
}
