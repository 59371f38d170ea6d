package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess/nodetree"
	"glasshouse/sandbox"
)

// Queries for what the server runs along with a statement, as trees (package nodetree): the definition of a view, the
// row policies and the virtual generated columns of a table, the default arguments of a function, and the checks of a
// domain.
const (
	viewTreeSQL  = `SELECT ev_action::text FROM pg_rewrite WHERE ev_class = $1::int8::oid AND rulename = '_RETURN'`
	tableTreeSQL = `SELECT polqual::text FROM pg_policy
		WHERE polrelid = $1::int8::oid AND polqual IS NOT NULL AND polcmd IN ('r', '*')
		UNION ALL SELECT adbin::text FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
		WHERE adrelid = $1::int8::oid AND attgenerated = 'v'`
	defaultsTreeSQL = `SELECT proargdefaults::text FROM pg_proc
		WHERE oid = $1::int8::oid AND proargdefaults IS NOT NULL`
	domainTreeSQL = `SELECT conbin::text FROM pg_constraint WHERE contypid = $1::int8::oid AND conbin IS NOT NULL`
)

// definition identifies a view, a table with policies or virtual columns, a function with default arguments, or a
// domain.
type definition struct {
	kind, name, sql string
	oid             uint32
}

// definitions returns the definitions that the statement uses.
func (w *walker) definitions() []definition {
	var out []definition
	makesValues := w.makesColumnValues()
	for r := range w.relations {
		out = append(out, r.definitions()...)
		for _, oid := range r.userTypes {
			out = append(out, w.catalog.domainsIn(w.catalog.TypesByOID[oid], makesValues, 0)...)
		}
	}
	for t := range w.usedTypes {
		out = append(out, t.definitions()...)
	}
	for oid, isArgument := range w.callTypes {
		out = append(out, w.catalog.domainsIn(w.catalog.TypesByOID[oid], isArgument || makesValues, 0)...)
	}
	for f := range w.calls {
		out = append(out, f.definitions()...)
	}
	return out
}

func (f *function) definitions() []definition {
	if f.defaults == 0 || f.schema == "pg_catalog" || f.extension != "" {
		return nil
	}
	return []definition{{"default argument of the function", f.schema + "." + f.name, defaultsTreeSQL, f.oid}}
}

func (r *relation) definitions() (out []definition) {
	if r.isView {
		out = append(out, definition{"view", r.schema + "." + r.name, viewTreeSQL, r.oid})
	}
	if r.hasRowPolicies || r.hasVirtualColumns {
		what := "table with the policy"
		if r.hasVirtualColumns {
			what = "table with computed columns"
		}
		out = append(out, definition{what, r.schema + "." + r.name, tableTreeSQL, r.oid})
	}
	return out
}

func (t *Type) definitions() []definition {
	if t.Kind != 'd' || t.Schema == "information_schema" {
		return nil
	}
	return []definition{{"domain", t.Schema + "." + t.Name, domainTreeSQL, t.oid}}
}

// makesColumnValues reports whether a value of a column's domain may come from another value of the statement, which
// evaluates the checks of the domain: from a literal that takes its type from the column (lag(email, 1, 'x')), or from
// a row's text or JSON.
func (w *walker) makesColumnValues() bool {
	if w.unifiesTypes {
		return true
	}
	for name := range w.mentionedNames {
		if rowBuilders[name] {
			return true
		}
	}
	for _, name := range w.shortNames {
		if len(w.fromItems[name]) > 0 { // a row as a whole
			return true
		}
	}
	return false
}

// makesJSON reports whether a function of pg_catalog turns values of any type to JSON. It calls their casts to json.
func (f *function) makesJSON(cat *Catalog) bool {
	return f.schema == "pg_catalog" && strings.Contains(f.name, "json") && slices.ContainsFunc(f.args,
		func(oid uint32) bool {
			return oid == 0 || cat.isPolymorphicType(oid) || slices.Contains(
				[]string{"any", "record"}, cat.typeName(oid))
		}) || f.name == "row_to_json"
}

