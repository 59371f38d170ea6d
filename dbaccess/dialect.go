package dbaccess

import (
	"regexp"
	"strings"

	"glasshouse/sandbox"
)

// dialectHint is how another database, or another driver, would have it.
type dialectHint struct {
	message, sql *regexp.Regexp // what the refusal and the statement look like; nil: anything
	hint         string
}

// habits are tried in this order.
var dialectHints = []dialectHint{
	{nil, regexp.MustCompile(`(?i)^\s*show\s+(tables|databases|schemas|columns)\b`), "db_tables() lists the tables, db_schema(table) their columns"},
	{syntaxError, regexp.MustCompile(`(?i)^\s*(describe|desc|pragma|\\d)\b`), "db_tables() lists the tables, db_schema(table) their columns"},
	{syntaxError, regexp.MustCompile(`(?i)^\s*(select|delete)\s+top\b`), "write LIMIT and a number at the end"},
	{regexp.MustCompile(`^LIMIT #,#`), nil, "write LIMIT count OFFSET skipped"},
	{syntaxError, regexp.MustCompile(`(?i)(?:[=<>(,]|\blike|\bin)\s*(?:\?|%s)|%\(\w+\)s`), `parameters are named: write :name, and pass {"name": value}`},
	{syntaxError, regexp.MustCompile("`"), `a name that needs quotes stands in double ones, "name", a text in single ones`},
	{regexp.MustCompile(`(?i)at or near "(from|where|group|order|limit|having)"$`), regexp.MustCompile(`(?i),\s*(from|where|group|order|limit|having)\b`), "there is a comma too many before that"},
	{regexp.MustCompile(`^operator does not exist: .*\[\]$`), regexp.MustCompile(`(?i)\bin\s*\(\s*:`), "a list is compared with = ANY(:name), not with IN (:name)"},
	{regexp.MustCompile(`^date/time field value out of range`), nil, "a date is written as '2026-01-31'"},
}

var (
	syntaxError    = regexp.MustCompile(`^syntax error`)
	stringLiterals = regexp.MustCompile(`'[^']*'`)
)

// addDialectHint gives a hint to who wrote a statement for another database: the server's own
// hints, where it has any, are about something else then.
func addDialectHint(r *sandbox.Refusal, sql string) {
	bare := stringLiterals.ReplaceAllString(sql, "''")
	for _, h := range dialectHints {
		if (h.message == nil || h.message.MatchString(r.Message)) && (h.sql == nil || h.sql.MatchString(bare)) {
			r.Hint = h.hint
			return
		}
	}
	if name := quotedName(r.Message); r.Reason == "unknown-column" && r.Nearest == "" && strings.Contains(sql, `"`+name+`"`) {
		r.Hint = "a text stands in single quotes: '" + name + "'; " + r.Hint
	}
}
