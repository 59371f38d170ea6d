package run

import (
	"context"

	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
	"glasshouse/service/database"
)

// Cell is a cell of the result of a statement.
type Cell struct {
	Row    int // from 0
	Column string
}

// WhyCell runs one statement as Query does, and returns the rows of tables behind a cell of its result. It counts as
// one statement, and is recorded as one. Its errors are those of Query, or that there is no such cell, or that its
// rows cannot be found.
func (s *Service) WhyCell(ctx context.Context, caller sandbox.Key, q Statement, cell Cell) (*stages.Why, error) {
	out, _, err := s.whyCell(ctx, caller, q, cell, nil)
	return out, err
}

func (s *Service) whyCell(
	ctx context.Context, caller sandbox.Key, q Statement, cell Cell, rows sandbox.RowSink,
) (out *stages.Why, summary sandbox.QuerySummary, err error) {
	err = s.trace(ctx, caller, q, rows, func(
		ctx context.Context, db *database.Database, sql string, params map[string]any, l sandbox.QueryLimits,
	) (sandbox.QuerySummary, error) {
		if out, summary, err = db.Reader.Why(ctx, sql, params, cell.Row, cell.Column, l); err == nil {
			out.Database = db.Name
		}
		return summary, err
	})
	return out, summary, err
}

// WhyCellOf does the same for a statement of an execution that the caller may see, with the parameters that it had then
// and the data of now. number counts from 1.
func (s *Service) WhyCellOf(
	ctx context.Context, caller sandbox.Key, execution string, number int, cell Cell,
) (*stages.Why, error) {
	past, err := s.pastStatement(ctx, caller, execution, number)
	if err != nil {
		return nil, err
	}
	out, summary, err := s.whyCell(ctx, caller, past.Statement, cell, past.copy())
	if err != nil {
		return nil, err
	}
	out.SameResult = past.sameResult(&summary)
	out.Text = out.Render(past.name)
	return out, nil
}

// WhyNot runs one statement as Query does, and follows the rows whose columns have some values through its stages. It
// counts as one statement, and is recorded as one. Its errors are those of Query, or that the rows cannot be followed.
func (s *Service) WhyNot(
	ctx context.Context, caller sandbox.Key, q Statement, values map[string]any,
) (*stages.WhyNot, error) {
	out, _, err := s.whyNot(ctx, caller, q, values, nil)
	return out, err
}

func (s *Service) whyNot(
	ctx context.Context, caller sandbox.Key, q Statement, values map[string]any, rows sandbox.RowSink,
) (out *stages.WhyNot, summary sandbox.QuerySummary, err error) {
	err = s.trace(ctx, caller, q, rows, func(
		ctx context.Context, db *database.Database, sql string, params map[string]any, l sandbox.QueryLimits,
	) (sandbox.QuerySummary, error) {
		if out, summary, err = db.Reader.WhyNot(ctx, sql, params, values, l); err == nil {
			out.Database = db.Name
		}
		return summary, err
	})
	return out, summary, err
}

// WhyNotOf does the same for a statement of an execution, like WhyCellOf.
func (s *Service) WhyNotOf(
	ctx context.Context, caller sandbox.Key, execution string, number int, values map[string]any,
) (*stages.WhyNot, error) {
	past, err := s.pastStatement(ctx, caller, execution, number)
	if err != nil {
		return nil, err
	}
	out, summary, err := s.whyNot(ctx, caller, past.Statement, values, past.copy())
	if err != nil {
		return nil, err
	}
	out.SameResult = past.sameResult(&summary)
	out.Text = out.Render(past.name)
	return out, nil
}

// trace runs a statement whose answer is not its rows. They go to rows, which may be nil.
func (s *Service) trace(
	ctx context.Context, caller sandbox.Key, q Statement, rows sandbox.RowSink, answer answerFunc,
) error {
	_, err := s.runStatement(ctx, caller, q, func(
		ctx context.Context, db *database.Database, sql string, params map[string]any, l sandbox.QueryLimits,
	) (sandbox.QuerySummary, error) {
		l.Copy = rows
		return answer(ctx, db, sql, params, l)
	}, nil)
	return err
}
