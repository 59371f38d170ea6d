package check

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"glasshouse/policy"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// Catalog holds everything that a name in a statement can mean in the live database. It is loaded as
// a whole, and again when the database's catalog has changed. A nil catalog stands for a check
// without a database: only pg_catalog exists, as package policy lists it.
type Catalog struct {
	version       string   // changes with the database's catalog
	serverVersion int      // of PostgreSQL, such as 15
	searchPath    []string // where names are looked up, after pg_catalog
	functions     map[string][]*function
	operators     map[string][]*operator
	types         map[string][]*Type
	TypesByOID    map[uint32]*Type
	relations     map[string][]*relation

	functionsByOID map[uint32]*function
	operatorsByOID map[uint32]*operator
	relationsByOID map[uint32]*relation
	ownViews       map[uint32]map[uint32]bool // of CheckTree: the functions in PostgreSQL's views that may be read

	unlistedCasts []cast          // casts whose function is not allowed
	keywords      map[string]bool // of the server, without those that are names without quotes everywhere
	tableNames    Names           // that may be read, for suggestions
	columnNames   Names

	MaskedColumns map[Origin]bool

	checkedDefinitions sync.Map // of views, policies and domains: from kind and oid to verdict
}

type function struct {
	oid                     uint32
	schema, name, extension string
	args                    []uint32
	defaults                int // number of trailing arguments with defaults
	isVariadic              bool
	allowed                 bool
	result                  uint32
	rowTypes                []uint32 // of a function with OUT columns or TABLE: those of all arguments and columns
	castsArguments          bool     // of any type to text, which the server looks up while it runs
	usesPath                bool     // what it computes may depend on the search path
	hasBody                 bool     // in SQL or a procedural language
}

type operator struct {
	schema, name string
	left, right  uint32
	function     *function
	allowed      bool
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
	oid, rowType      uint32
	schema, name      string
	isView            bool
	isMaterialized    bool
	hasRowPolicies    bool
	hasVirtualColumns bool // generated when they are read, since PostgreSQL 18
	hasNames          bool // columns of regclass and the like
	columns           map[string]bool
	columnOrder       []string
	readable          []string        // columns that the login may read; of user-defined tables and views only
	maskedColumns     map[string]bool // listed by the operator, or made of such columns
	usesMask          bool            // it computes with or filters by a masked column, or is partitioned by one
	primaryKey        []string        // of a table with masked columns
	userTypes         []uint32        // user-defined types of columns
	columnTypes       []uint32        // types of all columns
	definition        string          // changes with its columns, types, keys or query; "" of PostgreSQL's own
}

type cast struct {
	source, target *Type
	context        castContext
}

// castContext is pg_cast.castcontext: where the server uses a cast that the statement does not name.
type castContext byte

const (
	castImplicit   castContext = 'i' // everywhere
	castAssignment castContext = 'a' // where a value gets a given type
)

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

// usesPath reports whether a function of pg_catalog may read names by the search path or print them by it. Values of
// the types reg... do, and so do functions that PostgreSQL documents as system information about names.
func (cat *Catalog) usesPath(f *function) bool {
	return slices.ContainsFunc(f.args, cat.isNameType) || cat.isNameType(f.result) ||
		strings.HasPrefix(f.name, "pg_get_") || strings.HasSuffix(f.name, "_is_visible") ||
		strings.HasPrefix(f.name, "has_") || strings.HasPrefix(f.name, "current_schema") || f.name == "format_type"
}

// isNameType reports whether a type is regclass or another whose values are read and printed as names.
func (cat *Catalog) isNameType(oid uint32) bool {
	t := cat.TypesByOID[oid]
	for t != nil && t.Element != 0 {
		t = cat.TypesByOID[t.Element]
	}
	return t != nil && t.Schema == "pg_catalog" && strings.HasPrefix(t.Name, "reg")
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

// takesInternal reports whether the first argument of the function has the pseudo-type internal.
func (cat *Catalog) takesInternal(f *function) bool {
	return len(f.args) > 0 && cat.typeName(f.args[0]) == "internal" && cat.TypesByOID[f.args[0]].Schema == "pg_catalog"
}

// findType returns the type that a name refers to: in the given schema or, if schema is "", in the first schema of the
// search path that has it. nil: there is none.
func (w *walker) findType(schema, name string) *Type {
	return findInPath(w, w.catalog.types[name], schema, func(t *Type) string { return t.Schema })
}

// findRelation returns the relation that a name refers to, in the same way.
func (w *walker) findRelation(n *pg_query.RangeVar) *relation {
	return findInPath(w, w.catalog.relations[n.Relname], n.Schemaname, func(r *relation) string { return r.schema })
}

// namesOf returns the names of relations, sorted: with the schema if the search path does not find them without it.
func (cat *Catalog) namesOf(relations map[*relation]bool) []string {
	if len(relations) == 0 { // also without a catalog
		return nil
	}
	var names []string
	w := &walker{catalog: cat, searchPath: cat.searchPath}
	for r := range relations {
		name := r.name
		if w.findRelation(&pg_query.RangeVar{Relname: name}) != r {
			name = r.schema + "." + name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func findInPath[T any](w *walker, among []*T, schema string, schemaOf func(*T) string) *T {
	order := []string{cmp.Or(schema, "pg_catalog")}
	if schema == "" {
		order = append(order, w.searchPath...)
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
