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
type catalogue struct {
	stamp     string   // changes when the database's catalogue does
	path      []string // where names are looked up, after pg_catalog
	functions map[string][]*function
	operators map[string][]*operator
	types     map[string][]*typ
	typeOf    map[uint32]*typ
	relations map[string][]*relation
	casts     []cast          // whose function is not allowed
	tables    map[string]bool // names, to find the nearest
	columns   map[string]bool

	masked map[origin]bool // columns of tables

	mu     sync.Mutex
	judged map[string]string     // of views, policies and domains: what they call, "" nothing
	traced map[*relation]*traced // of views: which of their columns are masked
}

type function struct {
	schema, name, extension string
	args                    []uint32
	optional                int // arguments at the end that have defaults
	variadic                bool
	allowed                 bool
}

type operator struct {
	schema  string
	allowed bool
}

type typ struct {
	oid          uint32
	schema, name string
	extension    string
	kind         byte   // pg_type.typtype
	of           uint32 // a domain's base, an array's element, a range's subtype
	canonical    bool   // a range with a function of its own
	relation     uint32
	members      []uint32 // a composite's, as far as users defined them
}

type relation struct {
	oid, row     uint32
	schema, name string
	view         bool
	stored       bool // a materialized view
	policies     bool
	columns      map[string]bool
	order        []string        // of columns
	masked       map[string]bool // columns that the operator listed, or that hold the same
	tainted      bool            // it, or a relation that it reads, has a masked column
	userTypes    []uint32        // of columns
}

type cast struct {
	source, target *typ
	explicit       bool
}

// allow says which functions may be called. Those of pg_catalog are listed by
// signature; users' own are the operator's to list: name, schema.name, or either
// with (argument,types).
func (c *catalogue) allow(f *function, listed map[string]bool) bool {
	if f.schema == "pg_catalog" {
		return policy.SQLFunctions[f.name][c.signature(f)]
	}
	if policy.SQLExtensions[f.extension] && !policy.SQLExtensionFunctions[f.name] {
		return true
	}
	if f.schema == "information_schema" {
		return false
	}
	full := f.schema + "." + f.name
	if listed[full] || listed[full+c.signature(f)] {
		return true
	}
	return slices.Contains(c.path, f.schema) && (listed[f.name] || listed[f.name+c.signature(f)])
}

func (c *catalogue) signature(f *function) string {
	names := make([]string, len(f.args))
	for i, oid := range f.args {
		names[i] = c.typeName(oid)
	}
	return "(" + strings.Join(names, ",") + ")"
}

func (c *catalogue) typeName(oid uint32) string {
	if oid == 0 {
		return ""
	}
	if t := c.typeOf[oid]; t != nil {
		return t.name
	}
	return strconv.FormatUint(uint64(oid), 10)
}

// takes says that the function can be called with so many arguments.
func (f *function) takes(n int) bool {
	return n <= len(f.args) && n >= len(f.args)-f.optional || f.variadic && n >= len(f.args)-1
}

// find is what a name means: in the schema that it is qualified with, or in the
// first of pg_catalog and path that has it. Nil where there is none.
func find[T any](among []*T, schema string, path []string, schemaOf func(*T) string) *T {
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
