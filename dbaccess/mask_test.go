package dbaccess_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/check"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/oracle"
	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
)

var masks = []string{
	"public.staff.ssn", "staff.pay", "shown.note", "parts.code", `public.Odd "Names".Se cret`, "tenants.token",
	"by_code.code", "by_lower.code", "by_listed.code",
}

// listedViews may do more with masked columns than to pass them on.
var listedViews = []string{"listed", "public.by_listed", "summed", "nested", "looked_up"}

func maskedReader(t *testing.T, s roleURLs, columns ...string) *dbaccess.Reader {
	t.Helper()
	return openReader(t, dbaccess.Config{
		URL:            s.URL(embedded.RoleReader, embedded.DatabaseKnowledge),
		WriterURL:      s.URL(embedded.RoleWriter, embedded.DatabaseKnowledge),
		AllowFunctions: []string{"told"}, MaskColumns: columns, AllowViews: listedViews, ServerCheck: true,
	})
}

func maskFixture(t *testing.T) *dbtest.Databases {
	t.Helper()
	s := dbtest.Start(t)
	if err := s.LoadDemo(t.Context()); err != nil { // creates the logins
		t.Fatal(err)
	}
	loadMasks(t, s)
	return s
}

func loadMasks(t *testing.T, s roleURLs) {
	t.Helper()
	ctx := context.Background()
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
}

// maskJudge asks PostgreSQL which columns a statement reads.
type maskJudge struct {
	checker *check.Checker
	oracle  *oracle.Oracle
}

func newMaskJudge(t *testing.T, s roleURLs) maskJudge {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), s.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	c := check.New(check.Config{
		Pool: pool, AllowFunctions: []string{"told"}, MaskColumns: masks, AllowViews: listedViews,
	})
	t.Cleanup(c.Close)
	o, err := oracle.Open(t.Context(), s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return maskJudge{c, o}
}

// reads reports whether PostgreSQL reads a masked column, or a row with one, for a statement as it runs and as it was
// written. It is nothing for a statement that is refused.
func (j maskJudge) reads(t *testing.T, sql string, writes bool) (asItRuns, asWritten bool) {
	t.Helper()
	stmt, err := j.checker.Statement(t.Context(), parse.Request{SQL: sql, AllowAnyName: true}, writes)
	if err != nil {
		t.Fatal(err)
	}
	if stmt.Refusal != nil {
		return false, false
	}
	hasMask := func(columns []oracle.Column) bool {
		return slices.ContainsFunc(columns, func(c oracle.Column) bool {
			for masked := range stmt.Catalog.MaskedColumns {
				if c.Relation == masked.Relation && (c.Number == 0 || c.Number == int(masked.Column)) {
					return true
				}
			}
			return false
		})
	}
	columns, err := j.oracle.Columns(t.Context(), stmt.SQL, stmt.SearchPath)
	if _, ok := errors.AsType[*pgconn.PgError](err); err != nil && !ok {
		t.Fatal(err)
	}
	asItRuns = hasMask(columns)
	columns, err = j.oracle.Columns(t.Context(), sql, "public")
	if _, ok := errors.AsType[*pgconn.PgError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return asItRuns, hasMask(columns)
}

// TestMaskedColumns runs the cases with masks and without. A case is the number of the masked outputs, "told" if the
// answer says that it has values made of masks, or the reason of the error. Statements without masked columns return
// the same rows as without masks. PostgreSQL itself says that no statement reads a masked column.
func TestMaskedColumns(t *testing.T) {
	t.Parallel()
	s := maskFixture(t)
	testMaskedColumns(t, s, maskedReader(t, s))
}

// needsWholeTable matches what a login without SELECT on the whole table may not read: a view with masked columns only.
var needsWholeTable = regexp.MustCompile(`\brows_of\b`)

// testMaskedColumns compares with open, a reader without masks.
func testMaskedColumns(t *testing.T, s roleURLs, open *dbaccess.Reader) {
	t.Helper()
	ctx := context.Background()
	r, j := maskedReader(t, s, masks...), newMaskJudge(t, s)
	if err := r.AuditLogin(ctx); err != nil {
		t.Fatal(err)
	}
	wouldRead := 0
	for _, c := range dbtest.Cases(t, "testdata/mask/cases.sql") {
		want, sql := c.Want, c.SQL
		rows, err := all(ctx, r, sql, nil, sandbox.QueryLimits{})
		if reason(err) == "permission" && needsWholeTable.MatchString(sql) {
			continue
		}
		if got := outcome(rows, err); got != want {
			t.Errorf("%s\n  got  %s (%v)\n  want %s", sql, got, err, want)
		}
		given, _ := json.Marshal(rows.Data)
		if text := string(given) + fmt.Sprint(err); strings.Contains(strings.ToUpper(text), "SECRET-") ||
			strings.Contains(text, "0.5\"") {
			t.Errorf("%s: got %s, which shows a masked value", sql, text)
		}
		asItRuns, asWritten := j.reads(t, sql, false)
		if asItRuns {
			t.Errorf("%s reads a masked column", sql)
		}
		if asWritten {
			wouldRead++
		}
		if strings.HasPrefix(sql, "EXPLAIN") {
			continue // the plan is another one
		}
		plain, openErr := all(ctx, open, sql, nil, sandbox.QueryLimits{})
		isOther := strings.Contains(sql, "stats") // the server's analysis finds another reason in it
		if want == "masked-column" && openErr != nil && !isOther {
			t.Errorf("%s: without masks got %v, want nil", sql, openErr)
		}
		if want == "none" && !sameRows(plain, rows) {
			t.Errorf("%s: without masks got %v (%v), with masks %v", sql, plain.Data, openErr, rows.Data)
		}
		if err == nil && plain.Rows != rows.Rows {
			t.Errorf("%s: got %d rows, want %d as without masks", sql, rows.Rows, plain.Rows)
		}
	}
	if wouldRead < 40 {
		t.Errorf("%d statements would read a masked column as they are written, want more than 40", wouldRead)
	}
}

func sameRows(a, b result) bool {
	x, _ := json.Marshal(a.Data)
	y, _ := json.Marshal(b.Data)
	return string(x) == string(y)
}

// outcome describes a result as the case file does.
func outcome(rows result, err error) string {
	if err != nil {
		return reason(err)
	}
	var at []string
	for i, c := range rows.Columns {
		if c.Masked {
			at = append(at, strconv.Itoa(i+1))
		}
	}
	out := strings.Join(at, ",")
	if out == "" {
		out = "none"
	}
	if len(rows.ComputedWithMask) > 0 {
		out += " told"
	}
	return out
}

// A refusal has the position of the masked column in the text of the caller, also after the names before it have got
// longer, and a hint.
func TestMaskedColumnRefusal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := maskedReader(t, maskFixture(t), masks...)
	for sql, want := range map[string]struct{ position, line int }{
		"SELECT id\nFROM staff WHERE id = :id AND ssn = 'x'":               {41, 2},
		"SELECT x FROM (\n SELECT ssn FROM staff\n) s (x) ORDER BY :id, x": {62, 3}, // PostgreSQL's
	} {
		_, err := all(ctx, r, sql, map[string]any{"id": json.Number("1")}, sandbox.QueryLimits{})
		no, ok := err.(*sandbox.Refusal)
		if !ok || no.Reason != "masked-column" || no.Line != want.line || no.Position != want.position ||
			no.Hint == "" {
			t.Errorf("%s: got %#v, want a refusal at %v with a hint", sql, err, want)
		}
	}
}

