package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
	"glasshouse/service/database"
)

// stagesAnswer computes the stages of a statement, and keeps them.
type stagesAnswer struct {
	options  stages.Options
	isOfCode bool // an input log needs the text that PostgreSQL ran, which has the masks
	out      *stages.Stages
}

func (a *stagesAnswer) compute(
	ctx context.Context, db *database.Database, sql string, params map[string]any, l sandbox.QueryLimits,
) (summary sandbox.QuerySummary, err error) {
	a.out, err = db.Reader.Stages(ctx, sql, params, l, a.options)
	if err == nil {
		a.out.Database = db.Name
		summary.Rows, summary.Truncated, summary.Fingerprint = int(a.out.Rows), a.out.Truncated, a.out.Fingerprint
	}
	if err == nil && a.isOfCode {
		summary.Ran, err = db.Reader.Permit(ctx, sql, slices.Sorted(maps.Keys(params)), l)
	}
	return summary, err
}

// Stages runs one statement as Query does, and returns the rows after each of its stages in place of its own. It counts
// as one statement, and is recorded as one. Its errors are those of Query, or that the statement has no stages.
func (s *Service) Stages(
	ctx context.Context, caller sandbox.Key, q Statement, o stages.Options,
) (*stages.Stages, error) {
	answer := &stagesAnswer{options: o}
	if _, err := s.runStatement(ctx, caller, q, answer.compute, nil); err != nil {
		return nil, err
	}
	return answer.out, nil
}

// StagesOf computes the stages of a statement of an execution that the caller may see, with the parameters that it had
// then and the data of now. number counts from 1.
func (s *Service) StagesOf(
	ctx context.Context, caller sandbox.Key, execution string, number int, o stages.Options,
) (*stages.Stages, error) {
	past, err := s.pastStatement(ctx, caller, execution, number)
	if err != nil {
		return nil, err
	}
	o.Name = past.name
	out, err := s.Stages(ctx, caller, past.Statement, o)
	if err != nil {
		return nil, err
	}
	out.SameResult = past.sameResult(int(out.Rows), out.Truncated)
	out.Text = out.Render(o)
	return out, nil
}

// pastStatement is a statement of an execution with the parameters that it had.
type pastStatement struct {
	Statement
	name     string
	recorded sandbox.Query
}

// pastStatement returns a statement of an execution that the caller may see. number counts from 1.
func (s *Service) pastStatement(
	ctx context.Context, caller sandbox.Key, execution string, number int,
) (*pastStatement, error) {
	e, err := s.Records.Execution(ctx, caller, execution)
	if err != nil {
		return nil, err
	}
	if number < 1 || number > len(e.Queries) {
		return nil, sandbox.Errorf(sandbox.FaultNotFound,
			"the execution has %d statements on record, and no statement %d", len(e.Queries), number)
	}
	recorded := e.Queries[number-1]
	params, err := s.keptParameters(&recorded)
	if err != nil {
		return nil, err
	}
	return &pastStatement{
		Statement: Statement{Database: recorded.KnownDatabase(), SQL: recorded.SQL, Parameters: params},
		name:      fmt.Sprintf("Query %d", number), recorded: recorded,
	}, nil
}

// sameResult compares the result of now with the recorded one.
func (p *pastStatement) sameResult(rows int, isTruncated bool) string {
	isComparable := p.recorded.Status == "ok" && !p.recorded.Truncated && !isTruncated
	if isComparable && rows != p.recorded.Rows {
		return "no"
	}
	return "unknown"
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
