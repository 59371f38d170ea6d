package dbaccess

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/policy"
)

// catalogue is what the checker and the errors know of the live database. A nil
// catalogue knows nothing: that is the offline check.
type catalogue struct {
	at        time.Time
	functions map[string]bool // defined by users, in any schema
	operators map[string]bool
	types     map[string]bool // users' types that are not enums
	enums     map[string]bool
	builtins  map[string]bool // of pg_catalog
	columns   map[string]bool
	tables    map[string]bool
	allowed   map[string]bool // functions that the operator lists
}

const catalogueAge = 30 * time.Second

const catalogueSQL = `
SELECT 'f', proname FROM pg_proc WHERE pronamespace <> 'pg_catalog'::regnamespace AND pronamespace <> 'information_schema'::regnamespace
UNION SELECT 'b', proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
UNION SELECT 'o', oprname FROM pg_operator WHERE oprnamespace <> 'pg_catalog'::regnamespace
UNION SELECT CASE typtype WHEN 'e' THEN 'e' ELSE 't' END, typname FROM pg_type WHERE typnamespace <> 'pg_catalog'::regnamespace AND typnamespace <> 'information_schema'::regnamespace AND typtype IN ('e', 'd', 'b', 'r')
  AND typelem = 0
UNION SELECT 'c', attname FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE relnamespace <> 'pg_catalog'::regnamespace AND attnum > 0 AND relkind IN ('r', 'v', 'm', 'p', 'f')
UNION SELECT 'r', relname FROM pg_class WHERE relnamespace <> 'pg_catalog'::regnamespace AND relnamespace <> 'information_schema'::regnamespace AND relkind IN ('r', 'v', 'm', 'p', 'f')`

// known returns the catalogue, read again where it is old.
func (r *Reader) known(ctx context.Context) (*catalogue, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.catalogue != nil && time.Since(r.catalogue.at) < catalogueAge {
		return r.catalogue, nil
	}
	rows, err := r.pool.Query(ctx, catalogueSQL)
	if err != nil {
		return nil, unavailable(err)
	}
	c := &catalogue{at: time.Now(), functions: map[string]bool{}, operators: map[string]bool{}, types: map[string]bool{}, enums: map[string]bool{}, builtins: map[string]bool{}, columns: map[string]bool{}, tables: map[string]bool{}, allowed: map[string]bool{}}
	sets := map[string]map[string]bool{"f": c.functions, "o": c.operators, "t": c.types, "e": c.enums, "b": c.builtins, "c": c.columns, "r": c.tables}
	var kind, name string
	if _, err = pgx.ForEachRow(rows, []any{&kind, &name}, func() error {
		sets[kind][name] = true
		return nil
	}); err != nil {
		return nil, unavailable(err)
	}
	for _, f := range r.config.AllowFunctions {
		c.allowed[f] = true
	}
	r.catalogue = c
	return c, nil
}

func (c *catalogue) listed(name string) bool       { return c != nil && c.allowed[name] }
func (c *catalogue) userFunction(name string) bool { return c != nil && c.functions[name] }
func (c *catalogue) userOperator(name string) bool { return c != nil && c.operators[name] }
func (c *catalogue) userType(name string) bool     { return c != nil && c.types[name] }
func (c *catalogue) enum(name string) bool         { return c != nil && c.enums[name] && !c.types[name] }
func (c *catalogue) column(name string) bool       { return c != nil && c.columns[name] }

// builtin says whether name is a function of pg_catalog; offline, any name may be.
func (c *catalogue) builtin(name string) bool {
	return c != nil && c.builtins[name] || c == nil && len(name) > 3 && (name[:3] == "pg_" || name[:3] == "lo_") && !policy.SQLFunctions[name]
}
