package httpapi

import (
	"context"
	"net/http"

	"glasshouse/sandbox"
)

// TableView is the part of a table that a request asks for. It is exported because huma reads exported embedded fields
// only.
type TableView struct {
	Start  int      `query:"start" minimum:"0" doc:"The first row of the page, from 0"`
	Count  int      `query:"count" minimum:"1" maximum:"1000" default:"100" doc:"Rows of the page; there may be fewer"`
	Sort   string   `query:"sort" pattern:"^-?[0-9]{1,6}$" doc:"The number of a column from 0, behind - for descending"`
	Filter []string `query:"filter,explode" maxItems:"20" doc:"COLUMN:contains|eq|ne|lt|le|gt|ge|null|notnull:VALUE"`
	Column string   `query:"column" pattern:"^[0-9]{1,6}$" doc:"The number of a column: only its cells"`
	Whole  bool     `query:"whole" doc:"Long texts are whole"`
	Stats  string   `query:"stats" pattern:"^[0-9]{1,6}$" doc:"A column whose statistics are wanted in place of rows"`
}

func (v *TableView) view() (out sandbox.TableView, err error) {
	out = sandbox.TableView{Start: v.Start, Count: v.Count, Sort: v.Sort, Whole: v.Whole}
	for _, text := range v.Filter {
		f, err := sandbox.ParseTableFilter(text)
		if err != nil {
			return out, err
		}
		out.Filters = append(out.Filters, f)
	}
	out.Column, out.Stats = columnNumber(v.Column), columnNumber(v.Stats)
	return out, nil
}

// columnNumber returns a number that huma has checked; nil: none was given.
func columnNumber(text string) *int {
	if text == "" {
		return nil
	}
	n := 0
	for _, digit := range text {
		n = n*10 + int(digit-'0')
	}
	return &n
}

type variableRowsInput struct {
	InSandbox
	Name string `path:"name" doc:"Of a variable that is a DataFrame, a Series, an array, or a list of dicts"`
	TableView
}

type tableRowsInput struct {
	InExecution
	Number int `path:"number" minimum:"0" maximum:"1000000" doc:"The number of the output, or 0 for the last value"`
	TableView
}

type queryRowsInput struct {
	InExecution
	Number int `path:"n" minimum:"1" maximum:"1000000" doc:"Of the statement in the record, from 1"`
	TableView
}

type debugRowsInput struct {
	ID        string `path:"sid"`
	Reference int    `path:"reference" minimum:"1" maximum:"1000000" doc:"A variablesReference of the position"`
	TableView
}

// routeTables routes the operations that return rows of tables.
func (a *api) routeTables(r *routes) {
	route(a, r, r.describe("GET", "/sandbox/{id}/variables/{name}/rows", "getVariableRows", tagSandboxes,
		"Get rows of a table of a sandbox, without running the user's code", http.StatusConflict, http.StatusGone),
		a.getVariableRows)
	route(a, r, r.describe("GET", "/executions/{id}/tables/{number}/rows", "getTableRows", tagExecutions,
		"Get rows of a table that an execution returned or showed, while its sandbox still has it",
		http.StatusConflict, http.StatusGone), a.getTableRows)
	route(a, r, r.describe("GET", "/executions/{id}/queries/{n}/rows", "getQueryRows", tagExecutions,
		"Get rows that a statement of an ended execution returned, from the log of its inputs; "+
			"needs the rights of a replay",
		http.StatusForbidden, http.StatusConflict, http.StatusGone), a.getQueryRows)
	route(a, r, r.describe("GET", "/debug/sessions/{sid}/values/{reference}/rows", "getDebugRows", tagDebugger,
		"Get rows of a table of a program that is stopped", http.StatusForbidden, http.StatusConflict), a.getDebugRows)
}

func (a *api) getDebugRows(ctx context.Context, caller sandbox.Key, in *debugRowsInput) (*sandbox.TablePage, error) {
	view, err := in.view()
	if err != nil {
		return nil, err
	}
	session, err := a.debug.Session(caller, in.ID)
	if err != nil {
		return nil, err
	}
	page, err := session.Rows(ctx, in.Reference, view)
	if err != nil {
		return nil, sessionError(err)
	}
	return &page, nil
}

func (a *api) getVariableRows(
	ctx context.Context, caller sandbox.Key, in *variableRowsInput,
) (*sandbox.TablePage, error) {
	view, err := in.view()
	if err != nil {
		return nil, err
	}
	page, err := a.live.Rows(ctx, caller, in.ID, sandbox.TableRequest{Variable: in.Name, TableView: view})
	return &page, err
}

func (a *api) getTableRows(ctx context.Context, caller sandbox.Key, in *tableRowsInput) (*sandbox.TablePage, error) {
	view, err := in.view()
	if err != nil {
		return nil, err
	}
	e, err := a.records.Execution(ctx, caller, in.ID)
	if err != nil {
		return nil, err
	}
	page, err := a.live.Rows(ctx, caller, e.SandboxID, sandbox.TableRequest{
		Execution: e.ID, Number: in.Number, TableView: view,
	})
	if sandbox.FaultOf(err) == sandbox.FaultNotFound { // of an execution that the caller may read
		err = sandbox.Errorf(sandbox.FaultGone, "the sandbox of the execution has ended, and its variables with it")
	}
	return &page, err
}

func (a *api) getQueryRows(ctx context.Context, caller sandbox.Key, in *queryRowsInput) (*sandbox.TablePage, error) {
	view, err := in.view()
	if err != nil {
		return nil, err
	}
	if err := a.access.HoldLarge(ctx, caller.User); err != nil {
		return nil, err
	}
	page, err := a.runs.KeptRows(ctx, caller, in.ID, in.Number, view)
	return &page, err
}
