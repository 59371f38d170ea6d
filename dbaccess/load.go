package dbaccess

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/policy"
)

// stampSQL changes when anything does that a name may mean. It reads what users
// made, whose object identifiers begin at 16384, and nothing of temporary tables,
// which come and go.
const stampSQL = `SELECT concat_ws(' ', current_schemas(false)::text,
	(SELECT sum(hashint8(oid::int8) # hashint8(xmin::text::int8)) FROM pg_proc WHERE oid >= 16384),
	(SELECT sum(hashint8(oid::int8) # hashint8(xmin::text::int8)) FROM pg_operator WHERE oid >= 16384),
	(SELECT sum(hashint8(oid::int8) # hashint8(xmin::text::int8)) FROM pg_type WHERE oid >= 16384 AND typnamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname LIKE 'pg\_%temp\_%')),
	(SELECT sum(hashint8(oid::int8) # hashint8(xmin::text::int8)) FROM pg_cast WHERE oid >= 16384),
	(SELECT sum(hashint8(oid::int8) # hashint8(xmin::text::int8)) FROM pg_policy WHERE oid >= 16384),
	(SELECT sum(hashint8(oid::int8) # hashint8(xmin::text::int8)) FROM pg_constraint WHERE contypid >= 16384),
	(SELECT sum(hashint8(oid::int8) # hashint8(xmin::text::int8)) FROM pg_rewrite WHERE oid >= 16384),
	(SELECT sum(hashint8(oid::int8) # hashint8(xmin::text::int8)) FROM pg_extension WHERE oid >= 16384),
	(SELECT sum(hashint8(oid::int8) # hashint8(xmin::text::int8)) FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%'),
	(SELECT sum(hashint8(attrelid::int8) # hashint8(a.xmin::text::int8)) FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
	 WHERE attrelid >= 16384 AND relkind IN ('r', 'v', 'm', 'p', 'f', 'c') AND relpersistence <> 't'),
	(SELECT sum(hashint8(oid::int8) # hashint8(xmin::text::int8)) FROM pg_class WHERE oid >= 16384 AND relpersistence <> 't' AND relkind IN ('r', 'v', 'm', 'p', 'f')))`

const typesSQL = `SELECT t.oid, nspname, typname, typtype::text, coalesce(extname, ''), CASE WHEN typtype = 'd' THEN typbasetype WHEN rngsubtype IS NOT NULL THEN rngsubtype WHEN typcategory = 'A' OR t.oid = 'record[]'::regtype THEN typelem ELSE 0 END,
	coalesce(rngcanonical <> 0 AND t.oid >= 16384, false), typrelid
	FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace LEFT JOIN pg_range r ON r.rngtypid = t.oid OR r.rngmultitypid = t.oid
	LEFT JOIN pg_depend d ON d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e' LEFT JOIN pg_extension e ON e.oid = d.refobjid
	WHERE nspname NOT LIKE 'pg\_toast%' AND nspname NOT LIKE 'pg\_temp%'`

const functionsSQL = `SELECT p.oid, nspname, proname, coalesce(extname, ''), proargtypes::text, pronargdefaults::int, provariadic <> 0
	FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
	LEFT JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e' LEFT JOIN pg_extension e ON e.oid = d.refobjid
	WHERE nspname NOT LIKE 'pg\_temp%'`

const operatorsSQL = `SELECT nspname, oprname, oprleft, oprright, oprcode::oid FROM pg_operator o JOIN pg_namespace n ON n.oid = oprnamespace`

const relationsSQL = `SELECT c.oid, nspname, relname, relkind = 'v', relkind = 'm', relrowsecurity, reltype, coalesce(string_agg(attname, E'\n' ORDER BY attnum), ''), coalesce(string_agg(CASE WHEN atttypid >= 16384 THEN atttypid::text END, ' '), '')
	FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace LEFT JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped
	WHERE relkind IN ('r', 'v', 'm', 'p', 'f', 'c') AND nspname NOT LIKE 'pg\_temp%' AND nspname NOT LIKE 'pg\_toast%' GROUP BY 1, 2, 3, 4, 5, 6, 7`

const castsSQL = `SELECT castsource, casttarget, castfunc::oid, castcontext <> 'i' FROM pg_cast WHERE oid >= 16384 AND castmethod = 'f'`

