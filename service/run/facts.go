package run

import (
	"context"
	"time"

	"glasshouse/sandbox"
)

// maxFactsTime is the longest original, with the earlier executions of its session, that Facts runs again: somebody
// waits for the answer.
const maxFactsTime = 10 * time.Second

// factsTimeout returns the seconds that the code of an execution may take when its values are looked at. The looks take
// some 30 µs for a turn of a loop, and of each loop only the first turns are looked at (MAX_TIMES in fact_values.py).
func factsTimeout(original *sandbox.Execution) float64 { return 3*original.ExecutionTime + 5 }

// factSearch is a replay that looks at the values of some statements.
type factSearch struct {
	lines [][2]int64
	path  string // of a cell whose origin is followed; "": none
	facts []sandbox.Fact
	cell  *sandbox.Cell
}

// check returns FaultTooLarge if an execution and the earlier ones of its session take too long for a look at their
// values. A nil factSearch does not look at them.
func (f *factSearch) check(original *sandbox.Execution, earlier []sandbox.Execution) error {
	if f == nil {
		return nil
	}
	seconds := original.ExecutionTime
	for n := range earlier {
		seconds += earlier[n].ExecutionTime
	}
	if seconds <= maxFactsTime.Seconds() {
		return nil
	}
	return sandbox.Errorf(sandbox.FaultTooLarge,
		"it and the earlier executions of its session took %.0f s, more than %s", seconds, maxFactsTime)
}

// Facts replays an ended execution, and returns what the expressions of some statements got and gave, and the replay.
// lines has the first and the last line of each statement. If path is that of a value, such as rows[3]["x"], it also
// returns the cells that the value was made from; the cell is nil if the replay did not get so far. It returns
// FaultTooLarge for an execution of more than maxFactsTime, and the errors of Replay.
func (s *Service) Facts(
	ctx context.Context, caller sandbox.Key, id string, lines [][2]int64, path string,
) ([]sandbox.Fact, *sandbox.Cell, *sandbox.Execution, error) {
	original, err := s.Records.Execution(ctx, caller, id)
	if err != nil {
		return nil, nil, nil, err
	}
	if again := original.Replay; again != nil && !again.IsEdited && again.Rows == "log" && again.Environment == "" {
		id = again.Of // this replay did the same, and only its original has a log
	}
	search := &factSearch{lines: lines, path: path}
	e, err := s.replayObserved(ctx, caller, id, ReplayOptions{facts: search}, observers{})
	return search.facts, search.cell, e, err
}

// keepFacts keeps what the run, which has ended, found.
func (p *replayInputs) keepFacts(o *sandbox.Outcome) {
	if p.found != nil {
		p.found.facts, p.found.cell = o.Facts, o.Cell
	}
}
