package check

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// catalogVersionSQL returns a text that changes when the meaning of a name may change. It covers
// user-defined objects, whose identifiers begin at 16384, except temporary tables.
const catalogVersionSQL = `SELECT concat_ws(' ',
	(SELECT sum(hashint8(oid::int8) # hashtext(xmin::text)) FROM pg_proc WHERE oid >= 16384),
	(SELECT sum(hashint8(oid::int8) # hashtext(xmin::text)) FROM pg_operator WHERE oid >= 16384),
	(SELECT sum(hashint8(oid::int8) # hashtext(xmin::text)) FROM pg_type WHERE oid >= 16384 AND typnamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname LIKE 'pg\_%temp\_%')),
	(SELECT sum(hashint8(oid::int8) # hashtext(xmin::text)) FROM pg_cast WHERE oid >= 16384),
	(SELECT sum(hashint8(oid::int8) # hashtext(xmin::text)) FROM pg_policy WHERE oid >= 16384),
	(SELECT sum(hashint8(oid::int8) # hashtext(xmin::text)) FROM pg_constraint WHERE oid >= 16384
	 AND connamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname LIKE 'pg\_%temp\_%')),
	(SELECT sum(hashint8(oid::int8) # hashtext(xmin::text)) FROM pg_rewrite WHERE oid >= 16384),
	(SELECT sum(hashint8(oid::int8) # hashtext(xmin::text)) FROM pg_extension WHERE oid >= 16384),
	(SELECT sum(hashint8(oid::int8) # hashtext(xmin::text)) FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%'),
	(SELECT sum(hashint8(attrelid::int8) # hashtext(a.xmin::text)) FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
	 WHERE attrelid >= 16384 AND relkind IN ('r', 'v', 'm', 'p', 'f', 'c') AND relpersistence <> 't'),
	(SELECT sum(hashint8(oid::int8) # hashtext(xmin::text)) FROM pg_class WHERE oid >= 16384 AND relpersistence <> 't' AND relkind IN ('r', 'v', 'm', 'p', 'f')))`

// The owner of an extension can add own objects to it, so an object counts as part of it only if a superuser owns it.
const typesSQL = `SELECT t.oid, nspname, typname, typtype::text,
	CASE WHEN typowner IN (SELECT oid FROM pg_roles WHERE rolsuper) THEN coalesce(extname, '') ELSE '' END,
	CASE WHEN typtype = 'd' THEN typbasetype WHEN rngsubtype IS NOT NULL THEN rngsubtype WHEN typcategory = 'A' OR t.oid = 'record[]'::regtype THEN typelem ELSE 0 END,
	coalesce(rngcanonical <> 0 AND t.oid >= 16384, false), typrelid
	FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace LEFT JOIN pg_range r ON r.rngtypid = t.oid OR r.rngmultitypid = t.oid
	LEFT JOIN pg_depend d ON d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e' LEFT JOIN pg_extension e ON e.oid = d.refobjid
	WHERE nspname NOT LIKE 'pg\_toast%' AND nspname NOT LIKE 'pg\_temp%'`

// The last column tells that the body of a user-defined function may have names which the search path binds: it is kept
// as text, and the function sets no path. The functions behind an aggregate are not read. The column before it tells
// that the server analyses a body when it calls the function.
const functionsSQL = `SELECT p.oid, nspname, proname,
	CASE WHEN proowner IN (SELECT oid FROM pg_roles WHERE rolsuper) THEN coalesce(extname, '') ELSE '' END,
	proargtypes::text, coalesce((SELECT string_agg(a::text, ' ') FROM unnest(proallargtypes) a), ''),
	pronargdefaults::int,
	provariadic <> 0, prorettype, p.oid < 16384 AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'sql'),
	prolang NOT IN (SELECT oid FROM pg_language WHERE lanname IN ('internal', 'c')),
	p.oid >= 16384 AND (prokind = 'a' AND extname IS NULL
		OR prolang NOT IN (SELECT oid FROM pg_language WHERE lanname IN ('internal', 'c'))
		AND array_to_string(coalesce(proconfig, '{}'), ' ') !~ '\msearch_path='
		AND to_jsonb(p) ->> 'prosqlbody' IS NULL)
	FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
	LEFT JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e' LEFT JOIN pg_extension e ON e.oid = d.refobjid
	WHERE nspname NOT LIKE 'pg\_temp%'`

const operatorsSQL = `SELECT o.oid, nspname, oprname, oprleft, oprright, oprcode::oid
	FROM pg_operator o JOIN pg_namespace n ON n.oid = oprnamespace`

