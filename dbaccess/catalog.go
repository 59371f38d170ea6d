package dbaccess

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"glasshouse/policy"
)

// catalogue is what the check knows of the live database: everything that a name
// in a statement may mean there. It is read whole, and again when the database's
// own catalogue has changed. A nil catalogue is the offline check: only
// pg_catalog, as policy lists it, exists.
type catalog struct {
	version       string   // changes when the database's catalogue does
	searchPath    []string // where names are looked up, after pg_catalog
	functions     map[string][]*function
	operators     map[string][]*operator
	types         map[string][]*pgType
	typesByOID    map[uint32]*pgType
	relations     map[string][]*relation
	unlistedCasts []cast          // whose function is not allowed
	tableNames    map[string]bool // names, to find the nearest
	columnNames   map[string]bool

	maskedColumns map[origin]bool // columns of tables

	mu                 sync.Mutex
	checkedDefinitions map[string]string            // of views, policies and domains: what they call, "" nothing
	tracedViews        map[*relation]*tracedColumns // of views: which of their columns are masked
}

type function struct {
	schema, name, extension string
	args                    []uint32
	defaults                int // arguments at the end that have defaults
	isVariadic              bool
	allowed                 bool
}

type operator struct {
	schema  string
	allowed bool
}

type pgType struct {
	oid                  uint32
	schema, name         string
	extension            string
	kind                 byte   // pg_type.typtype
	element              uint32 // a domain's base, an array's element, a range's subtype
	hasCanonicalFunction bool   // a range with a function of its own
	relation             uint32
	members              []uint32 // a composite's, as far as users defined them
}

type relation struct {
	oid, rowType   uint32
	schema, name   string
	isView         bool
	isMaterialized bool // a materialized view
	hasRowPolicies bool
	columns        map[string]bool
	columnOrder    []string        // of columns
	maskedColumns  map[string]bool // columns that the operator listed, or that hold the same
	readsMasked    bool            // it, or a relation that it reads, has a masked column
	userTypes      []uint32        // of columns
}

type cast struct {
	source, target *pgType
	isExplicit     bool
}

// allow says which functions may be called. Those of pg_catalog are listed by
// signature; users' own are the operator's to list: name, schema.name, or either
// with (argument,types).
func (cat *catalog) isAllowed(f *function, listed map[string]bool) bool {
	if f.schema == "pg_catalog" {
		return policy.SQLFunctions[f.name][cat.signature(f)]
	}
	if policy.SQLExtensions[f.extension] && !policy.SQLExtensionFunctions[f.name] {
		return true
	}
	if f.schema == "information_schema" {
		return false
	}
	full := f.schema + "." + f.name
	if listed[full] || listed[full+cat.signature(f)] {
		return true
	}
	return slices.Contains(cat.searchPath, f.schema) && (listed[f.name] || listed[f.name+cat.signature(f)])
}

func (cat *catalog) signature(f *function) string {
	names := make([]string, len(f.args))
	for i, oid := range f.args {
		names[i] = cat.typeName(oid)
	}
	return "(" + strings.Join(names, ",") + ")"
}

func (cat *catalog) typeName(oid uint32) string {
	if oid == 0 {
		return ""
	}
	if t := cat.typesByOID[oid]; t != nil {
		return t.name
	}
	return strconv.FormatUint(uint64(oid), 10)
}

// acceptsArgs says that the function can be called with so many arguments.
func (f *function) acceptsArgs(n int) bool {
	return n <= len(f.args) && n >= len(f.args)-f.defaults || f.isVariadic && n >= len(f.args)-1
}

// findInPath is what a name means: in the schema that it is qualified with, or in the
// first of pg_catalog and path that has it. Nil where there is none.
func findInPath[T any](among []*T, schema string, path []string, schemaOf func(*T) string) *T {
	order := []string{schema}
	if schema == "" {
		order = append([]string{"pg_catalog"}, path...)
	}
	for _, s := range order {
		for _, t := range among {
			if schemaOf(t) == s {
				return t
			}
		}
	}
	return nil
}