// db_schema marks masked columns, also those of views.
func TestMaskedColumnsInSchema(t *testing.T) {
	t.Parallel()
	r := maskedReader(t, maskFixture(t), masks...)
	tables, err := r.Schema(t.Context(), "staff", "directory", "names", "computed", "logs", "sorted", "listed")
	if err != nil {
		t.Fatal(err)
	}
	var marked []string
	for _, table := range tables {
		for _, c := range table.Columns {
			if c.Masked {
				marked = append(marked, table.Name+"."+c.Name)
			}
		}
	}
	const want = "public.staff.ssn public.staff.pay public.staff.lower_ssn directory.number computed.id computed.u " +
		"sorted.id listed.ssn"
	if got := strings.Join(marked, " "); got != want {
		t.Errorf("masked columns in the schema: got %s, want %s", got, want)
	}
}

// The number of bytes does not tell the length of masked values.
func TestMaskedColumnsHaveOneLength(t *testing.T) {
	t.Parallel()
	r := maskedReader(t, maskFixture(t), masks...)
	rows, err := all(t.Context(), r, "SELECT ssn FROM staff", nil, sandbox.QueryLimits{})
	if err != nil || rows.Bytes != int64(3*rows.Rows) {
		t.Errorf("got %d bytes, %v, want 3 per row", rows.Bytes, err)
	}
}

// A statement that writes may give a masked column a value. PostgreSQL says that the others would read one.
func TestMaskedWrites(t *testing.T) {
	t.Parallel()
	testMaskedWrites(t, maskFixture(t))
}

