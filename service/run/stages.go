package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"glasshouse/sandbox"
	"glasshouse/sandbox/inputlog"
	"glasshouse/sandbox/stages"
	"glasshouse/service/database"
)

// stagesAnswer computes the stages of a statement, and keeps them.
type stagesAnswer struct {
	options stages.Options
	copy    sandbox.RowSink // also gets the rows of the statement; nil: nobody does
	out     *stages.Stages
}

func (a *stagesAnswer) compute(
	ctx context.Context, db *database.Database, sql string, params map[string]any, l sandbox.QueryLimits,
) (summary sandbox.QuerySummary, err error) {
	l.Copy = a.copy
	a.out, err = db.Reader.Stages(ctx, sql, params, l, a.options)
	if err != nil {
		return summary, err
	}
	a.out.Database = db.Name
	return sandbox.QuerySummary{
		Rows: int(a.out.Rows), Truncated: a.out.Truncated, Fingerprint: a.out.Fingerprint, Ran: a.out.Ran,
		Schema: a.out.Schema, ReadsClock: a.out.ReadsClock, Tables: a.out.Tables,
	}, nil
}

// Stages runs one statement as Query does, and returns the rows after each of its stages in place of its own. It counts
// as one statement, and is recorded as one. Its errors are those of Query, or that the statement has no stages.
func (s *Service) Stages(
	ctx context.Context, caller sandbox.Key, q Statement, o stages.Options,
) (*stages.Stages, error) {
	out, _, err := s.stages(ctx, caller, q, &stagesAnswer{options: o})
	return out, err
}

func (s *Service) stages(
	ctx context.Context, caller sandbox.Key, q Statement, answer *stagesAnswer,
) (out *stages.Stages, summary sandbox.QuerySummary, err error) {
	began := s.Clock()
	if summary, err = s.runStatement(ctx, caller, q, answer.compute, nil); err != nil {
		return nil, summary, err
	}
	answer.out.ComputedAt = began
	return answer.out, summary, nil
}

// StagesOf computes the stages of a statement of an execution that the caller may see, with the parameters that it had
// then and the data of now, and keeps them with the execution. number counts from 1.
func (s *Service) StagesOf(
	ctx context.Context, caller sandbox.Key, execution string, number int, o stages.Options,
) (*stages.Stages, error) {
	past, err := s.pastStatement(ctx, caller, execution, number)
	if err != nil {
		return nil, err
	}
	o.Name = past.name
	out, summary, err := s.stages(ctx, caller, past.Statement, &stagesAnswer{options: o, copy: past.copy()})
	if err != nil {
		return nil, past.explain(err)
	}
	out.SameResult, out.SchemaChanged = past.sameResult(&summary), past.schemaChanged(&summary)
	out.Text = out.Render(o)
	s.keepStages(ctx, past, out)
	return out, nil
}

// pastStatement is a statement of an execution with the parameters that it had.
type pastStatement struct {
	Statement
	execution *sandbox.Execution
	number    int
	name      string
	recorded  *sandbox.Query
	logged    *inputlog.Request  // nil: the log of its inputs is not there, or does not have it
	comparer  *inputlog.Comparer // nil: its rows are not kept
}

// pastStatement returns a statement of an execution that the caller may see. number counts from 1.
func (s *Service) pastStatement(
	ctx context.Context, caller sandbox.Key, execution string, number int,
) (*pastStatement, error) {
	e, err := s.Records.Execution(ctx, caller, execution)
	if err != nil {
		return nil, err
	}
	recorded, err := recordedStatement(&e, number)
	if err != nil {
		return nil, err
	}
	params, err := s.keptParameters(recorded)
	if err != nil {
		return nil, err
	}
	past := &pastStatement{
		Statement: Statement{Database: recorded.KnownDatabase(), SQL: recorded.SQL, Parameters: params},
		execution: &e, number: number, name: fmt.Sprintf("Query %d", number), recorded: recorded,
	}
	past.findRows(ctx, s)
	return past, nil
}