// The last column changes with what a statement may notice of a relation: columns, types, keys, and the query of a
// view. PostgreSQL's text of a view would lock the tables in it.
const relationsSQL = `SELECT c.oid, nspname, relname, relkind = 'v', relkind = 'm', relrowsecurity, reltype,
	coalesce(array_agg(attname::text ORDER BY attnum) FILTER (WHERE attname IS NOT NULL), '{}'), coalesce(string_agg(CASE WHEN atttypid >= 16384 THEN atttypid::text END, ' '), ''), coalesce(bool_or(attgenerated = 'v'), false),
	coalesce(string_agg(DISTINCT atttypid::text, ' '), ''),
	coalesce(bool_or(atttypid < 16384 AND format_type(atttypid, NULL) ~ '^reg'), false),
	coalesce(array_agg(attname::text ORDER BY attnum) FILTER (WHERE attname IS NOT NULL
		AND c.oid >= 16384 AND relkind <> 'c'
		AND has_column_privilege(c.oid, attnum, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE')), '{}'),
	CASE WHEN c.oid < 16384 OR relkind = 'c' THEN '' ELSE relkind::text || ' ' ||
		hashtextextended(concat(
			string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull), ',' ORDER BY attnum), ';',
			(SELECT string_agg(concat_ws(' ', contype, conkey, confrelid::regclass, confkey), ','
				ORDER BY contype, conkey, conname)
				FROM pg_constraint WHERE conrelid = c.oid AND contype IN ('p', 'u', 'f')), ';',
			(SELECT string_agg(ev_action::text, ',' ORDER BY rulename) FROM pg_rewrite WHERE ev_class = c.oid)), 0) END
	FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace LEFT JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped
	WHERE relkind IN ('r', 'v', 'm', 'p', 'f', 'c') AND nspname NOT LIKE 'pg\_temp%' AND nspname NOT LIKE 'pg\_toast%'
	GROUP BY 1, 2, 3, 4, 5, 6, 7, relkind`

const castsSQL = `SELECT castsource, casttarget, castfunc::oid, castcontext::text FROM pg_cast
	WHERE oid >= 16384 AND castmethod = 'f'`

// Catalog returns the catalog, loaded again if the database's has changed. The version is read at
// most once per second, and less often if reading it is slow. Without a database it returns nil.
// FaultUnavailable if the database cannot be reached or a column of Config.MaskColumns is missing.
func (c *Checker) Catalog(ctx context.Context) (*Catalog, error) {
	if c.pool == nil {
		return nil, nil
	}
	if cat, isFresh := c.loadedCatalog(); isFresh {
		return cat, nil
	}
	select { // a database that does not answer holds up each caller no longer than the caller's context
	case c.refreshing <- struct{}{}:
		defer func() { <-c.refreshing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	loaded, isFresh := c.loadedCatalog()
	if isFresh {
		return loaded, nil
	}
	began := time.Now()
	var stamp string
	err := pgx.BeginTxFunc(ctx, c.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		_, stamp, err = readVersion(ctx, tx)
		return err
	})
	if err != nil {
		return nil, Unavailable(c.name, err)
	}
	nextVersionCheck := time.Now().Add(max(time.Second, 20*time.Since(began)))
	if loaded != nil && loaded.version == stamp {
		c.setCatalog(loaded, nextVersionCheck)
		return loaded, nil
	}
	var cat *Catalog
	err = pgx.BeginTxFunc(
		ctx,
		c.pool,
		pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) (err error) {
			cat, err = c.loadCatalog(ctx, tx)
			if err == nil && c.readsTrees {
				err = cat.loadOwnViews(ctx, tx)
			}
			return err
		},
	)
	if err != nil {
		return nil, Unavailable(c.name, err)
	}
	c.setCatalog(cat, nextVersionCheck)
	return cat, nil
}

// readVersion returns the login's search path after pg_catalog, and a text that changes with the catalog. From then on
// the transaction has the path pg_catalog, so that its queries call no function of another schema.
func readVersion(ctx context.Context, tx pgx.Tx) (path []string, version string, err error) {
	const schemas = `SELECT pg_catalog.current_schemas(false)::pg_catalog.text[]`
	if err := tx.QueryRow(ctx, schemas).Scan(&path); err != nil {
		return nil, "", err
	}
	if _, err := tx.Exec(ctx, "SET LOCAL search_path = pg_catalog"); err != nil {
		return nil, "", err
	}
	err = tx.QueryRow(ctx, catalogVersionSQL).Scan(&version)
	version = fmt.Sprintf("%q %s", path, version)
	return slices.DeleteFunc(path, func(s string) bool { return s == "pg_catalog" }), version, err
}

// loadedCatalog returns the catalog that was loaded last; nil: none. isFresh reports that its version need not be
// compared yet.
func (c *Checker) loadedCatalog() (cat *Catalog, isFresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.catalog, c.catalog != nil && time.Now().Before(c.nextVersionCheck)
}

func (c *Checker) setCatalog(cat *Catalog, nextVersionCheck time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catalog, c.nextVersionCheck = cat, nextVersionCheck
}

