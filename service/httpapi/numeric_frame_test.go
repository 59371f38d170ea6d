package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// Numeric columns of a frame are float64. The execution names those with a value that lost digits.
func TestNumericColumnsOfAFrameAreFloats(t *testing.T) {
	t.Parallel()
	values := []struct {
		sql, python string
		isRounded   bool
	}{
		{"1.10", "1.1", false},
		{"-0.00", "0.0", false},
		{"avg(n)", "2.0", false},
		{"avg(n) / 3", "2 / 3", true},
		{"sum(n::bigint)", "6.0", false},
		{"123456789012345::numeric(20)", "123456789012345.0", false},
		{"9007199254740992", "2.0 ** 53", false},
		{"9007199254740993", "2.0 ** 53", true},
		{"9007199254740994.000", "2.0 ** 53 + 2", false},
		{"-305184080441754059", "-305184080441754048.0", true},
		{"0.1234567890123456", "0.1234567890123456", false},
		{"0.12345678901234567", "0.12345678901234566", true},
		{"'1e23'", "1e23", false},
		{"'1e400'", "math.inf", true},
		{"'5e-324'", "5e-324", false},
		{"'1e-400'", "0.0", true},
		{"'NaN'", "math.nan", false},
		{"'Infinity'", "math.inf", false},
		{"'-Infinity'", "-math.inf", false},
		{"NULL", "math.nan", false},
	}
	var columns, want, rounded []string
	for i, v := range values {
		columns = append(columns, fmt.Sprintf("(%s)::numeric AS c%d", v.sql, i))
		want = append(want, v.python)
		if v.isRounded {
			rounded = append(rounded, fmt.Sprintf("c%d", i))
		}
	}
	sql := "SELECT " + strings.Join(columns, ", ") + " FROM generate_series(1, 3) n"
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	run := func(code string) answer { return c.run(t, id, "import math, decimal\n"+code) }

	a := run(fmt.Sprintf(`db_query("SELECT 1")
f = db_frame("""%s""")
want = [%s]
[str(f.dtypes[c]) for c, x, w in zip(f, f.iloc[0], want) if f.dtypes[c] != "float64"], \
[(c, x) for c, x, w in zip(f, f.iloc[0], want) if str(x) != str(w)]`, sql, strings.Join(want, ", ")))
	if got := compactJSON(a.get("result")); got != `[[],[]]` {
		t.Errorf("the frame has other types and values than wanted: %s %v", got, a.get("exception"))
	}
	note := "statement 2: the numeric columns " + strings.Join(rounded, ", ") + " are float64"
	stored := c.ok(t, "GET", "/executions/"+a.get("execution_id").(string)+"?include=text", nil)
	for name, got := range map[string]string{
		"the answer":       compactJSON(a.get("notes")),
		"the stored notes": compactJSON(stored.get("notes")),
		"the text for models": string(c.ok(t, "POST", "/sandbox/"+id+"/execute?include=text", map[string]any{
			"code": fmt.Sprintf("db_query('SELECT 1')\nlen(db_frame(%q))", sql)}).text),
	} {
		if !strings.Contains(got, note) {
			t.Errorf("%s: got %s, want it to contain %q", name, got, note)
		}
	}
	if got := compactJSON(stored.get("queries")); !strings.Contains(got, `"rounded_columns":["`+rounded[0]) {
		t.Errorf("the record of the statement: got %s, want its rounded columns", got)
	}

	const late = `SELECT CASE WHEN n = 50000 THEN 0.1234567890123456789 ELSE n END AS x, repeat('x', 20)
		FROM generate_series(1, 50000) n`
	for code, hasNote := range map[string]bool{
		"f = db_frame('''" + late + "''')\nf.x.sum() > 0":                                           true,
		"f = db_frame('''" + late + "''', exact=True)\ntype(f.x[0]) is decimal.Decimal":             false,
		"rows = db_query('''" + late + "''')\ntype(rows[0]['x']) is decimal.Decimal":                false,
		"f = db_frame('SELECT ARRAY[0.1234567890123456789] a')\ntype(f.a[0][0]) is decimal.Decimal": false,
		"len(db_frame('SELECT 1.5 AS a WHERE false').a) == 0":                                       false,
	} {
		a := run(code)
		if a.get("result") != true || (a.get("notes") != nil) != hasNote {
			t.Errorf("%s\n  got  %v, the notes %v %v\n  want true, notes: %v", code, a.get("result"), a.get("notes"),
				a.get("exception"), hasNote)
		}
	}
}
