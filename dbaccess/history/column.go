package history

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// executionColumn is a column of the table executions, or an expression that lists show in addition to the columns.
type executionColumn struct {
	name     string               // "": an expression, which is only read
	kind     string               // its type in PostgreSQL
	isKept   bool                 // the row of the end does not replace the value of the beginning
	expr     string               // what lists read; "": they do not read the column
	field    func(r *row) any     // a pointer to its field, which has its value and which a read fills
	valuesOf func(rows []row) any // its values in many rows, as an array
	clean    func(r *row)         // makes its texts valid for PostgreSQL; nil: it has no text

	addFilter  func(f sandbox.ExecutionFilter, to *conditions) // nil: lists do not filter by the column
	isSearched bool                                            // no index finds its conditions in the order of a list
}

// column returns a column that lists do not read.
func column[T any](name, kind string, field func(r *row) *T) executionColumn {
	return executionColumn{
		name: name, kind: kind,
		field: func(r *row) any { return field(r) }, clean: cleaner(field),
		valuesOf: func(rows []row) any {
			values := make([]T, len(rows))
			for n := range rows {
				values[n] = *field(&rows[n])
			}
			return values
		},
	}
}

// listed returns c as a column that lists read.
func (c executionColumn) listed() executionColumn { return c.listedAs(c.name) }

// listedAs returns c as a column that lists read through an SQL expression.
func (c executionColumn) listedAs(expr string) executionColumn {
	c.expr = expr
	return c
}

// kept returns c as a column that the row of the end does not replace.
func (c executionColumn) kept() executionColumn {
	c.isKept = true
	return c
}

// filtered returns c as a column that lists filter by. value returns the value that it must have; "": any.
func (c executionColumn) filtered(value func(sandbox.ExecutionFilter) string) executionColumn {
	return c.filteredBy(func(f sandbox.ExecutionFilter, to *conditions) {
		if wanted := value(f); wanted != "" {
			to.add(c.name+" = ?", clean(wanted))
		}
	})
}

// filteredBy returns c as a column on which add adds conditions. An index has the column before created_at and id.
func (c executionColumn) filteredBy(add func(sandbox.ExecutionFilter, *conditions)) executionColumn {
	c.addFilter = add
	return c
}

// searched returns c as a column on which add adds conditions that only an index without an order can find.
func (c executionColumn) searched(add func(sandbox.ExecutionFilter, *conditions)) executionColumn {
	c.addFilter, c.isSearched = add, true
	return c
}

// textColumnNames are the columns in which a search for a text looks. An index has them all.
var textColumnNames = []string{"code", "error", "title", "output"}

// isBesidesWork is the condition for executions by which people look at the work of others. An index has it.
const isBesidesWork = "(kind = 'replay' OR is_explanation)"