func testMaskedWrites(t *testing.T, s roleURLs) {
	t.Helper()
	ctx := context.Background()
	r, open, j := maskedReader(t, s, masks...), maskedReader(t, s), newMaskJudge(t, s)
	for _, c := range dbtest.Cases(t, "testdata/mask/writes.sql") {
		_, err := r.Capture(ctx, c.SQL, nil, sandbox.QueryLimits{})
		if got := reason(err); got != c.Want {
			t.Errorf("%s: got %s (%v), want %s", c.SQL, got, err, c.Want)
		}
		if _, err := open.Capture(ctx, c.SQL, nil, sandbox.QueryLimits{}); err != nil {
			t.Errorf("%s: without masks got %v, want nil", c.SQL, err)
		}
		if asItRuns, _ := j.reads(t, c.SQL, true); asItRuns {
			t.Errorf("%s reads a masked column", c.SQL)
		}
	}
}

// PostgreSQL's error of an applied write has the values of the row that conflicts in its detail, which nobody gets.
func TestErrorOfMaskedWriteShowsNoValue(t *testing.T) {
	t.Parallel()
	r := maskedReader(t, maskFixture(t), masks...)
	_, err := r.Apply(t.Context(), "INSERT INTO tenants (tenant, id, token) VALUES (2, 1, 'SECRET-T')", nil)
	no, ok := err.(*sandbox.Refusal)
	if !ok || no.SQLState != "23505" || strings.Contains(fmt.Sprint(no), "SECRET") {
		t.Errorf("got %#v, want SQLSTATE 23505 without the value", err)
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

// With the login of role-sql --mask PostgreSQL itself refuses the masked columns. The service works as with any other
// login, and says which masks rest on it.
func TestLoginThatMayNotReadMaskedColumns(t *testing.T) {
	ctx := context.Background()
	s := dbtest.StartPrivate(t)
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	loadMasks(t, s)
	admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	const role = "Masked's reader"
	sql := dbaccess.RoleSQL(role, embedded.DatabaseKnowledge, dbaccess.RoleOptions{Mask: masks, ServerCheck: true}) +
		`GRANT USAGE ON SCHEMA elsewhere TO "Masked's reader"; GRANT SELECT ON elsewhere.staff TO "Masked's reader"`
	if _, err := admin.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
	login := roleAs{s, role}
	direct, err := dbtest.Connect(ctx, login.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close(ctx)
	for sql, want := range map[string]string{
		"SELECT id, name FROM staff": "", "SELECT ssn FROM staff": "42501", "SELECT * FROM staff": "42501",
		"SELECT s FROM staff s": "42501", "SELECT pay FROM retired": "42501", "SELECT lower_ssn FROM staff": "42501",
		"SELECT code FROM parts_1": "42501", "SELECT count(*) FROM parts": "", "SELECT number FROM directory": "",
	} {
		_, err := direct.Exec(ctx, sql)
		pg, _ := errors.AsType[*pgconn.PgError](err)
		if err == nil && want != "" || err != nil && (pg == nil || pg.Code != want) {
			t.Errorf("%s: got %v, want %q", sql, err, want)
		}
	}
	testMaskedColumns(t, login, maskedReader(t, s))
	r := maskedReader(t, login, masks...)
	got, err := r.LoginMasks(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"public.staff.ssn", "public.staff.pay", "public.staff.lower_ssn", "public.retired.ssn", "public.parts_1.code",
		`public.Odd "Names".Se cret`, "public.shown.note",
	} {
		if !slices.Contains(got.ByPostgres, name) {
			t.Errorf("by PostgreSQL: got %v, want %s", got.ByPostgres, name)
		}
	}
	if !slices.Contains(got.ByService, "public.directory.number") ||
		slices.Contains(got.ByService, "public.staff.ssn") {
		t.Errorf("by the service: got %v, want the views", got.ByService)
	}
	sql = dbaccess.RoleSQL("other", embedded.DatabaseKnowledge, dbaccess.RoleOptions{Mask: []string{"staff.none"}})
	if _, err := admin.Exec(ctx, sql); err == nil || !strings.Contains(err.Error(), "staff.none") {
		t.Errorf("got %v, want an error that names staff.none", err)
	}
}

// roleAs is a server where another login is the reader.
type roleAs struct {
	roleURLs
	reader string
}

func (r roleAs) URL(role, database string) string {
	if role == embedded.RoleReader {
		role = r.reader
	}
	return r.roleURLs.URL(role, database)
}

// A field of a composite type can be masked: columns that contain the type are masked then.
func TestMaskedFieldOfACompositeType(t *testing.T) {
	t.Parallel()
	s := maskFixture(t)
	r := maskedReader(t, s, "holder.n")
	out, err := all(t.Context(), r, "SELECT id, deep FROM archive", nil, sandbox.QueryLimits{})
	if err != nil || out.Data[1][0] != check.MaskValue || out.Columns[0].Masked || !out.Columns[1].Masked {
		t.Errorf("got %v %v, %v, want the column of the type masked", out.Columns, out.Data, err)
	}
}
