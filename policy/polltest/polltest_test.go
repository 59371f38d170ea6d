package polltest_test

import (
	"errors"
	"testing"

	"glasshouse/policy/polltest"
)

func TestSucceedsCallsUntilThereIsNoError(t *testing.T) {
	t.Parallel()
	calls := 0
	polltest.Succeeds(t, func() error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	polltest.Eventually(t, "a fourth call", func() bool { calls++; return calls == 4 })
	if calls != 4 {
		t.Errorf("got %d calls, want 4", calls)
	}
}
