package dbaccess_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

var masks = []string{"public.staff.ssn", "staff.pay", "shown.note", "parts.code"}

func maskedReader(t *testing.T, s *dbtest.Databases, columns ...string) *dbaccess.Reader {
	t.Helper()
	r, err := dbaccess.Open(
		context.Background(),
		dbaccess.Config{URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge),
			WriterURL: s.URL(
				embedded.RoleWriter,
				embedded.DatabaseKnowledge,
			), AllowFunctions: []string{"told"}, MaskColumns: columns},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func maskFixture(t *testing.T) *dbtest.Databases {
	t.Helper()
	ctx := context.Background()
	s := dbtest.Start(t)
	if err := s.LoadDemo(ctx); err != nil { // creates the logins
		t.Fatal(err)
	}
	owner, err := dbtest.Connect(ctx, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	fixture, err := os.ReadFile("testdata/mask/fixture.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Exec(ctx, string(fixture)); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMaskedColumns expects each statement to return masked values or to be refused. Statements without
// masked columns return the same rows as without --mask-columns, and statements refused because of
// a masked column run without it.
func TestMaskedColumns(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := maskFixture(t)
	r, open := maskedReader(t, s, masks...), maskedReader(t, s)
	if err := r.AuditLogin(ctx); err != nil {
		t.Fatal(err)
	}
	for _, c := range dbtest.Cases(t, "testdata/mask/cases.sql") {
		want, sql := c.Want, c.SQL
		rows, err := all(ctx, r, sql, nil, sandbox.QueryLimits{})
		if got := outcome(rows, err); got != want {
			t.Errorf("%s\n  got  %s (%v)\n  want %s", sql, got, err, want)
		}
		given, _ := json.Marshal(rows.Data)
		if strings.Contains(strings.ToUpper(string(given)), "SECRET") || strings.Contains(string(given), "0.5\"") {
			t.Errorf("%s: got %s, which shows a masked value", sql, given)
		}
		plain, err := all(ctx, open, sql, nil, sandbox.QueryLimits{})
		if want == "masked-column" && err != nil && !strings.Contains(sql, "nothing") {
			t.Errorf("%s: without masks got %v, want nil", sql, err)
		}
		if want != "masked-column" {
			if want == "none" && (err != nil || !sameRows(plain, rows)) {
				t.Errorf("%s: without masks got %v (%v), with masks %v", sql, plain.Data, err, rows.Data)
			}
			if err == nil && plain.Rows != rows.Rows {
				t.Errorf("%s: got %d rows, want %d as without masks", sql, rows.Rows, plain.Rows)
			}
		}
	}
}

func sameRows(a, b result) bool {
	x, _ := json.Marshal(a.Data)
	y, _ := json.Marshal(b.Data)
	return string(x) == string(y)
}

// outcome describes a result as the case file does: the masked columns, or the reason of the refusal.
func outcome(rows result, err error) string {
	if err != nil {
		return reason(err)
	}
	var at []string
	for i, c := range rows.Columns {
		if !c.Masked {
			continue
		}
		at = append(at, strconv.Itoa(i+1))
		if slices.ContainsFunc(rows.Data[i], func(v any) bool { return v != "***" }) {
			return "shown: " + c.Name
		}
	}
	if at == nil {
		return "none"
	}
	return strings.Join(at, ",")
}

// TestMaskedColumnRefusal checks positions and hints of refusals, the schema, and captured writes.
func TestMaskedColumnRefusal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := maskFixture(t)
	r := maskedReader(t, s, masks...)
	_, err := all(
		ctx,
		r,
		"SELECT id\nFROM staff WHERE id = :id AND ssn = 'x'",
		map[string]any{"id": json.Number("1")},
		sandbox.QueryLimits{},
	)
	no, ok := err.(*sandbox.Refusal)
	if !ok || no.Line != 2 || no.Position != 41 || no.Hint == "" || !strings.Contains(no.Message, "ssn") {
		t.Errorf("got %#v, want a refusal with position 41 in line 2 that names ssn", err)
	}

	tables, err := r.Schema(ctx, "staff", "directory", "names", "computed", "logs")
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, table := range tables {
		for _, c := range table.Columns {
			if c.Masked {
				shown = append(shown, table.Name+"."+c.Name)
			}
		}
	}
	if want := "staff.ssn staff.pay staff.lower_ssn directory.number computed.id computed.u"; strings.Join(
		shown,
		" ",
	) != want {
		t.Errorf("masked columns in the schema: got %v, want %s", shown, want)
	}

	// The byte count must not reveal the length of masked values.
	rows, err := all(ctx, r, "SELECT ssn FROM staff", nil, sandbox.QueryLimits{})
	if err != nil || rows.Bytes != int64(3*rows.Rows) {
		t.Errorf("got %d bytes, %v, want 3 per row", rows.Bytes, err)
	}

	for sql, want := range map[string]string{
		"UPDATE staff SET name = 'x', ssn = 'new' WHERE id = 1":                                         "ok",
		"UPDATE staff SET name = ssn":                                                                   "masked-column",
		"UPDATE logs SET text = s.ssn FROM staff s":                                                     "masked-column",
		"UPDATE logs SET text = (SELECT ssn FROM staff LIMIT 1)":                                        "masked-column",
		"DELETE FROM staff WHERE ssn > 'S'":                                                             "masked-column",
		"DELETE FROM staff WHERE id = 4":                                                                "ok",
		"DELETE FROM logs USING staff s WHERE s.ssn = text":                                             "masked-column",
		"INSERT INTO staff (id, name, ssn) VALUES (5, 'x', 'y')":                                        "ok",
		"INSERT INTO logs (text) SELECT ssn FROM staff":                                                 "masked-column",
		"INSERT INTO staff (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET name = staff.ssn":             "masked-column",
		"INSERT INTO staff (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET name = 'x'":                   "ok",
		"INSERT INTO staff (id) VALUES (1) RETURNING upper(ssn)":                                        "masked-column",
		"MERGE INTO logs l USING staff s ON s.id = l.id WHEN MATCHED THEN UPDATE SET text = s.ssn":      "masked-column",
		"WITH w AS (SELECT ssn AS x FROM staff) INSERT INTO logs (text) SELECT x FROM w":                "masked-column",
		"WITH w AS (SELECT name AS x FROM staff) INSERT INTO logs (text) SELECT x FROM w WHERE x <> ''": "ok",
	} {
		_, err := r.Capture(ctx, sql, nil, sandbox.QueryLimits{})
		if got := reason(err); got != want {
			t.Errorf("%s: got %s (%v), want %s", sql, got, err, want)
		}
	}
}

// TestMaskedColumnMissing expects every statement to fail if a listed column does not exist, because
// its values may be visible under another name.
func TestMaskedColumnMissing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := maskedReader(t, maskFixture(t), "staff.ssn", "staff.no_such")
	if err := r.AuditLogin(ctx); err == nil || !strings.Contains(err.Error(), "staff.no_such") {
		t.Errorf("AuditLogin = %v, want an error that names staff.no_such", err)
	}
	if _, err := all(ctx, r, "SELECT ssn FROM staff", nil, sandbox.QueryLimits{}); err == nil ||
		!strings.Contains(err.Error(), "staff.no_such") {
		t.Errorf("Query = %v, want an error that names staff.no_such", err)
	}
}
