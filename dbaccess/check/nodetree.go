package check

import (
	"strconv"
	"strings"
)

// treeObjects are the objects that a stored expression or query uses, by their identifiers. The server wrote it when a
// view, a policy or a domain was made, with every name bound: it has the operators of CASE, NULLIF and USING, and the
// casts, which the text of a definition does not show.
type treeObjects struct {
	functions []uint32 // that are called by name
	casts     []uint32 // functions of casts
	operators []uint32
	relations []uint32
	types     []uint32 // to which values are converted, and that functions return
	locksRows bool
}

// Values of funcformat (CoercionForm in PostgreSQL's primnodes.h).
const (
	explicitCast = "1"
	implicitCast = "2"
)

// readNodeTree returns the objects of a value of pg_node_tree. Its format is {NAME :field value ...}; a value is a word,
// a node, a list (...), or the bytes of a constant, length [ ... ]. Words escape spaces and brackets by a backslash.
func readNodeTree(text string) (objects treeObjects) {
	var field, function string // the field whose value comes next, and the value of the last funcid
	inOperators := false       // in the list of the operators of a comparison of rows
	before := ""
	for word := range nodeWords(text) {
		objects.locksRows = objects.locksRows || before == "{" && word == "ROWMARKCLAUSE"
		before = word
		if field == "" && strings.HasPrefix(word, ":") { // a value may begin with a colon, too
			field, inOperators = word[1:], false
			continue
		}
		switch field {
		case "funcid":
			function = word
		case "funcformat":
			if word == explicitCast || word == implicitCast {
				objects.casts = appendOID(objects.casts, function)
			} else {
				objects.functions = appendOID(objects.functions, function)
			}
		case "aggfnoid", "winfnoid", "tsmhandler":
			objects.functions = appendOID(objects.functions, word)
		case "opno", "eqop", "sortop":
			objects.operators = appendOID(objects.operators, word)
		case "opnos":
			inOperators = true
		case "relid":
			objects.relations = appendOID(objects.relations, word)
		case "resulttype", "funcresulttype", "consttype", "array_typeid", "row_typeid":
			objects.types = appendOID(objects.types, word)
		case "":
			if inOperators = inOperators && word != ")"; inOperators {
				objects.operators = appendOID(objects.operators, word)
			}
		}
		field = ""
	}
	return objects
}

// appendOID appends an identifier; 0 stands for none.
func appendOID(list []uint32, word string) []uint32 {
	if n, err := strconv.ParseUint(word, 10, 32); err == nil && n != 0 {
		list = append(list, uint32(n))
	}
	return list
}

// nodeWords yields the words and brackets of a node tree. An escaped word keeps its backslashes, so it is never taken
// for a bracket or a field.
func nodeWords(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for at := 0; at < len(text); {
			switch c := text[at]; c {
			case ' ', '\n', '\t':
				at++
				continue
			case '(', ')', '{', '}':
				if at++; !yield(string(c)) {
					return
				}
				continue
			}
			end := at
			for end < len(text) && !strings.ContainsRune(" \n\t(){}", rune(text[end])) {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(text))
			if !yield(text[at:end]) {
				return
			}
			at = end
		}
	}
}
