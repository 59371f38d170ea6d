package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
	"glasshouse/service/run"
)

// StatementFields are the fields of a body with a statement.
type StatementFields struct {
	SQL        string         `json:"sql" minLength:"1" maxLength:"4000000" format:"sql" doc:"A SELECT"`
	Database   string         `json:"database,omitempty" doc:"A name of GET /databases; none: the default one"`
	Parameters sandbox.Object `json:"params,omitempty" doc:"The values of :name in the statement"`
}

// CellFields are the fields of a body with a cell of a result.
type CellFields struct {
	Row    int    `json:"row" minimum:"0" maximum:"1000000000" doc:"The row of the result, from 0"`
	Column string `json:"column" minLength:"1" maxLength:"200" doc:"The column of the result"`
}

// RowFields are the fields of a body with the values of a row.
type RowFields struct {
	Values sandbox.Object `json:"values" doc:"Values of columns, of tables (orders.id) or of the result"`
}

type whyCellInput struct {
	Body struct {
		StatementFields
		CellFields
	}
}

type whyCellOfInput struct {
	InExecution
	Number int `path:"n" minimum:"1" doc:"The number of the statement in queries, from 1"`
	Body   CellFields
}

type whyNotInput struct {
	Body struct {
		StatementFields
		RowFields
	}
}

type whyNotOfInput struct {
	InExecution
	Number int `path:"n" minimum:"1" doc:"The number of the statement in queries, from 1"`
	Body   RowFields
}

func (a *api) routeWhySQL(r *routes) {
	route(a, r, r.describe("POST", "/database/why", "whyCell", tagDatabase,
		"Run one read-only statement, and find the rows of tables behind a cell of its result",
		http.StatusForbidden), a.whyCell)
	route(a, r, r.describe("POST", "/executions/{id}/queries/{n}/why", "whyCellOfQuery", tagDatabase,
		"Find the rows of tables behind a cell of a statement of an execution, with its parameters and the data of now",
		http.StatusForbidden), a.whyCellOf)
	route(a, r, r.describe("POST", "/database/why-not", "whyNot", tagDatabase,
		"Run one read-only statement, and find the table, join, condition or group that loses a row",
		http.StatusForbidden), a.whyNot)
	route(a, r, r.describe("POST", "/executions/{id}/queries/{n}/why-not", "whyNotOfQuery", tagDatabase,
		"Find what loses a row in a statement of an execution, with its parameters and the data of now",
		http.StatusForbidden), a.whyNotOf)
}

// decodeObject returns the fields of an object, with numbers as json.Number: as float64, large integers would lose
// digits.
func (a *api) decodeObject(user string, object sandbox.Object) map[string]any {
	fields := map[string]any{}
	a.cpu.Compute(user, len(object), func() {
		decoder := json.NewDecoder(bytes.NewReader(object))
		decoder.UseNumber()
		_ = decoder.Decode(&fields) // it is an object, or nothing
	})
	return fields
}

func (a *api) statementOf(user string, f *StatementFields) run.Statement {
	return run.Statement{Database: f.Database, SQL: f.SQL, Parameters: a.decodeObject(user, f.Parameters)}
}

func (a *api) whyCell(ctx context.Context, caller sandbox.Key, in *whyCellInput) (*stages.Why, error) {
	cell := run.Cell{Row: in.Body.Row, Column: in.Body.Column}
	return a.runs.WhyCell(ctx, caller, a.statementOf(caller.User, &in.Body.StatementFields), cell)
}

func (a *api) whyCellOf(ctx context.Context, caller sandbox.Key, in *whyCellOfInput) (*stages.Why, error) {
	return a.runs.WhyCellOf(ctx, caller, in.ID, in.Number, run.Cell{Row: in.Body.Row, Column: in.Body.Column})
}

func (a *api) whyNot(ctx context.Context, caller sandbox.Key, in *whyNotInput) (*stages.WhyNot, error) {
	values := a.decodeObject(caller.User, in.Body.Values)
	return a.runs.WhyNot(ctx, caller, a.statementOf(caller.User, &in.Body.StatementFields), values)
}

func (a *api) whyNotOf(ctx context.Context, caller sandbox.Key, in *whyNotOfInput) (*stages.WhyNot, error) {
	return a.runs.WhyNotOf(ctx, caller, in.ID, in.Number, a.decodeObject(caller.User, in.Body.Values))
}