// domainsIn returns the definitions of the domains in a type of a column, if a value of them may be made. A literal
// next to an array, a range or a row of a domain is read as one; next to the domain itself, as its base type.
func (cat *Catalog) domainsIn(t *Type, mayBeMade bool, depth int) (out []definition) {
	if t == nil || depth > maxTypeDepth {
		return nil
	}
	if mayBeMade {
		out = append(out, t.definitions()...)
	}
	if t.Element != 0 {
		out = append(out, cat.domainsIn(cat.TypesByOID[t.Element], mayBeMade || t.Kind != 'd', depth+1)...)
	}
	for _, m := range t.members {
		out = append(out, cat.domainsIn(cat.TypesByOID[m], true, depth+1)...)
	}
	return out
}

// isPolymorphic reports whether the function gives one of its arguments, or a new array, the type of another argument.
func (cat *Catalog) isPolymorphic(f *function) bool {
	n, takesArray := 0, false
	for _, oid := range f.args {
		if cat.isPolymorphicType(oid) {
			n++
			takesArray = takesArray || arrayTypes[cat.typeName(oid)]
		}
	}
	makesArray := !takesArray && arrayTypes[cat.typeName(f.result)]
	return n > 1 || n == 1 && (f.schema != "pg_catalog" || makesArray)
}

var arrayTypes = wordSet("anyarray anycompatiblearray")

func (cat *Catalog) isPolymorphicType(oid uint32) bool {
	name := cat.typeName(oid)
	return strings.HasPrefix(name, "any") && name != "any"
}

// rowBuilders are the functions of pg_catalog that construct rows of a type from JSON.
var rowBuilders = wordSet("jsonb_populate_record jsonb_populate_recordset json_populate_record json_populate_recordset")

// checkDefinitions refuses a statement whose views, policies or domains call a function that the
// statement itself may not call.
func (c *Checker) checkDefinitions(ctx context.Context, w *walker) error {
	for _, d := range w.definitions() {
		v, err := c.checkDefinition(ctx, w.catalog, d)
		if err != nil {
			return err
		}
		if v.refused != "" {
			return sandbox.Refusef("function-not-allowed", "the %s %s is refused: in it, %s", d.kind, d.name, v.refused)
		}
		w.keepsPath, w.readsClock = w.keepsPath || v.keepsPath, w.readsClock || v.readsClock
		maps.Copy(w.tables, v.relations)
	}
	return nil
}

// verdict is the outcome of checking a definition.
type verdict struct {
	refused    string // why; "": it is not
	keepsPath  bool   // it calls a function that needs the search path
	readsClock bool
	relations  map[*relation]bool // the tables and views that it reads, also through other views
}

// checkDefinition checks a definition and those in it, and caches the verdict.
func (c *Checker) checkDefinition(ctx context.Context, cat *Catalog, d definition) (v verdict, err error) {
	key := fmt.Sprint(d.kind, d.oid)
	if known, done := cat.checkedDefinitions.Load(key); done {
		return known.(verdict), nil
	}
	texts, err := c.readDefinition(ctx, d)
	if err != nil {
		return verdict{}, err
	}
	for _, text := range texts {
		objects := nodetree.Read(text)
		v.refused, v.keepsPath = cat.checkTree(objects, v.keepsPath)
		v.readsClock = v.readsClock || cat.treeReadsClock(text, objects)
		v.addRelations(cat, objects, d)
		for _, inner := range cat.definitionsIn(objects, d) {
			if v.refused != "" {
				break
			}
			in, err := c.checkDefinition(ctx, cat, inner) // no definition can be in itself
			if err != nil {
				return verdict{}, err
			}
			v.readsClock = v.readsClock || in.readsClock
			maps.Copy(v.relations, in.relations)
			if v.keepsPath = v.keepsPath || in.keepsPath; in.refused != "" {
				v.refused = fmt.Sprintf("the %s %s is refused: in it, %s", inner.kind, inner.name, in.refused)
			}
		}
		if v.refused != "" {
			break
		}
	}
	cat.checkedDefinitions.Store(key, v)
	return v, nil
}

// addRelations adds the relations of a tree of a definition. The query of a view names the view itself.
func (v *verdict) addRelations(cat *Catalog, objects nodetree.Objects, of definition) {
	if v.relations == nil {
		v.relations = map[*relation]bool{}
	}
	for _, oid := range objects.Relations {
		if r := cat.relationsByOID[oid]; r != nil && oid != of.oid && !r.isSystem() {
			v.relations[r] = true
		}
	}
}

