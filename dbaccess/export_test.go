package dbaccess

import (
	"context"
	"time"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// AllowTime gives the statements that are derived from one so much time that a busy machine changes no answer.
func (r *Reader) AllowTime() { r.budget = stageBudget{least: 2 * time.Minute, most: 4 * time.Minute} }

// DerivedCounts returns the statements that count the rows of a query and read samples of them, and the queries of the
// views that it reads.
func (r *Reader) DerivedCounts(
	ctx context.Context, sql string,
) (list []parse.DerivedStatement, views []string, err error) {
	run, err := r.planStages(ctx, sql, nil, sandbox.QueryLimits{}, stages.Options{Samples: true})
	if err != nil {
		return nil, nil, err
	}
	for _, c := range run.plan.Counts {
		list = append(list, c.DerivedStatement)
	}
	for _, s := range run.plan.Shared {
		list = append(list, s.DerivedStatement)
	}
	for _, s := range run.plan.Stages {
		if s.Sample != nil {
			list = append(list, *s.Sample)
		}
	}
	for _, b := range run.plan.Blocks {
		views = append(views, b.Definition)
	}
	return list, views, nil
}
