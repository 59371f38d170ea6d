package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// toolAnswer is the answer of a tool.
type toolAnswer struct {
	Content           []struct{ Text string }
	StructuredContent json.RawMessage
	IsError           bool
}

// explainQuery calls the tool explain_query.
func (c client) explainQuery(t *testing.T, arguments map[string]any) toolAnswer {
	t.Helper()
	_, data, _ := strings.Cut(string(c.callTool(t, "2025-11-25", "explain_query", arguments).text), "data: ")
	var message struct{ Result toolAnswer }
	if err := json.Unmarshal([]byte(data), &message); err != nil || len(message.Result.Content) != 1 {
		t.Fatalf("got %q, %v; want an answer of one text", data, err)
	}
	return message.Result
}

// The tool explain_query answers with the text and the fields of the HTTP routes, and keeps their rules: masked values
// are ***, and a statement of an execution is for its user. Fields that are longer than a text may be are left out.
func TestExplainQueryAnswersAsTheRoutes(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	const sql = `SELECT c.city, count(*) AS n FROM customers c JOIN orders o ON o.customer_id = c.id
WHERE o.status = :status GROUP BY c.city ORDER BY c.city`
	params := map[string]any{"status": "paid"}
	want := c.counted(t, "/database/stages", map[string]any{"sql": sql, "params": params})
	e := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{
		"code": "await db_query('SELECT 1 AS n')\nrows = await db_query('''" + sql + "''', {'status': 'paid'})",
	})
	stranger := newUser(t, sandbox.RoleAgent)
	c.server = serveMCP(t)
	stranger.server = c.server

	a := c.explainQuery(t, map[string]any{"sql": "```sql\n" + sql + "\n```", "params": params})
	var fields stages.Stages
	if err := json.Unmarshal(a.StructuredContent, &fields); err != nil || fields.Text != a.Content[0].Text ||
		strings.TrimSpace(fields.Text) != strings.TrimSpace(want.Text) || len(fields.Blocks) != 1 {
		t.Errorf("got %s and the fields %s, want those of the route: %s", a.Content[0].Text, a.StructuredContent,
			want.Text)
	}
	past := map[string]any{"execution_id": e.get("execution_id"), "query": 2}
	if a = c.explainQuery(t, past); a.IsError || !strings.HasPrefix(a.Content[0].Text, "Query 2, 2 lines, 6 rows") {
		t.Errorf("a statement of an execution: got %+v", a)
	}
	if a = stranger.explainQuery(t, past); !a.IsError || !strings.Contains(a.Content[0].Text, "no such execution") {
		t.Errorf("an execution of another user: got %+v", a)
	}

	past["column"] = "n"
	a = c.explainQuery(t, past)
	text := a.Content[0].Text
	if !strings.Contains(text, "Query 2, row 0, n = ") || !strings.Contains(text, "email=***") ||
		strings.Contains(text, "@customer.example") {
		t.Errorf("a cell: got %s, want masked rows", text)
	}
	if len(a.StructuredContent) == 0 {
		t.Error("a short answer has no structured content")
	}
	wide := "SELECT count(*) AS n FROM customers c JOIN orders o ON o.customer_id = c.id " +
		"JOIN order_items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id"
	cell := map[string]any{"sql": wide, "row": 0, "column": "n"}
	if why := ask[stages.Why](t, c, "/database/why", cell); len(compactJSON(why)) <= 8000 {
		t.Fatalf("got an answer of %d bytes, want a long one", len(compactJSON(why)))
	}
	a = c.explainQuery(t, cell)
	if len(a.StructuredContent) > 0 || !strings.Contains(a.Content[0].Text, "products (l1 p)") {
		t.Errorf("a long answer: got %+v, want the text alone", a)
	}
}