// recordedStatement returns a statement of an execution, or FaultNotFound. number counts from 1.
func recordedStatement(e *sandbox.Execution, number int) (*sandbox.Query, error) {
	if number < 1 || number > len(e.Queries) {
		return nil, sandbox.Errorf(sandbox.FaultNotFound,
			"the execution has %d statements on record, and no statement %d", len(e.Queries), number)
	}
	return &e.Queries[number-1], nil
}

// findRows finds the rows that the statement returned in the log of the execution's inputs, if they are there.
func (p *pastStatement) findRows(ctx context.Context, s *Service) {
	if p.recorded.Status != "ok" || p.execution.CompletedAt == nil {
		return
	}
	log, err := s.loadInputs(ctx, p.execution)
	if err != nil {
		return // to compare the rows is not worth an error
	}
	i := slices.IndexFunc(log.Requests, func(r inputlog.Request) bool { return r.HasRows && r.Statement == p.number })
	if i < 0 {
		return
	}
	if p.logged = &log.Requests[i]; !p.recorded.Truncated {
		p.comparer = p.logged.Comparer()
	}
}

// copy returns what takes the rows of now; nil: nothing does.
func (p *pastStatement) copy() sandbox.RowSink {
	if p.comparer == nil {
		return nil
	}
	return p.comparer.Add
}

// sameResult compares the result of now with the recorded one.
func (p *pastStatement) sameResult(now *sandbox.QuerySummary) string {
	if p.recorded.Status != "ok" || p.recorded.Truncated || now.Truncated {
		return stages.SameUnknown
	}
	other := stages.SameNo
	if now.ReadsClock {
		other = stages.SameNoClock
	}
	if now.Rows != p.recorded.Rows {
		return other
	}
	// Another text runs if other columns are masked today: then their values differ for that reason.
	if p.comparer == nil || inputlog.RanHash(now.Ran) != p.logged.Ran {
		return stages.SameUnknown
	}
	same, err := p.comparer.Compare()
	if err != nil {
		return stages.SameUnknown
	}
	switch same {
	case inputlog.Same:
		return stages.SameYes
	case inputlog.SameIfRounded:
		return stages.SameRounded
	case inputlog.OtherOrder:
		return stages.SameOtherOrder
	case inputlog.Other:
		return other
	}
	return stages.SameUnknown
}

// schemaChanged reports whether the tables of the statement are known to have other columns, types or keys today.
func (p *pastStatement) schemaChanged(now *sandbox.QuerySummary) bool {
	return p.logged != nil && p.logged.Ran != "" && p.logged.Schema != "" && now.Schema != p.logged.Schema
}

// missingNames are the reasons for which a statement is refused that has run, if its tables have changed.
var missingNames = []string{
	"unknown-table", "unknown-column", "unknown-function", "unknown-name", "ambiguous-name", "type-mismatch",
	"grouping",
}

// explain returns the refusal schema-changed for the error of a statement that has run and no longer can because of
// its tables. Other errors stay what they are.
func (p *pastStatement) explain(err error) error {
	no, isRefusal := errors.AsType[*sandbox.Refusal](err)
	if !isRefusal || p.recorded.Status != "ok" || !slices.Contains(missingNames, no.Reason) {
		return err
	}
	changed := *no
	changed.Reason = stages.ReasonSchemaChanged
	changed.Message = "the tables have changed since the statement ran: " + no.Message
	return &changed
}

// keptParameters returns the parameters of a statement on record.
func (s *Service) keptParameters(q *sandbox.Query) (map[string]any, error) {
	params := map[string]any{}
	if len(q.Parameters) == 0 {
		return params, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(q.Parameters))
	decoder.UseNumber() // as float64, large integers would lose digits
	if err := decoder.Decode(&params); err != nil {
		return nil, err
	}
	for name := range params {
		if slices.ContainsFunc(s.Mask, func(m string) bool { return m == "*" || strings.EqualFold(m, name) }) {
			no := sandbox.Refusef(stages.ReasonParametersNotKept,
				"the value of the parameter :%s is not on record", name)
			no.Hint = "send the statement with its parameters to POST /database/stages"
			return nil, no
		}
	}
	return params, nil
}
