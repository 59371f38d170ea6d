package check

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// otherDialectFunctions maps function names of MySQL, SQL Server, Oracle, SQLite and others to what does the same in
// PostgreSQL.
var otherDialectFunctions = dialectFunctions(`
	ifnull isnull nvl zeroifnull: coalesce(x, y)
	nvl2: CASE WHEN x IS NOT NULL THEN y ELSE z END
	if iif iff: CASE WHEN x THEN y ELSE z END
	getdate sysdate sysdatetime getutcdate utc_timestamp: now()
	curdate today: current_date
	curtime: current_time
	year: extract(year FROM x)
	quarter: extract(quarter FROM x)
	month: extract(month FROM x)
	week weekofyear: extract(week FROM x)
	day dayofmonth: extract(day FROM x)
	dayofweek weekday: extract(dow FROM x)
	dayofyear: extract(doy FROM x)
	hour: extract(hour FROM x)
	minute: extract(minute FROM x)
	second: extract(second FROM x)
	datepart: extract(year FROM x)
	dayname: to_char(x, 'Day')
	monthname: to_char(x, 'Month')
	date_format strftime format_date format_datetime: to_char(x, 'YYYY-MM-DD')
	str_to_date parse_date: to_date(x, 'YYYY-MM-DD')
	from_unixtime: to_timestamp(x)
	unix_timestamp: extract(epoch FROM x)
	datetrunc trunc_date: date_trunc('month', x)
	datediff date_diff: x::date - y::date
	timestampdiff: extract(epoch FROM x - y)
	dateadd date_add adddate timestampadd: x + interval '1 day'
	date_sub subdate: x - interval '1 day'
	last_day eomonth: date_trunc('month', x) + interval '1 month - 1 day'
	add_months: x + interval '1 month'
	len datalength: length(x)
	instr charindex locate: strpos(text, part)
	lcase: lower(x)
	ucase: upper(x)
	mid: substr(text, start, count)
	space replicate: repeat(text, count)
	group_concat listagg: string_agg(x::text, ',')
	find_in_set: x = ANY(string_to_array(list, ','))
	regexp_extract: substring(x FROM 'pattern')
	rand: random()
	truncate: trunc(x::numeric, digits)
	stdev: stddev(x)
	var: variance(x)
	median: percentile_cont(0.5) WITHIN GROUP (ORDER BY x)
	approx_count_distinct: count(DISTINCT x)
	countif count_if: count(*) FILTER (WHERE x)
	sumif sum_if: sum(x) FILTER (WHERE y)
	safe_divide: x / nullif(y, 0)
	try_cast safe_cast: CAST(x AS int)
	json_extract: jsonb_path_query(x, '$.key')
	json_value json_unquote json_extract_scalar: x->>'key'
	newid uuid: gen_random_uuid()`)

// dialectFunctions reads lines of names of other databases and the expression of PostgreSQL.
func dialectFunctions(lines string) map[string]string {
	functions := map[string]string{}
	for line := range strings.Lines(lines) {
		others, ours, _ := strings.Cut(strings.TrimSpace(line), ": ")
		for name := range strings.FieldsSeq(others) {
			functions[name] = ours
		}
	}
	return functions
}

var calledFunction = regexp.MustCompile(`^(\w+)\(`)

// refuseUnknownFunction returns the refusal of a function that exists in no schema.
func refuseUnknownFunction(full, name string) *sandbox.Refusal {
	r := sandbox.Refusef("unknown-function", "there is no function %s", full)
	if ours := otherDialectFunctions[name]; ours != "" {
		if called := calledFunction.FindStringSubmatch(ours); called != nil {
			r.Nearest = called[1]
		}
		r.Hint = "in PostgreSQL write " + ours
		return r
	}
	r.Nearest = policy.Nearest(name, maps.Keys(policy.SQLFunctions))
	if r.Hint = "write it with PostgreSQL's functions, or compute it in Python instead"; r.Nearest != "" {
		r.Hint = "did you mean " + r.Nearest + "?"
	}
	return r
}

var commonTypes = wordSet("text numeric float8 int4 int8 bool date timestamp timestamptz interval json jsonb")

// uncommonTypes returns the number of types in a signature that are not common.
func uncommonTypes(signature string) (n int) {
	_, types, _ := strings.Cut(strings.TrimSuffix(signature, ")"), "(")
	for name := range strings.SplitSeq(types, ", ") {
		if !commonTypes[name] {
			n++
		}
	}
	return n
}

// maxSignatures bounds the signatures in a hint.
const maxSignatures = 4

var noFunction = regexp.MustCompile(`^function (?:\w+\.)?"?([^".(]+)"?\((.*)\) does not exist$`)

// SuggestSignature adds the types that a function takes to the refusal of a call with other types: its signatures with
// this number of arguments or, if there is none, the others.
func (stmt *Statement) SuggestSignature(no *sandbox.Refusal) {
	found := noFunction.FindStringSubmatch(no.Message)
	if found == nil || stmt.Catalog == nil {
		return
	}
	given := 0
	if found[2] != "" {
		given = strings.Count(found[2], ", ") + 1
	}
	var same, others []string
	for _, f := range stmt.Catalog.functions[found[1]] {
		signature := f.name + strings.ReplaceAll(stmt.Catalog.signature(f), ",", ", ")
		switch {
		case !f.allowed || stmt.Catalog.takesInternal(f):
		case f.acceptsArgs(given):
			same = append(same, signature)
		default:
			others = append(others, signature)
		}
	}
	list := same
	if len(list) == 0 {
		list = others
	}
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(uncommonTypes(a), uncommonTypes(b)), cmp.Compare(a, b))
	})
	if len(list) > maxSignatures {
		list = append(list[:maxSignatures], "...")
	}
	if no.Hint = "there is " + strings.Join(list, ", "); len(same) > 0 {
		_, types, _ := strings.Cut(list[0], "(")
		no.Hint += "; cast the arguments to these types, as in x::" + types[:strings.IndexAny(types, ",)")]
	}
}
