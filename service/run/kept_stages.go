package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"glasshouse/sandbox"
	"glasshouse/sandbox/inputlog"
	"glasshouse/sandbox/stages"
)

// keptStages is the record of computed stages in history.
type keptStages struct {
	Database string         `json:"database"`
	Ran      string         `json:"ran"` // inputlog.RanHash of the statement: the text has the masks of its tables
	Stages   *stages.Stages `json:"stages"`
}

// maxKeptStages bounds a record of stages. Larger ones are computed again.
const maxKeptStages = 1 << 20

// keepStages keeps the stages of a statement with its execution. They can be computed again, so it only logs an error.
func (s *Service) keepStages(ctx context.Context, past *pastStatement, out *stages.Stages) {
	record, err := json.Marshal(keptStages{out.Database, inputlog.RanHash(out.Ran), out})
	if err == nil && len(record) <= maxKeptStages {
		err = s.History.KeepStages(context.WithoutCancel(ctx), past.execution.ID, past.number, record)
	}
	if err != nil {
		s.logOf(past.execution).WithError(err).Warn("could not keep the stages of a statement")
	}
}

// KeptStages returns the stages of a statement of an execution that the caller may see, as StagesOf has computed them
// last. number counts from 1. It returns FaultNotFound if none are kept, and FaultGone if other columns are masked
// since or the statement may not run any more: the caller can compute them again.
func (s *Service) KeptStages(
	ctx context.Context, caller sandbox.Key, execution string, number int,
) (*stages.Stages, error) {
	e, err := s.Records.Execution(ctx, caller, execution)
	if err != nil {
		return nil, err
	}
	recorded, err := recordedStatement(&e, number)
	if err != nil {
		return nil, err
	}
	record, err := s.History.Stages(ctx, e.ID, number)
	if sandbox.FaultOf(err) == sandbox.FaultNotFound {
		return nil, sandbox.Errorf(sandbox.FaultNotFound, "no stages of statement %d are kept: compute them with POST",
			number)
	}
	if err != nil {
		return nil, err
	}
	var kept keptStages
	if err := json.Unmarshal(record, &kept); err != nil {
		return nil, fmt.Errorf("read the kept stages of statement %d of execution %s: %w", number, e.ID, err)
	}
	if err := s.mayReadStages(ctx, caller, &e, recorded, &kept); err != nil {
		return nil, err
	}
	return kept.Stages, nil
}

// mayReadStages returns FaultGone unless the caller may run the statement today, and the same columns are masked.
func (s *Service) mayReadStages(
	ctx context.Context, caller sandbox.Key, e *sandbox.Execution, q *sandbox.Query, kept *keptStages,
) error {
	var params map[string]json.RawMessage
	if len(q.Parameters) > 0 {
		if err := json.Unmarshal(q.Parameters, &params); err != nil {
			return err
		}
	}
	err := s.permitted(ctx, caller, e.User, &inputlog.Request{
		Database: kept.Database, SQL: q.SQL, Names: slices.Sorted(maps.Keys(params)), Ran: kept.Ran,
	})
	if _, isRefusal := errors.AsType[*sandbox.Refusal](err); isRefusal {
		return sandbox.Errorf(sandbox.FaultGone, "the stages of this statement were computed with other masks or "+
			"rights than those of today: compute them again with POST")
	}
	return err
}
