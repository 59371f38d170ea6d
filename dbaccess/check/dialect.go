package check

import (
	"regexp"
	"strings"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// dialectHint is a hint for a statement in the style of another database or driver.
type dialectHint struct {
	message, sql *regexp.Regexp // match the refusal and the statement; nil matches everything
	hint         string
}

// dialectHints are tried in this order.
var dialectHints = []dialectHint{
	{
		nil,
		regexp.MustCompile(`(?i)^\s*show\s+(tables|databases|schemas|columns)\b`),
		"db_tables() lists the tables, db_schema(table) their columns",
	},
	{
		syntaxError,
		regexp.MustCompile(`(?i)^\s*(describe|desc|pragma|\\d)\b`),
		"db_tables() lists the tables, db_schema(table) their columns",
	},
	{
		syntaxError,
		regexp.MustCompile(`(?i)(?:[=<>(,]|\blike|\bin)\s*(?:\?|%s)|%\(\w+\)s`),
		`parameters are named: write :name, and pass {"name": value}`,
	},
	{
		regexp.MustCompile(`^syntax error at or near "[{$]`),
		nil,
		`parameters are named: write :name, and pass {"name": value}`,
	},
	{
		syntaxError,
		regexp.MustCompile(`(?i)\binterval\s+\d`),
		"write an interval as a text: now() - interval '30 days'",
	},
	{at("regexp|rlike"), nil, "write x ~ 'pattern', or x ~* 'pattern' whatever the case"},
	{at("separator"), nil, "write string_agg(x::text, ',')"},
	{at("row_number|rank|dense_rank"), regexp.MustCompile(`(?i)\bqualify\b`),
		"PostgreSQL has no QUALIFY: write the window function in a subquery, and the condition in WHERE around it"},
	{
		at("with"),
		regexp.MustCompile(`(?i)\bwith\s*\(\s*nolock`),
		"leave out WITH (NOLOCK): readers do not wait for writers",
	},
	{at("select"), regexp.MustCompile(`(?i)\bminus\s+select\b`), "write EXCEPT in place of MINUS"},
	{at(","), regexp.MustCompile(`(?i)\bextract\s*\(\s*\w+\s*,`), "write extract(week FROM x)"},
	{
		regexp.MustCompile(`^unterminated quoted string`),
		nil,
		"write a quote in a text twice, 'O''Brien', or pass the text as a parameter, :name",
	},
	{
		regexp.MustCompile(`(?i)at or near "(from|where|group|order|limit|having)"$`),
		regexp.MustCompile(`(?i),\s*(from|where|group|order|limit|having)\b`),
		"remove the comma before that word",
	},
	{
		regexp.MustCompile(`^operator does not exist: .*\[\]$`),
		regexp.MustCompile(`(?i)\bin\s*\(\s*:`),
		"compare with a list by = ANY(:name), not by IN (:name)",
	},
	{
		regexp.MustCompile(`^(function|operator) .*jsonb?(_\w+\(| \S+ ).*\[\]`),
		nil,
		"a list is an array; write :name::jsonb where it is JSON",
	},
	{
		regexp.MustCompile(`^(function|operator) .*is not unique`),
		regexp.MustCompile(`:\w`),
		"write the type behind the parameter: :name::text, or :name::text[] for a list",
	},
	{regexp.MustCompile(`^operator does not exist: .* == `), nil, "write = for equal"},
	{
		regexp.MustCompile(`^operator (does not exist|is not unique): (text|unknown|character).* \+ |\+ text$`),
		nil,
		"join texts by ||, not by +: 'a' || 'b'",
	},
	{regexp.MustCompile(`^collation "nocase"`), nil, "compare with ILIKE, or lower(x) = lower(y)"},
	{
		regexp.MustCompile(`^column "\w+" does not exist`),
		regexp.MustCompile(`(?i)\bconvert\s*\(\s*\w+\s*[,(]`),
		"write CAST(x AS type) for a conversion, such as CAST('5' AS int)",
	},
	{regexp.MustCompile(`^column "rownum" does not exist`), nil, "write LIMIT and a number at the end"},
	{regexp.MustCompile(`^column "(sysdate|systimestamp)" does not exist`), nil, "write now()"},
	{regexp.MustCompile(`^relation "dual" does not exist`), nil, "leave out FROM dual"},
	{regexp.MustCompile(`^values of type (un)?signed `), nil, "write bigint: CAST(x AS bigint)"},
	{regexp.MustCompile(`^values of type (small)?datetime2? `), nil, "write timestamp: CAST(x AS timestamp)"},
	{regexp.MustCompile(`^values of type (nvarchar|varchar2|string|clob|ntext) `), nil, "write text: CAST(x AS text)"},
	{
		regexp.MustCompile(`^operator does not exist: `),
		nil,
		"the operator does not take these types: cast one side to the type of the other, as in x::text",
	},
	{regexp.MustCompile(`^date/time field value out of range`), nil, "write dates as '2026-01-31'"},
}

var (
	syntaxError    = regexp.MustCompile(`^syntax error`)
	stringLiterals = regexp.MustCompile(`'[^']*'`)
)

// at matches the syntax error at one of these words, in any case.
func at(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)^syntax error at or near "(` + words + `)"$`)
}

// AddDialectHint replaces the hint of a refusal if the statement was written for another database.
// The server's own hints do not help then.
func AddDialectHint(r *sandbox.Refusal, sql string, cat *Catalog) {
	if found := atParameter.FindStringSubmatch(r.Message); found != nil && r.Position > 0 {
		r.Hint = parameterHint(found[1], sql, r.Position)
		return
	}
	bare := stringLiterals.ReplaceAllString(sql, "''")
	if strings.HasPrefix(r.Message, "syntax error") {
		if hint := backtickHint(bare, cat); hint != "" {
			r.Hint = hint
			return
		}
	}
	for _, h := range dialectHints {
		if (h.message == nil || h.message.MatchString(r.Message)) && (h.sql == nil || h.sql.MatchString(bare)) {
			r.Hint = h.hint
			return
		}
	}
	if name := QuotedName(r.Message); r.Reason == "unknown-column" && r.Nearest == "" &&
		strings.Contains(sql, `"`+name+`"`) {
		r.Hint = "write text in single quotes: '" + name + "'; " + r.Hint
	}
}

// atParameter matches the syntax error at a parameter.
var atParameter = regexp.MustCompile(`^syntax error at or near "(:[^"]+)"$`)

// parameterHint returns the hint for a parameter where the syntax has none. position is its character in the statement.
func parameterHint(parameter, sql string, position int) string {
	words := strings.Fields(sql[:byteOffset(sql, position)])
	before := ""
	if len(words) > 0 {
		before = strings.ToLower(words[len(words)-1])
	}
	switch {
	case before == "in":
		return "compare with a list by = ANY(" + parameter + "), not by IN"
	case policy.SQLTypes[before]:
		return "write the type behind the parameter: " + parameter + "::" + before
	}
	return "a parameter stands for a value: a name of a table or column, or a keyword, must be in the text"
}

// QuotedName returns the name that a server message quotes, without its table.
func QuotedName(message string) string {
	if _, rest, ok := strings.Cut(message, `"`); ok {
		name, _, _ := strings.Cut(rest, `"`)
		return name[strings.LastIndexByte(name, '.')+1:]
	}
	if rest, ok := strings.CutPrefix(message, "column "); ok {
		name, _, _ := strings.Cut(rest, " ")
		return name[strings.LastIndexByte(name, '.')+1:]
	}
	return ""
}