// executionColumns has the columns of the table executions. All SQL that writes them, that reads more than one of them,
// and that selects the executions of a list is made of this table.
var executionColumns = []executionColumn{
	column("id", "text", func(r *row) *string { return &r.executionID }).kept().listed(),
	column("sandbox_id", "text", func(r *row) *string { return &r.sandboxID }).kept().listed().
		filtered(func(f sandbox.ExecutionFilter) string { return f.SandboxID }),
	column("owner", "text", func(r *row) *string { return &r.user }).kept().listed().
		filtered(func(f sandbox.ExecutionFilter) string { return f.User }),
	column("node", "text", func(r *row) *string { return &r.node }).kept(),
	column("kind", "text", func(r *row) *sandbox.Kind { return &r.summary.Kind }).kept().listed().
		filtered(func(f sandbox.ExecutionFilter) string { return string(f.Kind) }),
	column("status", "text", func(r *row) *sandbox.Status { return &r.summary.Status }).listed().
		filtered(func(f sandbox.ExecutionFilter) string { return string(f.Status) }),
	column("code", "text", func(r *row) *string { return &r.code }).kept().
		listedAs(fmt.Sprintf("left(code, %d)", sandbox.SummaryCodeChars)).
		searched(func(f sandbox.ExecutionFilter, to *conditions) { to.addText(f.Text, textColumnNames...) }),
	column("error", "text", func(r *row) **string { return &r.failure }).
		listedAs(fmt.Sprintf("left(error, %d)", sandbox.SummaryErrorChars)),
	column("seconds", "float8", func(r *row) *float64 { return &r.summary.ExecutionTime }).listed(),
	column("cpu_ms", "float8", func(r *row) *float64 { return &r.summary.CPUMS }).listed(),
	column("memory_mb", "float8", func(r *row) *float64 { return &r.summary.MemoryUsage }).listed(),
	column("query_count", "int", func(r *row) *int { return &r.summary.Queries }).listed(),
	column("rows_read", "bigint", func(r *row) *int64 { return &r.summary.RowsRead }).listed(),
	column("connection_count", "int", func(r *row) *int { return &r.summary.Connections }).listed(),
	column("artifact_count", "int", func(r *row) *int { return &r.summary.Artifacts }).listed(),
	column("created_at", "timestamptz", func(r *row) *time.Time { return &r.summary.CreatedAt }).kept().listed().
		filteredBy(func(f sandbox.ExecutionFilter, to *conditions) { to.addTimes("created_at", f.Since, f.Until) }),
	column("completed_at", "timestamptz", func(r *row) **time.Time { return &r.summary.CompletedAt }).listed(),
	column("expires_at", "timestamptz", func(r *row) **time.Time { return &r.expiresAt }).kept(),
	column("tags", "jsonb", func(r *row) *map[string]string { return &r.summary.Tags }).kept().listed().
		searched(func(f sandbox.ExecutionFilter, to *conditions) {
			for _, tag := range f.Tags {
				to.add("tags @> ?", map[string]string{clean(tag.Name): clean(tag.Value)})
			}
		}),
	column("title", "text", func(r *row) *string { return &r.summary.Title }).kept().listed(),
	column("output", "text", func(r *row) *string { return &r.output }),
	column("replay_of", "text", func(r *row) *string { return &r.summary.ReplayOf }).listed().
		filteredBy(func(f sandbox.ExecutionFilter, to *conditions) {
			if f.ReplayOf != "" {
				to.add("kind = 'replay' AND replay_of = ?", clean(f.ReplayOf))
			}
		}),
	column("is_explanation", "boolean", func(r *row) *bool { return &r.summary.IsExplanation }).kept().listed().
		filteredBy(func(f sandbox.ExecutionFilter, to *conditions) {
			if f.IsWork {
				to.clauses = append(to.clauses, "NOT "+isBesidesWork)
			}
		}),
	column("record", "bytea", func(r *row) *[]byte { return &r.record }),
	column("", "", func(r *row) *int64 { return &r.summary.CodeBytes }).listedAs("octet_length(code)"),
	column("", "", func(r *row) *int64 { return &r.summary.RecordedSteps }).listedAs(recordedSteps("id")),
}

// The SQL of the table executions. The row of an ended execution replaces that of the running one, and may be inserted
// again. The node that ran it may also replace the end that another node recorded in its place (Recover), and no other
// node may. The row of a running execution is ignored if the execution already has a row.
var (
	storedColumns = columnsThat(func(c executionColumn) bool { return c.name != "" })
	listedColumns = columnsThat(func(c executionColumn) bool { return c.expr != "" })
	textColumns   = columnsThat(func(c executionColumn) bool { return c.name != "" && c.clean != nil })

	upsertExecutions = insertInto + " SELECT * FROM unnest(" +
		joined(storedColumns, func(n int, c executionColumn) string { return fmt.Sprintf("$%d::%s[]", n+1, c.kind) }) +
		")" + replaceExecution

	// upsertExecution inserts one execution. For a large record it takes half as long as upsertExecutions.
	upsertExecution = insertInto + " VALUES (" +
		joined(storedColumns, func(n int, _ executionColumn) string { return fmt.Sprintf("$%d", n+1) }) +
		")" + replaceExecution

	selectExecution = "SELECT " + joined(storedColumns, nameOf) + " FROM executions WHERE id = $1"
	listExpressions = joined(listedColumns, func(_ int, c executionColumn) string { return c.expr })

	insertInto       = "INSERT INTO executions (" + joined(storedColumns, nameOf) + ")"
	replaceExecution = " ON CONFLICT (id) DO UPDATE SET " +
		joined(columnsThat(func(c executionColumn) bool { return c.name != "" && !c.isKept }),
			func(_ int, c executionColumn) string { return c.name + " = excluded." + c.name }) +
		" WHERE excluded.completed_at IS NOT NULL" +
		" AND (executions.completed_at IS NULL OR excluded.node = executions.node)"
)