// known returns the catalogue, read again where the database's has changed. That
// is asked at most once a second, and less often where asking is slow.
func (r *Reader) known(ctx context.Context) (*catalogue, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.catalogue != nil && time.Now().Before(r.askAgain) {
		return r.catalogue, nil
	}
	began := time.Now()
	var stamp string
	if err := r.pool.QueryRow(ctx, stampSQL).Scan(&stamp); err != nil {
		return nil, unavailable(err)
	}
	r.askAgain = time.Now().Add(max(time.Second, 20*time.Since(began)))
	if r.catalogue != nil && r.catalogue.stamp == stamp {
		return r.catalogue, nil
	}
	var c *catalogue
	err := pgx.BeginTxFunc(ctx, r.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		c, err = load(ctx, tx, r.listed, r.config.MaskColumns)
		return err
	})
	if err != nil {
		return nil, unavailable(err)
	}
	r.catalogue = c
	return c, nil
}

// load reads the catalogue, all in one snapshot.
func load(ctx context.Context, tx pgx.Tx, listed map[string]bool, masked []string) (*catalogue, error) {
	c := &catalogue{
		functions: map[string][]*function{}, operators: map[string][]*operator{}, types: map[string][]*typ{}, typeOf: map[uint32]*typ{}, relations: map[string][]*relation{},
		tables: map[string]bool{}, columns: map[string]bool{}, judged: map[string]string{},
		traced: map[*relation]*traced{},
	}
	if err := tx.QueryRow(ctx, stampSQL).Scan(&c.stamp); err != nil {
		return nil, err
	}
	if err := tx.QueryRow(ctx, `SELECT array_remove(current_schemas(false), 'pg_catalog')::text[]`).Scan(&c.path); err != nil {
		return nil, err
	}
	var t typ
	var kind string
	if err := each(ctx, tx, typesSQL, []any{&t.oid, &t.schema, &t.name, &kind, &t.extension, &t.of, &t.canonical, &t.relation}, func() {
		one := t
		one.kind = kind[0]
		c.types[t.name] = append(c.types[t.name], &one)
		c.typeOf[t.oid] = &one
	}); err != nil {
		return nil, err
	}
	allowed := map[uint32]bool{}
	var f function
	var oid uint32
	var args string
	if err := each(ctx, tx, functionsSQL, []any{&oid, &f.schema, &f.name, &f.extension, &args, &f.optional, &f.variadic}, func() {
		one := f
		one.args = numbers(args)
		one.allowed = c.allow(&one, listed)
		allowed[oid] = one.allowed
		c.functions[f.name] = append(c.functions[f.name], &one)
	}); err != nil {
		return nil, err
	}
	var left, right uint32
	var schema, name string
	if err := each(ctx, tx, operatorsSQL, []any{&schema, &name, &left, &right, &oid}, func() {
		ok := allowed[oid]
		if schema == "pg_catalog" {
			ok = policy.SQLOperators[name]["("+c.typeName(left)+","+c.typeName(right)+")"]
		}
		c.operators[name] = append(c.operators[name], &operator{schema, ok})
	}); err != nil {
		return nil, err
	}
	var rel relation
	var columns, userTypes string
	if err := each(ctx, tx, relationsSQL, []any{&rel.oid, &rel.schema, &rel.name, &rel.view, &rel.stored, &rel.policies, &rel.row, &columns, &userTypes}, func() {
		one := rel
		one.userTypes, one.columns, one.order = numbers(userTypes), map[string]bool{}, strings.Split(columns, "\n")
		user := rel.schema != "pg_catalog" && rel.schema != "information_schema"
		for _, column := range one.order {
			one.columns[column] = true
			if user {
				c.columns[column] = true
			}
		}
		if row := c.typeOf[rel.row]; row != nil {
			row.members = one.userTypes
			if row.kind == 'c' && row.relation == rel.oid && user {
				c.tables[rel.name] = true
			}
		}
		c.relations[rel.name] = append(c.relations[rel.name], &one)
	}); err != nil {
		return nil, err
	}
	if err := c.mask(ctx, tx, masked); err != nil {
		return nil, err
	}
	var source, target uint32
	var explicit bool
	return c, each(ctx, tx, castsSQL, []any{&source, &target, &oid, &explicit}, func() {
		if s, t := c.typeOf[source], c.typeOf[target]; !allowed[oid] && s != nil && t != nil {
			c.casts = append(c.casts, cast{s, t, explicit})
		}
	})
}

func each(ctx context.Context, tx pgx.Tx, sql string, into []any, take func(), args ...any) error {
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

func numbers(s string) []uint32 {
	var out []uint32
	for _, word := range strings.Fields(s) {
		n, _ := strconv.ParseUint(word, 10, 32)
		out = append(out, uint32(n))
	}
	return out
}
