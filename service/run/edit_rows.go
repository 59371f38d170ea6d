package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"glasshouse/sandbox"
	"glasshouse/sandbox/inputlog"
)

// editedStatement is a statement that returns other rows, with the columns and the types of the rows that an execution
// got. PostgreSQL converts the values.
type editedStatement struct {
	sql    string
	params map[string]any
}

// editedStatements returns the statements for edits of rows, by the numbers of those that they replace. An error is
// FaultInvalid.
func editedStatements(log *inputlog.Log, edits []RowEdit) (map[int]editedStatement, error) {
	out := map[int]editedStatement{}
	for n, edit := range edits {
		field := fmt.Sprintf("edits[%d]", n)
		if _, isEdited := out[edit.Statement]; isEdited {
			return nil, invalidEdit(field, "statement %d has two edits; send one", edit.Statement)
		}
		index := slices.IndexFunc(log.Requests, func(r inputlog.Request) bool {
			return r.HasRows && r.Statement == edit.Statement
		})
		if index < 0 {
			return nil, invalidEdit(field, "the log has no rows of statement %d", edit.Statement)
		}
		columns, err := log.Requests[index].Columns()
		if err != nil {
			return nil, err
		}
		if len(columns) == 0 {
			return nil, invalidEdit(field, "the columns of statement %d are not kept, or it returned no rows",
				edit.Statement)
		}
		if out[edit.Statement], err = statementOf(field, columns, edit.Rows); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func invalidEdit(field, format string, args ...any) error {
	return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: field, Detail: fmt.Sprintf(format, args...)}
}

// statementOf returns the statement that returns rows, a list of objects.
func statementOf(field string, columns []sandbox.Column, rows json.RawMessage) (out editedStatement, err error) {
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(rows, &list); err != nil {
		return out, invalidEdit(field, "rows must be a list of objects")
	}
	var names, definitions []string
	for _, c := range columns {
		names = append(names, c.Name)
		kind := c.Type
		if c.Masked {
			kind = "text"
		}
		definitions = append(definitions, `"`+strings.ReplaceAll(c.Name, `"`, `""`)+`" `+kind)
	}
	for n, row := range list {
		for name := range row {
			if !slices.Contains(names, name) {
				return out, invalidEdit(field, "row %d has the column %.80q; the statement returned %s", n+1, name,
					strings.Join(names, ", "))
			}
		}
	}
	var text bytes.Buffer
	if err := json.Compact(&text, rows); err != nil {
		return out, err
	}
	return editedStatement{
		sql: "SELECT * FROM jsonb_to_recordset(:rows::jsonb) AS edited(" + strings.Join(definitions, ", ") +
			")",
		params: map[string]any{"rows": text.String()},
	}, nil
}
