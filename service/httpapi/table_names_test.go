package httpapi_test

import (
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
)

// Every list has the names of tables as a statement writes them, and each face finds a table by such a name.
func TestTableNamesCanBePasted(t *testing.T) {
	t.Parallel()
	name := newDatabase(t, "odd")
	owner, err := dbtest.Connect(t.Context(), testPostgres.URL(embedded.RoleOwner, name))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	if _, err := owner.Exec(t.Context(), `CREATE TABLE "OrderItem"("Id" int PRIMARY KEY, "Unit Price" numeric);
		CREATE TABLE "order"(item int REFERENCES "OrderItem"); INSERT INTO "OrderItem" VALUES (1, 2.5);
		GRANT SELECT ON ALL TABLES IN SCHEMA public TO glasshouse_reader`); err != nil {
		t.Fatal(err)
	}
	c := serveDatabases(t, dbaccess.Config{
		Name: "odd", URL: testPostgres.URL(embedded.RoleReader, name), NeedsAudit: true,
	}).newUser(t, nil)
	id := c.create(t, nil)
	for _, x := range []struct{ code, want string }{
		{`db_tables("odd")`, `["\"OrderItem\"","\"order\"","orders"]`},
		{`[len(db_query(f"SELECT * FROM {t} LIMIT 0", database="odd")) for t in db_tables("odd")]`, `[0,0,0]`},
		{`[db_schema(t, "odd")[1]["column_name"] for t in ["OrderItem", 'public."OrderItem"', "orderitem"]]`,
			`["Unit Price","Unit Price","Unit Price"]`},
		{`db_schema("order", "odd")[0]["references"]`, `"\"OrderItem\"(\"Id\")"`},
	} {
		if a := c.run(t, id, x.code); compactJSON(a.get("result")) != x.want {
			t.Errorf("%s: got %s %v, want %s", x.code, compactJSON(a.get("result")), a.get("exception"), x.want)
		}
	}
	for _, table := range []string{"OrderItem", `"OrderItem"`, "order"} {
		a := c.ok(t, "POST", "/sandbox/agent/analyze-data", map[string]any{"table_name": table, "database": "odd"})
		if a.get("status") != "completed" {
			t.Errorf("analyze-data of %s: got %v %v", table, a.get("status"), a.get("error"))
		}
	}
	tool := func(arguments map[string]any) string {
		arguments["database"] = "odd"
		return string(c.do(t, "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
			"params": map[string]any{"name": "describe_database", "arguments": arguments}},
			"Accept", "application/json, text/event-stream").text)
	}
	for _, table := range []string{
		"OrderItem", `"OrderItem"`, "public.OrderItem", `public."OrderItem"`, `"public"."OrderItem"`,
	} {
		if text := tool(map[string]any{"table": table}); !strings.Contains(text, `\n  \"Unit Price\" numeric`) {
			t.Errorf("describe_database of %s: got %s, want its columns", table, text)
		}
	}
	text := tool(map[string]any{})
	if !strings.Contains(text, `\"OrderItem\"`) || !strings.Contains(text, `\"order\"`) {
		t.Errorf("describe_database: got %s, want the tables in double quotes", text)
	}
	if text := tool(map[string]any{"table": "OrderItems"}); !strings.Contains(text,
		`did you mean \"OrderItem\"?; tables: \"OrderItem\", \"order\", orders`) {
		t.Errorf("describe_database of OrderItems: got %s, want the tables that there are", text)
	}
}
