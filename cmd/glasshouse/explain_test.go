package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glasshouse/sandbox/stages"
)

// TestExplainSQLCommand asks each question from the shell.
func TestExplainSQLCommand(t *testing.T) {
	t.Parallel()
	_, c := start(t, binary(t), dataDir(t))
	// The settings of a service elsewhere do not matter, and --database names a database of the called one.
	environ := []string{"GLASSHOUSE_URL=" + c.address, "GLASSHOUSE_KEY=" + c.key, "GLASSHOUSE_DATA_DIR=" + t.TempDir(),
		"GLASSHOUSE_DATABASE=sales=postgres://a@db/sales", "GLASSHOUSE_SERVER_CHECK=sales"}
	file := filepath.Join(t.TempDir(), "cities.sql")
	const sql = "SELECT c.city, count(*) AS n\nFROM customers c\nJOIN orders o ON o.customer_id = c.id\n" +
		"WHERE o.status = :status\nGROUP BY c.city\nORDER BY c.city\n"
	if err := os.WriteFile(file, []byte(sql), 0o644); err != nil {
		t.Fatal(err)
	}
	const paid = `{"status": "paid"}`
	for _, test := range []struct {
		arguments []string
		input     string
		out, err  string
	}{
		{[]string{"--params", paid, file}, "", "Statement, 6 lines, ", ""},
		{[]string{"--params", paid, "--database", "knowledge", "-"}, sql, " -> l4 o.status = :status ", ""},
		{[]string{"--params", paid, "--column", "n", "--row", "1", file}, "", "Statement, row 1, n = ", ""},
		{[]string{"--params", paid, "--missing", `{"city": "Atlantis"}`, file}, "", "Lost at l", ""},
		{[]string{file}, "", "", ":status"},
		{[]string{"--params", "[1]", file}, "", "", "--params is not a JSON object"},
		{[]string{"--params", paid, "--missing", "null", file}, "", "", "--missing is not a JSON object"},
		{[]string{"--column", "n", "--missing", "{}", file}, "", "", "give one of them"},
		{[]string{"--params", paid, "--column", "none", file}, "", "", "none"},
		{[]string{"--params", paid, "--database", "absent", file}, "", "", "absent"},
		{[]string{"-"}, "DELETE FROM orders", "", "DELETE is refused"},
	} {
		arguments := append([]string{"explain", "sql"}, test.arguments...)
		out, problems, err := runCommand(t, environ, test.input, arguments...)
		if !strings.Contains(out, test.out) || !strings.Contains(problems, test.err) ||
			(err != nil) != (test.err != "") || (out == "") != (test.out == "") {
			t.Errorf("%q: got %v, %q and %q, want %q and %q", test.arguments, err, out, problems, test.out, test.err)
		}
	}
	out, _, err := runCommand(t, environ, "SELECT id FROM orders WHERE id > :least", "explain", "sql", "--json",
		"--params", `{"least": 9007199254740993}`, "-")
	var answer stages.Stages
	if err != nil || json.Unmarshal([]byte(out), &answer) != nil || answer.Rows != 0 || len(answer.Blocks) != 1 {
		t.Errorf("--json: got %v and %s, want the answer of the route", err, out)
	}
}