func (r *relation) isSystem() bool {
	return r.schema == "pg_catalog" || r.schema == "information_schema"
}

// checkTree returns why a tree is refused, or "", and whether one of its functions needs the search path. The casts and
// operators of pg_catalog call functions that are not listed by name.
func (cat *Catalog) checkTree(objects nodetree.Objects, usesPath bool) (why string, keepsPath bool) {
	casts, makesJSON := false, false
	if objects.LocksRows {
		return "it locks rows", usesPath
	}
	for _, oid := range objects.Functions {
		f := cat.functionsByOID[oid]
		isSetting := f != nil && f.name == "current_setting" && f.schema == "pg_catalog" // the view's owner chose which
		if f == nil || !f.allowed && !isSetting {
			return cat.refusedFunction(f), usesPath
		}
		usesPath = usesPath || f.usesPath
		casts = casts || f.castsArguments
		makesJSON = makesJSON || f.makesJSON(cat)
	}
	for _, oid := range objects.Casts {
		if f := cat.functionsByOID[oid]; f == nil || !f.allowed && f.schema != "pg_catalog" {
			return cat.refusedFunction(f), usesPath
		}
	}
	for _, oid := range objects.Operators {
		o := cat.operatorsByOID[oid]
		if o == nil || !o.allowed {
			if o == nil {
				o = &operator{name: fmt.Sprint(oid)}
			}
			return refuseOperator(o.name).Message, usesPath
		}
		casts = casts || o.function != nil && o.function.castsArguments
	}
	for _, oid := range objects.Types {
		usesPath = usesPath || cat.isNameType(oid)
	}
	for _, oid := range objects.Relations {
		r := cat.relationsByOID[oid]
		usesPath = usesPath || r != nil && cat.printsNames(r)
	}
	// Which types the arguments have is not read from the tree.
	for _, c := range cat.unlistedCasts {
		if casts && c.target.Name == "text" || makesJSON && (c.target.Name == "json" || c.target.Name == "jsonb") {
			return refuseCast(c).Message, usesPath
		}
	}
	return "", usesPath
}

// printsNames reports whether values of a relation may be read or printed by the search path.
func (cat *Catalog) printsNames(r *relation) bool {
	if r.hasNames {
		return true
	}
	for _, oid := range r.userTypes {
		t := cat.TypesByOID[oid]
		for t != nil && t.Element != 0 {
			t = cat.TypesByOID[t.Element]
		}
		if t == nil {
			continue
		}
		row := cat.relationsByOID[t.relation]
		if cat.isNameType(t.oid) || row != nil && row.hasNames {
			return true
		}
	}
	return false
}

func (cat *Catalog) refusedFunction(f *function) string {
	if f == nil {
		return "a function is not in the catalog"
	}
	return refuseFunction(strings.TrimPrefix(f.schema+"."+f.name, "pg_catalog."), false).Message
}

// definitionsIn returns the definitions that the objects of a tree use. outer is the definition with this tree: the
// query of a view names the view itself.
func (cat *Catalog) definitionsIn(objects nodetree.Objects, outer definition) (out []definition) {
	for _, oid := range objects.Relations {
		if r := cat.relationsByOID[oid]; r != nil && oid != outer.oid {
			if !r.isSystem() {
				out = append(out, r.definitions()...)
			}
		}
	}
	for _, oid := range objects.Functions {
		if f := cat.functionsByOID[oid]; f != nil {
			out = append(out, f.definitions()...)
		}
	}
	seen := map[*Type]bool{}
	var add func(t *Type)
	add = func(t *Type) {
		if t == nil || seen[t] || t.Schema == "pg_catalog" && t.Element == 0 {
			return
		}
		seen[t] = true
		if t.oid != outer.oid {
			out = append(out, t.definitions()...)
		}
		add(cat.TypesByOID[t.Element])
		for _, m := range t.members {
			add(cat.TypesByOID[m])
		}
	}
	for _, oid := range objects.Types {
		add(cat.TypesByOID[oid])
	}
	return out
}

func (c *Checker) readDefinition(ctx context.Context, d definition) (texts []string, err error) {
	err = pgx.BeginTxFunc(ctx, c.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL search_path = pg_catalog"); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, d.sql, int64(d.oid))
		texts, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return texts, Unavailable(c.name, err)
}
