package debug

import (
	"context"
	"errors"
	"time"

	"glasshouse/debugger/why"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// Bounds of the SQL that an answer of Why looks at: somebody waits for it.
const (
	maxSQLTime    = 2 * time.Second // for all queries
	maxSQLQueries = 4
)

// addSQL adds the rows after each stage of the queries behind the value, and what may be wrong in their SQL. They run
// now, each as an execution of the caller. The answer says which ones were not looked at.
func (s *Service) addSQL(
	ctx context.Context, caller sandbox.Key, executionID string, answer *why.Answer, budget int,
) {
	if len(answer.Queries) == 0 {
		return
	}
	timed, cancel := context.WithTimeout(ctx, maxSQLTime)
	defer cancel()
	var list []why.SQL
	for i, q := range answer.Queries {
		one := why.SQL{Number: q.Number}
		switch {
		case q.Status != "ok":
			one.NotLooked = "it was " + q.Status
		case i >= maxSQLQueries:
			one.NotLooked = "more than 4 queries"
		case timed.Err() != nil:
			one.NotLooked = "the time for SQL is used up"
		default:
			found, err := s.Runs.StagesOf(timed, caller, executionID, q.Number, stages.Options{})
			one.Stages, one.NotLooked = found, notLooked(timed, err)
		}
		list = append(list, one)
	}
	answer.AddSQL(list, budget)
}

// notLooked says why the stages of a query are not known.
func notLooked(ctx context.Context, err error) string {
	no, isRefusal := errors.AsType[*sandbox.Refusal](err)
	switch {
	case err == nil:
		return ""
	case ctx.Err() != nil:
		return "the time for SQL is used up"
	case isRefusal:
		return no.Reason
	}
	return sandbox.Shorten(err.Error(), 100)
}
