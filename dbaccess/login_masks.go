package dbaccess

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"glasshouse/dbaccess/check"
)

// LoginMasks says of each masked column who keeps its values from agents. The names are those of Config.MaskColumns, of
// columns with the same values, and of the outputs of views, each as "schema.table.column" and sorted.
type LoginMasks struct {
	ByPostgres []string // the login may not read the column
	ByService  []string // the login may, so the service alone masks it
}

// LoginMasks asks PostgreSQL which masked columns the login may not read.
func (r *Reader) LoginMasks(ctx context.Context) (m LoginMasks, err error) {
	cat, err := r.checker.Catalog(ctx)
	if err != nil {
		return m, err
	}
	origins := slices.Collect(maps.Keys(cat.MaskedColumns))
	relations, numbers := make([]int64, len(origins)), make([]int16, len(origins))
	for i, o := range origins {
		relations[i], numbers[i] = int64(o.Relation), int16(o.Column)
	}
	var name string
	var mayRead bool
	const query = `SELECT nspname || '.' || relname || '.' || attname, has_column_privilege(attrelid, attnum, 'SELECT')
		FROM unnest($1::int8[], $2::int2[]) m (rel, att) JOIN pg_attribute ON attrelid = rel::oid AND attnum = att
		JOIN pg_class c ON c.oid = attrelid AND relkind <> 'c' JOIN pg_namespace n ON n.oid = relnamespace ORDER BY 1`
	err = r.forEachRow(ctx, query, []any{&name, &mayRead}, func() {
		if mayRead {
			m.ByService = append(m.ByService, name)
		} else {
			m.ByPostgres = append(m.ByPostgres, name)
		}
	}, relations, numbers)
	return m, r.unavailable(err)
}

// String says which masks PostgreSQL enforces and which rest on the service; "": there are none.
func (m LoginMasks) String() string {
	var parts []string
	if len(m.ByPostgres) > 0 {
		parts = append(parts, "PostgreSQL itself keeps "+strings.Join(m.ByPostgres, ", ")+" from the login")
	}
	if len(m.ByService) > 0 {
		parts = append(parts, "only the service masks "+strings.Join(m.ByService, ", ")+
			" (`glasshouse role-sql --mask TABLE.COLUMN` prints how PostgreSQL refuses a column of a table, too)")
	}
	return strings.Join(parts, "; ")
}

// maskSQL returns SQL that lets a login read only the other columns of the tables with masked columns.
func maskSQL(role string, columns []string) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = quote(c)
	}
	found := strings.NewReplacer("$1", "ARRAY["+strings.Join(quoted, ", ")+"]", "$2", "current_schemas(false)").
		Replace(check.MaskedSQL)
	return fmt.Sprintf(`
-- The login reads the other columns only of the tables with masked columns, and of their partitions, parents and
-- children. It reads no column that such a table gets later: run this again then. A view shows what its owner may read.
DO $masks$
DECLARE
	found text[];
	masked text[];
	missing text;
	item record;
BEGIN
	SELECT array_agg(listed), array_agg(rel || ' ' || att) INTO found, masked FROM (%s) columns;
	SELECT l INTO missing FROM unnest(ARRAY[%s]) l WHERE l <> ALL (coalesce(found, '{}'));
	IF missing IS NOT NULL THEN
		RAISE EXCEPTION 'there is no column %%', missing;
	END IF;
	FOR item IN SELECT attrelid::regclass::text AS name, string_agg(quote_ident(attname), ', ' ORDER BY attnum)
			FILTER (WHERE attrelid || ' ' || attnum <> ALL (masked)) AS readable
		FROM pg_attribute JOIN pg_class c ON c.oid = attrelid AND relkind <> 'c'
		WHERE attnum > 0 AND NOT attisdropped GROUP BY attrelid
		HAVING bool_or(attrelid || ' ' || attnum = ANY (masked))
	LOOP
		EXECUTE format('REVOKE SELECT ON %%s FROM %%I', item.name, %[3]s);
		IF item.readable IS NOT NULL THEN
			EXECUTE format('GRANT SELECT (%%s) ON %%s TO %%I', item.readable, item.name, %[3]s);
		END IF;
	END LOOP;
END $masks$;
`, found, strings.Join(quoted, ", "), quote(role))
}

// quote returns a text as a literal of SQL.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
