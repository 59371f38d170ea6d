package dbaccess

import (
	"context"
	"testing"
	"time"
)

// The statement and all that is derived from it end within the most time, unless the statement alone takes as long.
func TestEndOfBudget(t *testing.T) {
	t.Parallel()
	least, most := defaultStageBudget.least, defaultStageBudget.most
	for _, c := range []struct {
		took, own, least time.Duration // took: since work on the statement began
		want             time.Duration // from now on
	}{
		{10 * time.Millisecond, 5 * time.Millisecond, least, least},
		{500 * time.Millisecond, 400 * time.Millisecond, least, 9 * 400 * time.Millisecond},
		{3 * time.Second, 2500 * time.Millisecond, least, most - endMargin - 3*time.Second},
		{9 * time.Second, 9 * time.Second, least, most - endMargin - 9*time.Second},
		{time.Second, time.Millisecond, most, most - endMargin - time.Second},
		{12 * time.Second, 12 * time.Second, least, lateStageTime},
	} {
		got := time.Until(stageBudget{c.least, most}.end(context.Background(), time.Now().Add(-c.took), c.own))
		if got > c.want || got < c.want-time.Second/2 {
			t.Errorf("a statement of %v, after %v: got %v more, want %v", c.own, c.took, got, c.want)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if got := time.Until(defaultStageBudget.end(ctx, time.Now(), 0)); got > time.Second-deadlineMargin {
		t.Errorf("a caller that waits for 1 s: got %v", got)
	}
}
