package httpapi_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// typeSamples has values for each type that SQL may cast to, as SQL writes them.
var typeSamples = map[string][]string{
	"bool": {"t", "f"}, "int2": {"-32768", "32767"}, "int4": {"-2147483648", "0"}, "int8": {"-9223372036854775808",
		"9223372036854775807"},
	"float4": {"0.1", "NaN", "-Infinity", "1e-45", "3.4028235e38"}, "float8": {"0.1", "NaN", "Infinity", "5e-324", "-0",
		"1.7976931348623157e308"},
	"numeric": {"0", "1.10", "-12345678901234567890.123456789", "NaN", "Infinity", "1e-20", "100000"},
	"text":    {"", "é\t\n", `a "b" \ {},NULL`, "NULL"}, "varchar": {"x", "  "}, "bpchar": {"x", ""}, "char": {"a",
		""}, "name": {"somebody"}, "bytea": {`\x00ff`, `\x`, "a,b"},
	"date": {"2024-02-29", "0001-01-01", "9999-12-31", "0044-03-15 BC", "infinity", "-infinity", "20240-01-01"},
	"time": {"00:00", "23:59:59.999999", "24:00", "01:02:03.5"}, "timetz": {"01:02:03+02", "01:02:03.000001-11:30",
		"00:00+00", "24:00+00"},
	"timestamp": {"2024-02-29 12:34:56.000001", "0001-01-01", "infinity", "0044-03-15 01:02:03 BC", "12024-01-01",
		"2024-01-01 00:00:00.1"},
	"timestamptz": {"2024-02-29 12:34:56.7+05:30", "9999-12-31 23:59:59+00", "-infinity", "0044-03-15 01:02:03+00 BC",
		"1900-01-01 00:00:00+00:17:30"},
	"interval": {"0", "1 year 2 mons 3 days 04:05:06.789", "-1 year 2 mons -3 days 04:05:06", "-00:00:00.5", "14 mons",
		"-14 mons", "1 day -00:00:01", "100 hours"},
	"uuid": {"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, "json": {`{"a": [1, null, 9007199254740993, 1.5]}`, "null",
		`"\u00e9"`, "1e400", " [1 ,2]"}, "jsonb": {`{"b": 9007199254740993, "a": {}}`, "[]", "0.1000", `"x"`},
	"jsonpath": {"$.a[*] ? (@ > 1)"}, "xml": {"<a>1</a>"}, "inet": {"10.0.0.1", "10.0.0.1/8", "::1", "2001:db8::1/32"},
	"cidr": {"10.0.0.0/8", "::/0"}, "macaddr": {"08:00:2b:01:02:03"}, "macaddr8": {"08:00:2b:01:02:03:04:05"},
	"bit": {"1"}, "varbit": {"10110", ""}, "money": {"12.50", "-3"}, "point": {"(1,2.5)"}, "line": {"{1,2,3}"},
	"lseg": {"[(1,2),(3,4)]"}, "box": {"(1,2),(3,4)"}, "path": {"((1,2),(3,4))", "[(1,2),(3,4)]"},
	"polygon": {"((1,2),(3,4),(5,6))"}, "circle": {"<(1,2),3>"}, "tsvector": {"'a':1A 'b c':2"},
	"tsquery": {"'a' & !'b'"}, "oid": {"4294967295"}, "xid": {"7"}, "xid8": {"18446744073709551615"}, "cid": {"7"},
	"tid":    {"(1,2)"},
	"pg_lsn": {"16/B374D848"}, "pg_snapshot": {"10:20:10,14"}, "int2vector": {"1 2 3", ""}, "oidvector": {"1 2"},
	"regclass": {"pg_class", "public.users"}, "regtype": {"timestamptz", "int4[]"}, "regnamespace": {"public"},
	"regrole": {"glasshouse_reader"}, "regproc": {"array_agg_transfn"}, "regprocedure": {"abs(int)"},
	"regoper": {"pg_catalog.||/"}, "regoperator": {"+(int,int)"},
	"regcollation": {`"C"`}, "regconfig": {"english"}, "regdictionary": {"simple"},
	"int4range": {"[1,10)", "empty", "(,5]", "[7,)", "(,)"}, "int8range": {"[1,9223372036854775807)"},
	"numrange": {"(1.5,2.50]", "[NaN,NaN]"}, "tsrange": {"[2024-01-01,2024-01-02 03:04:05.6)"},
	"tstzrange": {"[2024-01-01 00:00+02,)"},
	"daterange": {"[2024-01-01,2024-02-01]"}, "int4multirange": {"{[1,3),[5,)}", "{}"}, "int8multirange": {"{[1,3)}"},
	"nummultirange": {"{(1.5,2.5]}"}, "tsmultirange": {"{[2024-01-01,2024-01-02)}"},
	"tstzmultirange": {"{[2024-01-01,2024-01-02)}"},
	"datemultirange": {"{[2024-01-01,2024-01-02),[2025-01-01,)}"},
}

