package check

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess/nodetree"
	"glasshouse/policy"
	"glasshouse/sandbox"
)

// firstUserOID is the first identifier of an object that is not PostgreSQL's own.
const firstUserOID = 16384

// boundFunctions are functions of pg_catalog that the server binds for a syntax which the check allows: TABLESAMPLE, a
// setting of the list, WITH SEARCH, and the aggregates of SQL/JSON since PostgreSQL 16.
var boundFunctions = wordSet(`system bernoulli current_setting int8inc json_agg_strict jsonb_agg_strict
	json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict jsonb_object_agg_strict
	jsonb_object_agg_unique jsonb_object_agg_unique_strict`)

// ownViewsSQL returns the trees of PostgreSQL's own views, and whether a statement may read the view.
const ownViewsSQL = `SELECT c.oid, nspname = 'information_schema' OR relname = ANY ($1), ev_action::text
	FROM pg_rewrite JOIN pg_class c ON c.oid = ev_class JOIN pg_namespace n ON n.oid = relnamespace
	WHERE c.oid < 16384 AND relkind = 'v'`

// loadOwnViews reads the functions that each of PostgreSQL's own views calls which a statement may read, with those of
// the views in it.
func (cat *Catalog) loadOwnViews(ctx context.Context, tx pgx.Tx) error {
	views, readable := map[uint32]nodetree.Objects{}, map[uint32]bool{}
	var oid uint32
	var mayBeRead bool
	var tree string
	err := forEachRow(ctx, tx, ownViewsSQL, []any{&oid, &mayBeRead, &tree}, func() {
		views[oid], readable[oid] = nodetree.Read(tree), mayBeRead
	}, slices.Collect(maps.Keys(policy.SQLCatalogRelations)))
	if err != nil {
		return err
	}
	var add func(calls map[uint32]bool, view, outer uint32)
	add = func(calls map[uint32]bool, view, outer uint32) {
		for _, f := range views[view].Functions {
			calls[f] = true
		}
		for _, inner := range views[view].Relations {
			if inner != view && inner != outer {
				add(calls, inner, view)
			}
		}
	}
	cat.ownViews = map[uint32]map[uint32]bool{}
	for view, ok := range readable {
		if ok {
			cat.ownViews[view] = map[uint32]bool{}
			add(cat.ownViews[view], view, 0)
		}
	}
	return nil
}

// CheckTree judges the tree that the server made of a statement which the check allows (debug_print_rewritten). It
// refuses a function, and an owner's cast or operator, that is not allowed. hasBodies tells that the statement calls a
// function in SQL or a procedural language: while it runs, the server makes trees of its body, too. The catalog needs
// Config.ReadsTrees.
func (cat *Catalog) CheckTree(tree string) (hasBodies bool, no *sandbox.Refusal) {
	objects := nodetree.Read(tree)
	isInOwnView := map[uint32]bool{}
	for _, r := range objects.Relations {
		maps.Copy(isInOwnView, cat.ownViews[r])
	}
	for _, oid := range objects.Functions {
		f := cat.functionsByOID[oid]
		isBound := f != nil && f.schema == "pg_catalog" && boundFunctions[f.name]
		if !isInOwnView[oid] && !isBound && (f == nil || !f.allowed) {
			return false, cat.refuseBound(f)
		}
		hasBodies = hasBodies || f.hasBody
	}
	// PostgreSQL's own casts and operators are checked where the statement has them.
	for _, oid := range objects.Operators {
		if oid < firstUserOID {
			continue
		}
		o := cat.operatorsByOID[oid]
		if o == nil || !o.allowed || o.function == nil {
			var f *function
			if o != nil {
				f = o.function
			}
			return false, cat.refuseBound(f)
		}
		hasBodies = hasBodies || o.function.hasBody
	}
	for _, oid := range objects.Casts {
		f := cat.functionsByOID[oid]
		if oid >= firstUserOID && (f == nil || !f.allowed) {
			return false, cat.refuseBound(f)
		}
		hasBodies = hasBodies || f == nil || f.hasBody
	}
	return hasBodies, nil
}

// refuseBound refuses a function that only the server's tree shows. f is nil if it is newer than the catalog.
func (cat *Catalog) refuseBound(f *function) *sandbox.Refusal {
	name := "that was created a moment ago"
	if f != nil {
		name = fmt.Sprintf("%s.%s", f.schema, f.name)
	}
	no := sandbox.Refusef("function-not-allowed",
		"PostgreSQL would call a function %s for this statement, which is not on the list of allowed functions", name)
	no.Hint = "run the statement again if the database has just changed; else tell the operator: the check of the " +
		"text did not find this call"
	return no
}
