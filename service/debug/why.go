package debug

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"glasshouse/debugger/program"
	"glasshouse/debugger/why"
	"glasshouse/sandbox"
	"glasshouse/service/records"
)

// maxEarlierExecutions bounds the executions of a session that are searched for the one that set a variable.
const maxEarlierExecutions = 30

// Why explains a value of a recorded run: the steps that made it, and what about them may explain a wrong value. It
// answers for a run of any time. Unless the question is without facts, it replays the run, which is an execution of the
// caller. It returns FaultNotFound if the execution has no recording, or no such step or variable, and the errors of an
// inspection.
func (s *Service) Why(
	ctx context.Context, caller sandbox.Key, executionID string, q why.Question,
) (*why.Answer, error) {
	e, err := s.Records.Execution(ctx, caller, executionID)
	if err != nil {
		return nil, err
	}
	opened, err := s.Records.Explainable(ctx, caller, executionID)
	if err != nil {
		return nil, err
	}
	q.Queries, q.Context = e.Queries, contextNames(e.Context)
	q.Earlier = func(ctx context.Context, name string) *why.Earlier {
		return s.earlierSetter(ctx, caller, &e, name)
	}
	var answer *why.Answer
	err = s.SearchRecording(ctx, caller, func(ctx context.Context) (err error) {
		answer, err = opened.Why(ctx, q)
		return err
	})
	if errors.Is(err, why.ErrNoVariable) {
		if e.Exception != nil {
			return nil, sandbox.Errorf(sandbox.FaultNotFound, "%v: the run failed in line %d; ask explain why", err,
				e.Exception.Line)
		}
		return nil, sandbox.Errorf(sandbox.FaultNotFound, "%v; ask for one that the run sets", err)
	}
	if err == nil && !q.WithoutFacts {
		s.addFacts(ctx, caller, executionID, answer, &q)
		s.addSQL(ctx, caller, executionID, answer, q.Budget)
	}
	return answer, err
}

// addFacts adds what a replay of the execution finds about the values of the answer's statements. If it cannot run
// again, the answer says why.
func (s *Service) addFacts(
	ctx context.Context, caller sandbox.Key, executionID string, answer *why.Answer, q *why.Question,
) {
	lines := answer.Statements()
	if len(lines) == 0 {
		return
	}
	facts, cell, replay, err := s.Runs.Facts(ctx, caller, executionID, lines, q.CellPath())
	var isNotLooked string
	switch {
	case err != nil:
		isNotLooked = "the values in between, because the run cannot run again: " + err.Error()
	case replay.Replay.Grade != sandbox.ReplayIdentical:
		answer.Limits = append(answer.Limits, "the facts are those of a replay that is not identical with the run")
	}
	if replay != nil {
		answer.Replay = replay.ID
	}
	answer.AddCell(cell, q)
	answer.AddFacts(facts, isNotLooked, q.Budget)
}

// Explain explains a recorded run in at most about budget tokens. It returns the errors of an inspection.
func (s *Service) Explain(
	ctx context.Context, caller sandbox.Key, opened *records.OpenRecording, budget int,
) (text string, err error) {
	err = s.SearchRecording(ctx, caller, func(context.Context) error {
		text, err = opened.Explain(budget)
		return err
	})
	return text, err
}

// contextNames returns the keys of an execution's context, which are variables of the code.
func contextNames(context json.RawMessage) []string {
	var given map[string]json.RawMessage
	if json.Unmarshal(context, &given) != nil {
		return nil
	}
	return slices.Collect(maps.Keys(given))
}

// earlierSetter returns the latest earlier execution of the sandbox that set a variable, or nil. Recordings tell it
// exactly; of an execution without one, its code tells it.
func (s *Service) earlierSetter(
	ctx context.Context, caller sandbox.Key, e *sandbox.Execution, name string,
) *why.Earlier {
	list, _, err := s.Records.Executions(ctx, caller, sandbox.ExecutionFilter{
		SandboxID: e.SandboxID, Until: e.CreatedAt, Limit: maxEarlierExecutions,
	})
	if err != nil {
		return nil // the answer then says that the variable existed before
	}
	for _, earlier := range list {
		line, code := program.LineThatSets(earlier.Code, name)
		if opened, err := s.Records.Explainable(ctx, caller, earlier.ID); err == nil {
			if set := opened.LastSet(ctx, name); set != nil {
				set.Execution = earlier.ID
				return set
			}
		} else if line > 0 {
			return &why.Earlier{Execution: earlier.ID, Line: line, Code: code}
		}
	}
	return nil
}
