package check

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"glasshouse/policy"
)

// Catalog holds everything that a name in a statement can mean in the live database. It is loaded as
// a whole, and again when the database's catalog has changed. A nil catalog stands for a check
// without a database: only pg_catalog exists, as package policy lists it.
type Catalog struct {
	version       string   // changes with the database's catalog
	searchPath    []string // where names are looked up, after pg_catalog
	functions     map[string][]*function
	operators     map[string][]*operator
	types         map[string][]*Type
	TypesByOID    map[uint32]*Type
	relations     map[string][]*relation
	unlistedCasts []cast          // casts whose function is not allowed
	TableNames    map[string]bool // for suggestions
	ColumnNames   map[string]bool

	MaskedColumns map[Origin]bool

	mu                 sync.Mutex
	checkedDefinitions map[string]string            // of views, policies and domains: why they are refused, or ""
	tracedViews        map[*relation]*tracedColumns // which columns of a view are masked
}

type function struct {
	schema, name, extension string
	args                    []uint32
	defaults                int // number of trailing arguments with defaults
	isVariadic              bool
	allowed                 bool
}

type operator struct {
	schema  string
	allowed bool
}

type Type struct {
	oid                  uint32
	Schema, Name         string
	extension            string
	Kind                 byte   // pg_type.typtype
	Element              uint32 // base of a domain, element of an array, subtype of a range
	hasCanonicalFunction bool   // a user-defined range with a canonical function
	relation             uint32
	members              []uint32 // user-defined types of a composite type's columns
}

type relation struct {
	oid, rowType   uint32
	schema, name   string
	isView         bool
	isMaterialized bool
	hasRowPolicies bool
	columns        map[string]bool
	columnOrder    []string
	maskedColumns  map[string]bool // listed by the operator, or with the same values
	readsMasked    bool            // this relation, or one that it reads, has a masked column
	userTypes      []uint32        // user-defined types of columns
}

type cast struct {
	source, target *Type
	isExplicit     bool
}

// isAllowed reports whether a function may be called. Functions of pg_catalog are listed by
// signature. The operator lists user-defined ones: name or schema.name, optionally with
// (argument,types).
func (cat *Catalog) isAllowed(f *function, listed map[string]bool) bool {
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

func (cat *Catalog) signature(f *function) string {
	names := make([]string, len(f.args))
	for i, oid := range f.args {
		names[i] = cat.typeName(oid)
	}
	return "(" + strings.Join(names, ",") + ")"
}

func (cat *Catalog) typeName(oid uint32) string {
	if oid == 0 {
		return ""
	}
	if t := cat.TypesByOID[oid]; t != nil {
		return t.Name
	}
	return strconv.FormatUint(uint64(oid), 10)
}

// acceptsArgs reports whether the function can be called with n arguments.
func (f *function) acceptsArgs(n int) bool {
	return n <= len(f.args) && n >= len(f.args)-f.defaults || f.isVariadic && n >= len(f.args)-1
}

// findInPath returns the object that a name refers to: in the given schema, or in the first schema of
// pg_catalog and the path that has it. It returns nil if there is none.
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
