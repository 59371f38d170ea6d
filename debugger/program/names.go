package program

import (
	"regexp"
	"slices"
	"strings"
)

var (
	literalOrComment = regexp.MustCompile(`[fFrRbBuU]{0,2}('(\\.|[^'\\])*'|"(\\.|[^"\\])*")|#.*$`)
	nameNotAttribute = regexp.MustCompile(`(^|[^.\w])([A-Za-z_]\w*)`)
	fStringField     = regexp.MustCompile(`\{([^{}]*)\}`)

	// notVariables are keywords and common builtins.
	notVariables = map[string]bool{}
)

func init() {
	for word := range strings.FieldsSeq(`
		False None True and as assert async await break class continue def del elif else except finally for from
		global if import in is lambda nonlocal not or pass raise return try while with yield match case print len
		range str int float list dict set tuple sum min max abs sorted enumerate zip map filter isinstance type open`) {
		notVariables[word] = true
	}
}

// NamesIn returns the names in a line of code that may be variables, in order.
func NamesIn(line string) []string {
	line = literalOrComment.ReplaceAllStringFunc(line, func(literal string) string {
		if !strings.ContainsAny(literal[:1], "fF") {
			return " "
		}
		var fields []string
		for _, found := range fStringField.FindAllStringSubmatch(literal, -1) {
			fields = append(fields, found[1])
		}
		return " " + strings.Join(fields, " ") + " "
	})
	var out []string
	seen := map[string]bool{}
	for _, found := range nameNotAttribute.FindAllStringSubmatch(line, -1) {
		if name := found[2]; !notVariables[name] && !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// comprehensionFunctions are the functions that Python makes of comprehensions and generator expressions. Since Python
// 3.12, only a generator expression has one.
var comprehensionFunctions = []string{"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}

// IsComprehension reports whether Python has made a function of a comprehension or a generator expression.
func IsComprehension(function string) bool {
	return slices.Contains(comprehensionFunctions, function[strings.LastIndexByte(function, '.')+1:])
}

// LineThatSets returns the last line of a program that seems to set a variable, and its number, or 0.
func LineThatSets(code, name string) (number int64, line string) {
	for i, text := range Split(code) {
		if slices.Contains(guessedStatement(text, 0).Sets, name) {
			number, line = int64(i+1), strings.TrimSpace(text)
		}
	}
	return number, line
}
