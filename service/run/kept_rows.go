package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"glasshouse/sandbox"
	"glasshouse/sandbox/inputlog"
)

// KeptRows returns a part of the rows that a statement of an ended execution returned, from the log of its inputs.
// number is the statement's in the record, from 1. The caller needs the rights of a replay: KeptRows returns a
// *sandbox.Refusal for rows that the caller, or the execution's user, may not read today, FaultGone for rows that are
// not kept, and FaultNotFound for a statement that there is not.
func (s *Service) KeptRows(
	ctx context.Context, caller sandbox.Key, id string, number int, view sandbox.TableView,
) (page sandbox.TablePage, err error) {
	e, err := s.Records.Execution(ctx, caller, id)
	if err != nil {
		return page, err
	}
	if e.CompletedAt == nil {
		return page, sandbox.Errorf(sandbox.FaultBusy, "the execution runs: its rows are kept when it has ended")
	}
	if number < 1 || number > len(e.Queries) {
		return page, sandbox.Errorf(sandbox.FaultNotFound, "the execution has %d statements in its record, and no "+
			"statement %d", len(e.Queries), number)
	}
	if e.Replay != nil {
		return page, errIsReplay(&e)
	}
	log, err := s.loadInputs(ctx, &e)
	if err != nil {
		return page, err
	}
	index := slices.IndexFunc(log.Requests, func(r inputlog.Request) bool { return r.HasRows && r.Statement == number })
	if index < 0 {
		return page, sandbox.Errorf(sandbox.FaultGone, "no rows of this statement are kept")
	}
	logged := &log.Requests[index]
	if !logged.IsKept {
		return page, sandbox.Errorf(sandbox.FaultGone, "the rows of this statement are not kept: the log of a run has "+
			"at most %d MiB of rows, unless it has hashes only", inputlog.MaxBytes>>20)
	}
	if err := s.permitted(ctx, caller, e.User, logged); err != nil {
		return page, err
	}
	columns, data, err := logged.Rows()
	if err != nil {
		return page, fmt.Errorf("the rows of statement %d of execution %s: %w", number, e.ID, err)
	}
	if columns == nil {
		return page, sandbox.Errorf(sandbox.FaultGone, "the statement returned no rows")
	}
	return sandbox.ViewTable(pageColumns(columns, data), data, view)
}

// pageColumns describes the columns of a statement, and turns JSON texts in data into JSON.
func pageColumns(columns []sandbox.Column, data [][]any) []sandbox.PageColumn {
	out := make([]sandbox.PageColumn, len(columns))
	for n, c := range columns {
		out[n] = sandbox.PageColumn{Name: c.Name, Type: c.Type, Kind: pageKind(&c)}
		if c.Kind != "json" || c.Array || c.Masked {
			continue
		}
		for i, v := range data[n] {
			if text, ok := v.(string); ok {
				data[n][i] = json.RawMessage(text)
			}
		}
	}
	return out
}

func pageKind(c *sandbox.Column) string {
	switch {
	case c.Masked:
		return "text"
	case c.Array || c.Kind == "json":
		return "json"
	case c.Kind == "bool":
		return "bool"
	case c.Kind == "int" || c.Kind == "float" || c.Kind == "decimal":
		return "number"
	case c.Kind == "date" || c.Kind == "timedelta" || strings.HasPrefix(c.Kind, "time"):
		return "time"
	}
	return "text"
}