func nameOf(_ int, c executionColumn) string { return c.name }

func columnsThat(match func(executionColumn) bool) (list []executionColumn) {
	for _, c := range executionColumns {
		if match(c) {
			list = append(list, c)
		}
	}
	return list
}

// joined returns the texts of columns, which have numbers from 0, with commas between them.
func joined(columns []executionColumn, text func(n int, c executionColumn) string) string {
	var texts []string
	for n, c := range columns {
		texts = append(texts, text(n, c))
	}
	return strings.Join(texts, ", ")
}

// fieldsOf returns pointers to the fields of columns, as arguments of a statement or of a scan.
func fieldsOf(columns []executionColumn, r *row) []any {
	fields := make([]any, len(columns))
	for n, c := range columns {
		fields[n] = c.field(r)
	}
	return fields
}

// addFilter adds the conditions of a filter, apart from its cursor, on the columns that are searched, or on the others.
func (c *conditions) addFilter(f sandbox.ExecutionFilter, isSearched bool) {
	for _, column := range executionColumns {
		if column.addFilter != nil && column.isSearched == isSearched {
			column.addFilter(f, c)
		}
	}
}

// cleaner returns a function that makes the texts of a field valid for PostgreSQL, which takes no U+0000. The function
// changes no text, pointer or map that the execution has. It is nil for fields without text.
func cleaner[T any](field func(r *row) *T) func(r *row) {
	switch field := any(field).(type) {
	case func(r *row) *string:
		return func(r *row) { *field(r) = clean(*field(r)) }
	case func(r *row) *sandbox.Kind:
		return func(r *row) { *field(r) = sandbox.Kind(clean(string(*field(r)))) }
	case func(r *row) *sandbox.Status:
		return func(r *row) { *field(r) = sandbox.Status(clean(string(*field(r)))) }
	case func(r *row) **string:
		return func(r *row) {
			if text := *field(r); text != nil {
				*field(r) = new(clean(*text))
			}
		}
	case func(r *row) *map[string]string:
		return func(r *row) {
			given := *field(r)
			if given == nil {
				return
			}
			cleaned := make(map[string]string, len(given))
			for name, value := range given {
				cleaned[clean(name)] = clean(value)
			}
			*field(r) = cleaned
		}
	}
	if reflect.TypeFor[T]().Kind() == reflect.String {
		panic(fmt.Sprintf("a column of type %s would not be cleaned", reflect.TypeFor[T]()))
	}
	return nil
}

// cleanColumns makes the texts in the columns of an execution valid for PostgreSQL.
func cleanColumns(r *row) {
	for _, c := range textColumns {
		c.clean(r)
	}
}

// queueExecutions queues one statement for all rows.
func queueExecutions(batch *pgx.Batch, rows []row) {
	values := make([]any, len(storedColumns))
	for n, c := range storedColumns {
		values[n] = c.valuesOf(rows)
	}
	batch.Queue(upsertExecutions, values...)
}

// scanSummary scans a row that has listExpressions.
func scanSummary(from pgx.CollectableRow) (sandbox.ExecutionSummary, error) {
	var r row
	err := from.Scan(fieldsOf(listedColumns, &r)...)
	e := r.summary
	e.ID, e.SandboxID, e.User, e.Code, e.Error = r.executionID, r.sandboxID, r.user, r.code, r.failure
	e.CreatedAt, e.CompletedAt = e.CreatedAt.UTC(), inUTC(e.CompletedAt)
	return e, err
}