// runPsycopg runs a program with a psycopg connection as conn and decodes its output.
func runPsycopg(t testing.TB, program string, into any) {
	t.Helper()
	python := os.Getenv("GLASSHOUSE_DEV_PYTHON")
	if python == "" {
		t.Fatal("GLASSHOUSE_DEV_PYTHON is not set; set it to a Python with psycopg 3, as scripts/test does")
	}
	cmd := exec.Command(
		python,
		"-c",
		"import json, psycopg\nfrom psycopg.types.range import Range\nfrom psycopg.types.json import Jsonb\nconn = psycopg.connect("+compactJSON(
			knowledgeURL,
		)+", autocommit=True, options='-c timezone=UTC')\n"+program,
	)
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		var words []byte
		if exit, ok := err.(*exec.ExitError); ok {
			words = exit.Stderr
		}
		t.Fatalf("psycopg: %v: %s", err, words)
	}
}

func describeValues(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/describe_values.py")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every value equals psycopg 3's. Where psycopg fails, the value is PostgreSQL's text.
func TestValuesMatchPsycopg(t *testing.T) {
	t.Parallel()
	var statements []string
	for name := range policy.SQLTypes {
		if name == "record" || name == "unknown" {
			continue
		}
		if len(typeSamples[name]) == 0 {
			t.Errorf("typeSamples has no value of the type %s", name)
		}
		for _, v := range typeSamples[name] {
			v, typ := "'"+strings.ReplaceAll(v, "'", "''")+"'", `"`+name+`"`
			statements = append(statements, fmt.Sprintf(`SELECT %[1]s::%[2]s AS v`, v, typ))
			if name == "int2vector" || name == "oidvector" || name == "pg_snapshot" {
				continue // these are lists themselves, and psycopg does not know arrays of snapshots
			}
			statements = append(
				statements,
				fmt.Sprintf(
					`SELECT NULL::%[2]s AS n, ARRAY[%[1]s::%[2]s, NULL] AS a, ARRAY[[%[1]s::%[2]s, NULL], [NULL, %[1]s::%[2]s]] AS b, array_fill(%[1]s::%[2]s, ARRAY[2, 1], ARRAY[-1, 5]) AS c, '{}'::%[2]s[] AS e`,
					v,
					typ,
				),
			)
		}
	}
	statements = append(statements, `SELECT ROW(1, 'a "b", c', NULL, '', ROW(2, 'x')) AS r`,
		`SELECT ARRAY[ROW(1, 'a'), ROW(2, NULL)] AS r`, `SELECT 1 AS a, 2 AS a, 3 AS "a"`,
		`SELECT 'x' AS "?column?", NULL`,
		`SELECT id, name, tags, preferences, active, created_at FROM users WHERE id = 7`, `SELECT pg_typeof(1)`,
		`SELECT '{{{1,2},{3,4}},{{5,6},{7,NULL}}}'::int[]`, `SELECT E'{"a\\\\b","c\\"d"}'::text[]`)
	var theirs []any
	runPsycopg(t, describeValues(t)+"print(json.dumps(all_of(lambda q: conn.execute(q).fetchone(), json.loads("+
		compactJSON(compactJSON(statements))+"))))", &theirs)

	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	a := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": describeValues(t) +
		"all_of(lambda q: db_query(q)[0].values(), context.statements)",
		"context": map[string]any{"statements": statements}})
	ours, _ := a.get("result").([]any)
	if len(ours) != len(statements) {
		t.Fatalf("got %d results, want %d: %s", len(ours), len(statements), a.text)
	}
	odd := 0
	for i, sql := range statements {
		if _, failed := theirs[i].(string); failed {
			odd++
			if values, ok := ours[i].([]any); !ok || !strings.Contains(compactJSON(values), `"str"`) {
				t.Errorf("%s: psycopg fails with %v; got %v, want text", sql, theirs[i], compactJSON(ours[i]))
			}
		} else if !reflect.DeepEqual(ours[i], theirs[i]) {
			t.Errorf("%s\n  got  %s\n  want %s", sql, compactJSON(ours[i]), compactJSON(theirs[i]))
		}
	}
	if odd > len(statements)/5 {
		t.Errorf("psycopg fails for %d of %d values, want at most a fifth", odd, len(statements))
	}
}

