package run

import (
	"testing"

	"glasshouse/sandbox"
)

// Somebody waits for facts, so the earlier executions of a session count, too.
func TestFactsAreBoundedByTheTimeOfTheSession(t *testing.T) {
	t.Parallel()
	original := &sandbox.Execution{ExecutionTime: 6}
	earlier := []sandbox.Execution{{ExecutionTime: 3}, {ExecutionTime: 2}}
	if err := (&factSearch{}).check(original, earlier[:1]); err != nil {
		t.Errorf("9 s: got %v, want no error", err)
	}
	if err := (&factSearch{}).check(original, earlier); sandbox.FaultOf(err) != sandbox.FaultTooLarge {
		t.Errorf("11 s: got %v, want that they take too long", err)
	}
	if err := (*factSearch)(nil).check(original, earlier); err != nil {
		t.Errorf("a replay without facts: got %v, want no error", err)
	}
}
