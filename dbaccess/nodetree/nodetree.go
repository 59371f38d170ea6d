// Package nodetree reads the text form of PostgreSQL's trees: of expressions and queries that the server has stored
// (pg_rewrite.ev_action, pg_policy.polqual, pg_constraint.conbin), and of statements (debug_print_rewritten).
//
//	objects := nodetree.Read(text)
//	for _, oid := range objects.Functions { ... }
//
// In a tree every name is bound: it has the operators of CASE, NULLIF and USING, and the casts, which no text of SQL
// shows.
package nodetree

import (
	"strconv"
	"strings"
)

// Objects are the objects that a tree uses, by their identifiers and in the order of the tree. One may occur twice.
type Objects struct {
	Functions []uint32 // that are called by name, also aggregates, window functions and ways to sample a table
	Casts     []uint32 // functions of casts
	Operators []uint32
	Relations []uint32
	Types     []uint32 // to which values are converted, of constants, and that functions return
	LocksRows bool     // SELECT FOR UPDATE and its like
}

// Values of funcformat (CoercionForm in PostgreSQL's primnodes.h).
const (
	explicitCast = "1"
	implicitCast = "2"
)

// Read returns the objects of a tree. Its format is {NAME :field value ...}; a value is a word,
// a node, a list (...), or the bytes of a constant, length [ ... ]. Words escape spaces and brackets by a backslash.
func Read(text string) (objects Objects) {
	var field, function string // the field whose value comes next, and the value of the last funcid
	list := ""                 // the field of the list whose words come
	before := ""
	for word := range nodeWords(text) {
		objects.LocksRows = objects.LocksRows || before == "{" && word == "ROWMARKCLAUSE"
		before = word
		if field == "" && strings.HasPrefix(word, ":") { // a value may begin with a colon, too
			field, list = word[1:], ""
			continue
		}
		switch field {
		case "funcid":
			function = word
		case "funcformat":
			if word == explicitCast || word == implicitCast {
				objects.Casts = appendOID(objects.Casts, function)
			} else {
				objects.Functions = appendOID(objects.Functions, function)
			}
		case "aggfnoid", "winfnoid", "tsmhandler":
			objects.Functions = appendOID(objects.Functions, word)
		case "opno", "eqop", "sortop":
			objects.Operators = appendOID(objects.Operators, word)
		case "opnos", "funccoltypes", "coltypes":
			list = field
		case "relid":
			objects.Relations = appendOID(objects.Relations, word)
		case "resulttype", "funcresulttype", "opresulttype", "aggtype", "wintype", "consttype",
			"array_typeid", "row_typeid":
			objects.Types = appendOID(objects.Types, word)
		case "":
			if word == ")" {
				list = ""
			}
			switch list {
			case "opnos": // of a comparison of rows
				objects.Operators = appendOID(objects.Operators, word)
			case "funccoltypes", "coltypes": // of an item of FROM
				objects.Types = appendOID(objects.Types, word)
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

// endsWord has the bytes that end a word. A table is several times faster than a search in a text.
var endsWord = [256]bool{' ': true, '\n': true, '\t': true, '(': true, ')': true, '{': true, '}': true}

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
			for end < len(text) && !endsWord[text[end]] {
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
