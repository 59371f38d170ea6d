package check

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/dbaccess/nodetree"
)

// fingerprintChars is the length of a fingerprint: 64 bits as hex.
const fingerprintChars = 16

func fingerprintOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:fingerprintChars]
}

// schemaOf returns a fingerprint of relations by name: their columns, types and keys, and the definitions of views. It
// is "" if there are none but PostgreSQL's own.
func schemaOf(relations map[*relation]bool) string {
	var texts []string
	for r := range relations {
		if r.definition != "" {
			texts = append(texts, fmt.Sprintf("%q.%q %s", r.schema, r.name, r.definition))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	slices.Sort(texts)
	return fingerprintOf(strings.Join(texts, "\n"))
}

// clockFunctions return the time, or compute with the date of today, as age does with one argument.
var clockFunctions = wordSet(`now transaction_timestamp statement_timestamp clock_timestamp timeofday age
	pg_postmaster_start_time pg_conf_load_time`)

// clockLiterals stand for a time when they are cast to one.
var clockLiterals = wordSet("now today tomorrow yesterday")

// lastClockOp is the last of the operations of SQLValueFunction that return the time: from CURRENT_DATE to
// LOCALTIMESTAMP.
const lastClockOp = pg_query.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N

func mentionsClock(names map[string]bool) bool {
	for name := range clockFunctions {
		if names[name] {
			return true
		}
	}
	return false
}

// treeReadsClock reports whether a tree of the server calls a function that returns the time. The server numbers the
// operations of SQLValueFunction from 0, the parser from 1.
func (cat *Catalog) treeReadsClock(text string, objects nodetree.Objects) bool {
	for _, oid := range objects.Functions {
		if f := cat.functionsByOID[oid]; f != nil && f.schema == "pg_catalog" && clockFunctions[f.name] {
			return true
		}
	}
	for op := range int(lastClockOp) {
		if strings.Contains(text, fmt.Sprintf("{SQLVALUEFUNCTION :op %d ", op)) {
			return true
		}
	}
	return false
}
