package dbaccess

import (
	"context"
	"testing"
	"time"
)

// The statement and all that is derived from it end within maxStageTime, unless the statement alone takes as long.
func TestEndOfBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took, own, least time.Duration // took: since work on the statement began
		want             time.Duration // from now on
	}{
		{10 * time.Millisecond, 5 * time.Millisecond, minStageTime, minStageTime},
		{500 * time.Millisecond, 400 * time.Millisecond, minStageTime, 9 * 400 * time.Millisecond},
		{3 * time.Second, 2500 * time.Millisecond, minStageTime, maxStageTime - endMargin - 3*time.Second},
		{9 * time.Second, 9 * time.Second, minStageTime, maxStageTime - endMargin - 9*time.Second},
		{time.Second, time.Millisecond, maxStageTime, maxStageTime - endMargin - time.Second},
		{12 * time.Second, 12 * time.Second, minStageTime, lateStageTime},
	} {
		got := time.Until(endOfBudget(context.Background(), time.Now().Add(-c.took), c.own, c.least))
		if got > c.want || got < c.want-time.Second/2 {
			t.Errorf("a statement of %v, after %v: got %v more, want %v", c.own, c.took, got, c.want)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if got := time.Until(endOfBudget(ctx, time.Now(), 0, minStageTime)); got > time.Second-deadlineMargin {
		t.Errorf("a caller that waits for 1 s: got %v", got)
	}
}
