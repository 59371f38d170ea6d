package check

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// No statement reads a masked column. Where a relation with masked columns is an item of FROM, the text that runs has a
// subquery that gives a constant in place of each masked column (mask_splice.go):
//
//	FROM users u  becomes  FROM (SELECT "u"."id", '***'::cstring AS "email" FROM "public"."users" AS "u") u
//
// A value of type cstring can be selected and passed on. PostgreSQL refuses to compare, sort, group or compute with it.
// What it allows would compute with the constant: it is refused where the text shows it (mask_use.go), and told with
// the answer where only PostgreSQL's tree shows it (mask_tree.go). Masked columns of a view are found in its tree
// (mask_view.go). The target of a statement that writes cannot be replaced and has rules of its own (mask_write.go).

// MaskValue stands for a value of a masked column.
const MaskValue = "***"

// MaskType is pg_type.oid of cstring, the type of MaskValue in a statement.
const MaskType = 2275

// Origin identifies a column of a relation, as the server reports it for an output column.
type Origin struct {
	Relation uint32
	Column   uint16
}

// MaskedSQL finds the listed columns, $1, and those with the same values: columns of parents and children, columns
// generated from them, and columns of a type that contains a row with them: the row type itself, and its arrays,
// domains, ranges and composite types, to any depth. Each row of the recursion is a column, or such a type. $2 has the
// schemas of tables without a schema. It returns the item of the list, the relation, and the number and the name of the
// column.
const MaskedSQL = `WITH RECURSIVE masked(listed, rel, att, type) AS (
	SELECT l, c.oid, attnum, 0::oid FROM unnest($1::text[]) l JOIN pg_attribute a ON NOT attisdropped AND attnum > 0 AND l LIKE '%.' || replace(replace(attname, '\', '\\'), '_', '\_')
	JOIN pg_class c ON c.oid = attrelid AND relkind IN ('r', 'v', 'm', 'p', 'f', 'c') JOIN pg_namespace n ON n.oid = relnamespace
	WHERE l = nspname || '.' || relname || '.' || attname OR l = relname || '.' || attname AND nspname = ANY ($2::text[])
	UNION SELECT listed, same.rel, same.att, same.type FROM masked m CROSS JOIN LATERAL (
		SELECT a.attrelid AS rel, a.attnum AS att, 0::oid AS type FROM pg_attribute mine JOIN pg_inherits i ON mine.attrelid IN (inhrelid, inhparent)
		JOIN pg_attribute a ON a.attrelid IN (inhrelid, inhparent) AND a.attname = mine.attname AND NOT a.attisdropped WHERE mine.attrelid = m.rel AND mine.attnum = m.att
		UNION ALL SELECT a.attrelid, a.attnum, 0 FROM pg_depend d
		JOIN pg_attribute a ON a.attrelid = d.objid AND a.attnum = d.objsubid
		WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND refobjid = m.rel
			AND refobjsubid = m.att AND attgenerated IN ('s', 'v')
		UNION ALL SELECT adrelid, adnum, 0 FROM pg_depend d JOIN pg_attrdef e ON e.oid = d.objid
		JOIN pg_attribute a ON a.attrelid = adrelid AND a.attnum = adnum
		WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass AND refobjid = m.rel
			AND refobjsubid = m.att AND attgenerated IN ('s', 'v')
		UNION ALL SELECT 0, 0::int2, t.oid FROM pg_type t WHERE t.typrelid = m.rel AND m.rel <> 0
		UNION ALL SELECT 0, 0::int2, t.oid FROM pg_type t WHERE m.type IN (t.typelem, t.typbasetype) AND m.type <> 0
		UNION ALL SELECT 0, 0::int2, unnest(ARRAY[r.rngtypid, r.rngmultitypid]) FROM pg_range r WHERE r.rngsubtype = m.type
		UNION ALL SELECT a.attrelid, a.attnum, 0 FROM pg_attribute a
		WHERE a.atttypid = m.type AND m.type <> 0 AND a.attnum > 0 AND NOT a.attisdropped) same)
	SELECT listed, rel, att, attname FROM masked JOIN pg_attribute ON attrelid = rel AND attnum = att`

// primaryKeysSQL returns the columns of the primary keys of relations. A deferrable one determines no other column.
const primaryKeysSQL = `SELECT conrelid, ARRAY(SELECT attname::text FROM pg_attribute
		WHERE attrelid = conrelid AND attnum = ANY (conkey))
	FROM pg_constraint WHERE contype = 'p' AND NOT condeferrable AND conrelid = ANY (SELECT unnest($1::int8[])::oid)`

// loadMasks marks the columns that are masked. A column of the list that does not exist is an error, because its values
// may be visible under another name.
func (cat *Catalog) loadMasks(ctx context.Context, tx pgx.Tx, columns []string, views map[string]bool) error {
	if len(columns) == 0 {
		return nil
	}
	cat.MaskedColumns = map[Origin]bool{}
	found := map[string]bool{}
	var relations []int64
	var name, column string
	var o Origin
	var att int16
	if err := forEachRow(ctx, tx, MaskedSQL, []any{&name, &o.Relation, &att, &column}, func() {
		o.Column, found[name] = uint16(att), true
		relations = append(relations, int64(o.Relation))
		cat.mask(cat.relationsByOID[o.Relation], o, column)
	}, columns, cat.searchPath); err != nil {
		return err
	}
	for _, name := range columns {
		if !found[name] {
			return &sandbox.Error{
				Fault: sandbox.FaultUnavailable,
				Detail: fmt.Sprintf("the masked column %s (--mask-columns) does not exist in the database; no "+
					"statement runs until the list is correct", name),
			}
		}
	}
	var oid uint32
	var key []string
	if err := forEachRow(ctx, tx, primaryKeysSQL, []any{&oid, &key}, func() {
		if r := cat.relationsByOID[oid]; r != nil {
			r.primaryKey = key
		}
		key = nil // the next row needs its own memory
	}, relations); err != nil {
		return err
	}
	if err := cat.refusePartitions(ctx, tx, relations, views); err != nil {
		return err
	}
	return cat.maskViews(ctx, tx, relations, views)
}

// mask marks a column. r is nil for a relation that no statement may name.
func (cat *Catalog) mask(r *relation, o Origin, column string) {
	cat.MaskedColumns[o] = true
	if r == nil {
		return
	}
	if r.maskedColumns == nil {
		r.maskedColumns = map[string]bool{}
	}
	r.maskedColumns[column] = true
}

// MarkMasked sets Masked on the columns of tables, by the identifiers of their relations.
func (cat *Catalog) MarkMasked(tables map[int64]*sandbox.Table) {
	for oid, table := range tables {
		r := cat.relationsByOID[uint32(oid)]
		for i := range table.Columns {
			c := &table.Columns[i]
			c.Masked = r != nil && (r.maskedColumns[c.Name] || r.usesMask)
		}
	}
}