// A parameter reaches the server with the type that psycopg gives it, and comes back the same. Small integers are int4
// here: 30000 + 30000 must not overflow.
func TestParametersMatchPsycopg(t *testing.T) {
	t.Parallel()
	values := []string{
		"True", "5", "-40000", "2**31", "-2**63", "2**64", "1.5", "float('nan')", "float('-inf')", "1e300",
		"Decimal('1.10')", "Decimal('NaN')", "Decimal('1E+30')", "b'\\x00\\xff'", "bytearray(b'x')",
		"dt.date(2024, 2, 29)", "dt.time(1, 2, 3, 4)", "dt.time(1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2)))",
		"dt.datetime(2024, 2, 29, 1, 2, 3, 4)", "dt.datetime(2024, 2, 29, tzinfo=dt.timezone(dt.timedelta(hours=5.5)))",
		"dt.timedelta(days=-3, seconds=4, microseconds=5)", "UUID(int=7)", "[1, None, 3]", "[2**40, 1]",
		"[1.5, float('inf')]", "[Decimal(1), None]", "[True, False]", "[[1, 2], [3, 4]]", "[dt.date(2024, 1, 1)]",
		"[dt.datetime(2024, 1, 1)]",
		"[b'a', b'\\\\', b'\"']", "[UUID(int=1), None]", "[dt.timedelta(days=1)]", "Range(Decimal('1.5'), None, '(]')",
		"Range(dt.date(2024, 1, 1), dt.date(2024, 2, 1))",
		"Range(dt.datetime(2024, 1, 1, 2, 3), None)",
	}
	texts := map[string]string{"'x'": "text", "''": "text", "'it''s :v'": "text", "'5'": "int",
		"['a', None, 'b\"c', 'NULL', '']": "text[]", "[]": "int[]", "None": "date", "[None]": "int[]",
		"Range(1, 5)": "int4range", "Range(None, 2**40)": "int8range", "Range(empty=True)": "numrange"}
	cases := [][]string{}
	for _, v := range values {
		cases = append(cases, []string{v, ""})
	}
	for v, cast := range texts {
		cases = append(cases, []string{v, "::" + cast})
	}
	for _, v := range []string{"{'a': [1, None, 'é']}", "{}"} {
		cases = append(cases, []string{v, "::jsonb"})
	}
	program := func(query string) string {
		return describeValues(t) + "def one(case):\n    v = eval(case[0])\n" + query
	}
	var theirs []any
	runPsycopg(
		t,
		program(
			"    v = Jsonb(v) if type(v) is dict else v\n    return conn.execute('SELECT %(v)s'+case[1]+', pg_typeof(%(v)s'+case[1]+')::text', {'v': v}).fetchone()\n",
		)+
			"print(json.dumps(all_of(one, json.loads("+compactJSON(
			compactJSON(cases),
		)+"))))",
		&theirs,
	)
	admin := newUser(t, sandbox.RoleAdmin)
	id := admin.create(t, map[string]any{"profile": "unrestricted"})
	a := admin.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{
		"code": program(
			"    return db_query('SELECT :v'+case[1]+' AS v, pg_typeof(:v'+case[1]+')::text AS t', {'v': v})[0].values()\n",
		) + "all_of(one, context.cases)",
		"context": map[string]any{"cases": cases}})
	ours, _ := a.get("result").([]any)
	if len(ours) != len(cases) {
		t.Fatalf("got %d results, want %d: %s", len(ours), len(cases), a.text)
	}
	for i, c := range cases {
		want := strings.ReplaceAll(compactJSON(theirs[i]), "smallint", "integer")
		if _, failed := theirs[i].(string); failed || compactJSON(ours[i]) != want {
			t.Errorf("%s%s\n  got  %s\n  want %s", c[0], c[1], compactJSON(ours[i]), want)
		}
	}
}
