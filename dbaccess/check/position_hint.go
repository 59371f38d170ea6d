package check

import (
	"regexp"
	"strings"

	"glasshouse/sandbox"
)

// addPositionHint sets the hint of a refusal by the text at its position: what stands there in another database, with
// the statement's own names and values in what PostgreSQL has instead. cat may be nil.
func addPositionHint(no *sandbox.Refusal, sql string, cat *Catalog) (added bool) {
	if no.Position == 0 {
		return false
	}
	at := byteOffset(sql, no.Position)
	before, after := sql[:at], sql[at:]
	switch {
	case syntaxError.MatchString(no.Message):
		no.Hint = syntaxHint(before, after, cat)
	case limitComma.MatchString(no.Message):
		no.Hint = "write LIMIT count OFFSET skipped"
		if found := limitPair.FindStringSubmatch(sql); found != nil {
			no.Hint = "write LIMIT " + found[2] + " OFFSET " + found[1]
		}
	case no.Reason == "unknown-function":
		no.Hint = callHint(no.Hint, after)
	default:
		return false
	}
	return no.Hint != ""
}

var (
	limitComma   = regexp.MustCompile(`^LIMIT #,#`)
	limitPair    = regexp.MustCompile(`(?i)\blimit\s+([:\w]+)\s*,\s*([:\w]+)`)
	bracketName  = regexp.MustCompile(`^\[([^\[\]]+)\]`)
	afterTop     = regexp.MustCompile(`(?i)\b(?:select|delete)\s+(?:distinct\s+|all\s+)?top\s*$`)
	topCount     = regexp.MustCompile(`(?i)^([:\w]+)(\s+percent\b)?(\s+with\s+ties\b)?`)
	topCall      = regexp.MustCompile(`(?i)^top\s*\(\s*([:\w]+)\s*\)`)
	backtickName = regexp.MustCompile("`([^`]+)`")
)

// syntaxHint returns the hint for a syntax error between two parts of a statement, or "".
func syntaxHint(before, after string, cat *Catalog) string {
	if found := bracketName.FindStringSubmatch(after); found != nil {
		return "write the name as " + cat.written(found[1]) + ": PostgreSQL has no [brackets] around names"
	}
	if found := topCount.FindStringSubmatch(after); found != nil && afterTop.MatchString(before) {
		switch {
		case found[3] != "":
			return "write FETCH FIRST " + found[1] + " ROWS WITH TIES at the end, after ORDER BY"
		case found[2] != "":
			return "PostgreSQL has no percentage of rows: count them first, and write LIMIT and a number at the end"
		}
		return "write LIMIT " + found[1] + " at the end"
	}
	return ""
}

// backtickHint returns the hint for a statement that has names in backticks, or "".
func backtickHint(sql string, cat *Catalog) string {
	found := backtickName.FindStringSubmatch(sql)
	if found == nil {
		return ""
	}
	return `write names in double quotes, "name", or bare, and text in single quotes: here ` + cat.written(found[1])
}

// written returns how a statement writes a name of a table or column, whatever its case was in another database.
func (cat *Catalog) written(name string) string {
	lower := strings.ToLower(name)
	if cat != nil {
		for _, names := range []Names{cat.tableNames, cat.columnNames} {
			if written := names[lower]; written != "" {
				return written
			}
		}
	}
	if unquotedName.MatchString(lower) {
		return cat.Quote(lower)
	}
	return cat.Quote(name)
}

const insteadOfCall = "in PostgreSQL write "

// callTemplates has what replaces a call with so many arguments, where the order of arguments differs from the general
// hint's. x, y and z are the arguments.
var callTemplates = map[string]string{
	"dateadd/3":        "z + y * interval '1 x'",
	"timestampadd/3":   "z + y * interval '1 x'",
	"datediff/3":       "extract(epoch FROM z - y)",
	"datediff/day/3":   "z::date - y::date",
	"datepart/2":       "extract(x FROM y)",
	"charindex/2":      "strpos(y, x)",
	"locate/2":         "strpos(y, x)",
	"instr/2":          "strpos(x, y)",
	"add_months/2":     "x + y * interval '1 month'",
	"group_concat/2":   "string_agg(x::text, y)",
	"listagg/2":        "string_agg(x::text, y)",
	"regexp_extract/2": "substring(x FROM y)",
}

var (
	placeholder = regexp.MustCompile(`\b[xyz]\b`)
	callName    = regexp.MustCompile(`^"?(\w+)"?\s*\(`)
)

// callHint returns a hint for the call at the beginning of a text with its arguments in place of x, y and z.
func callHint(hint, text string) string {
	if found := topCall.FindStringSubmatch(text); found != nil {
		return "write LIMIT " + found[1] + " at the end"
	}
	found := callName.FindStringSubmatch(text)
	template, isKnown := strings.CutPrefix(hint, insteadOfCall)
	if found == nil || !isKnown {
		return hint
	}
	arguments := splitArguments(text[len(found[0]):])
	name := strings.ToLower(found[1])
	count := string(rune('0' + min(len(arguments), 9)))
	for _, key := range []string{name + "/" + strings.ToLower(strings.Join(arguments[:min(len(arguments), 1)], "")) +
		"/" + count, name + "/" + count} {
		if own := callTemplates[key]; own != "" {
			template = own
			break
		}
	}
	used := map[string]bool{}
	for _, letter := range placeholder.FindAllString(template, -1) {
		used[letter] = true
	}
	if len(used) == 0 || len(used) != len(arguments) && callTemplates[name+"/"+count] == "" {
		return hint
	}
	return insteadOfCall + placeholder.ReplaceAllStringFunc(template, func(letter string) string {
		return arguments[letter[0]-'x']
	})
}

// maxArgumentBytes bounds the arguments that a hint repeats.
const maxArgumentBytes = 200

// splitArguments returns the arguments of a call from the text after its parenthesis; nil if they are not complete, or
// too long for a hint.
func splitArguments(text string) (arguments []string) {
	depth, start := 0, 0
	var quote byte
	for i := 0; i < min(len(text), maxArgumentBytes); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(' || c == '[':
			depth++
		case (c == ')' || c == ']') && depth > 0:
			depth--
		case c == ')':
			if last := strings.TrimSpace(text[start:i]); last != "" || len(arguments) > 0 {
				arguments = append(arguments, last)
			}
			return arguments
		case c == ',' && depth == 0:
			arguments = append(arguments, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return nil
}