// loadCatalog loads the catalog in one snapshot.
func (c *Checker) loadCatalog(ctx context.Context, tx pgx.Tx) (*Catalog, error) {
	cat := &Catalog{
		functions: map[string][]*function{}, operators: map[string][]*operator{}, types: map[string][]*Type{}, TypesByOID: map[uint32]*Type{}, relations: map[string][]*relation{},
		functionsByOID: map[uint32]*function{}, operatorsByOID: map[uint32]*operator{},
		relationsByOID: map[uint32]*relation{},
	}
	var err error
	if cat.searchPath, cat.version, err = readVersion(ctx, tx); err != nil {
		return nil, err
	}
	const server = `SELECT current_setting('server_version'), current_setting('server_encoding'),
		current_database()::text`
	var version, encoding, database string
	if err := tx.QueryRow(ctx, server).Scan(&version, &encoding, &database); err != nil {
		return nil, err
	}
	digits := strings.IndexFunc(version, func(c rune) bool { return c < '0' || c > '9' })
	if cat.serverVersion, err = strconv.Atoi(version[:max(digits, 0)]); err != nil {
		return nil, fmt.Errorf("the server's version %q is not a number: %w", version, err)
	}
	if encoding != "UTF8" { // the server could read other tokens than the parser, and other names than the catalog's
		return nil, &sandbox.Error{Fault: sandbox.FaultUnavailable, Detail: fmt.Sprintf("the database %s has the "+
			"encoding %s, and only databases in UTF8 are read: copy it into a database made with ENCODING UTF8",
			database, encoding)}
	}
	var t Type
	var kind string
	if err := forEachRow(ctx, tx, typesSQL, []any{&t.oid, &t.Schema, &t.Name, &kind, &t.extension, &t.Element, &t.hasCanonicalFunction, &t.relation}, func() {
		one := t
		one.Kind = kind[0]
		cat.types[t.Name] = append(cat.types[t.Name], &one)
		cat.TypesByOID[t.oid] = &one
	}); err != nil {
		return nil, err
	}
	allowed := map[uint32]bool{}
	var f function
	var isSQL bool
	var oid uint32
	var args, allArgs string
	if err := forEachRow(ctx, tx, functionsSQL, []any{
		&oid, &f.schema, &f.name, &f.extension, &args, &allArgs, &f.defaults, &f.isVariadic, &f.result, &isSQL,
		&f.hasBody, &f.usesPath,
	}, func() {
		one := f
		one.oid, one.args, one.rowTypes = oid, parseOIDs(args), parseOIDs(allArgs)
		one.allowed = cat.isAllowed(&one, c.allowedFunctions)
		one.castsArguments = isSQL && slices.ContainsFunc(one.args, cat.isPolymorphicType)
		one.usesPath = f.usesPath || f.schema == "pg_catalog" && cat.usesPath(&one)
		allowed[oid] = one.allowed
		cat.functionsByOID[oid] = &one
		cat.functions[f.name] = append(cat.functions[f.name], &one)
	}); err != nil {
		return nil, err
	}
	var left, right uint32
	var schema, name string
	var id uint32
	if err := forEachRow(ctx, tx, operatorsSQL, []any{&id, &schema, &name, &left, &right, &oid}, func() {
		ok := allowed[oid]
		if schema == "pg_catalog" {
			ok = policy.SQLOperators[name]["("+cat.typeName(left)+","+cat.typeName(right)+")"]
		}
		f := cat.functionsByOID[oid]
		one := &operator{schema, name, left, right, f, ok}
		cat.operators[name] = append(cat.operators[name], one)
		cat.operatorsByOID[id] = one
	}); err != nil {
		return nil, err
	}
	var rel relation
	var columns, readable []string
	var userTypes, types string
	if err := forEachRow(ctx, tx, relationsSQL, []any{
		&rel.oid, &rel.schema, &rel.name, &rel.isView, &rel.isMaterialized, &rel.hasRowPolicies, &rel.rowType, &columns,
		&userTypes, &rel.hasVirtualColumns, &types, &rel.hasNames, &readable, &rel.definition,
	}, func() {
		one := rel
		one.readable = readable
		one.columnTypes = parseOIDs(types)
		one.userTypes, one.columns, one.columnOrder = parseOIDs(userTypes), map[string]bool{}, columns
		for _, column := range one.columnOrder {
			one.columns[column] = true
		}
		if row := cat.TypesByOID[rel.rowType]; row != nil {
			row.members = one.userTypes
		}
		cat.relations[rel.name] = append(cat.relations[rel.name], &one)
		cat.relationsByOID[one.oid] = &one
	}); err != nil {
		return nil, err
	}
	if err := cat.loadKeywords(ctx, tx); err != nil {
		return nil, err
	}
	cat.addNames()
	if err := cat.loadMasks(ctx, tx, c.maskColumns, c.allowedViews); err != nil {
		return nil, err
	}
	var source, target uint32
	var context string
	return cat, forEachRow(ctx, tx, castsSQL, []any{&source, &target, &oid, &context}, func() {
		if s, t := cat.TypesByOID[source], cat.TypesByOID[target]; !allowed[oid] && s != nil && t != nil {
			cat.unlistedCasts = append(cat.unlistedCasts, cast{s, t, castContext(context[0])})
		}
	})
}

func forEachRow(ctx context.Context, tx pgx.Tx, sql string, into []any, take func(), args ...any) error {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		take()
		return nil
	})
	return err
}

func parseOIDs(s string) []uint32 {
	var out []uint32
	for word := range strings.FieldsSeq(s) {
		n, _ := strconv.ParseUint(word, 10, 32)
		out = append(out, uint32(n))
	}
	return out
}
