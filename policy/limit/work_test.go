package limit_test

import (
	"testing"
	"time"

	"glasshouse/policy/limit"
)

// flood charges work as fast as it is allowed for a time, while the user's processes use a part of a CPU. It returns
// the work that was done.
func flood(w *limit.Work, user string, start time.Time, lasts time.Duration, cpu float64) (done time.Duration) {
	const step = 5 * time.Millisecond // of work
	last := start
	for now := start; now.Sub(start) < lasts; {
		earned := time.Duration(cpu * float64(now.Sub(last)))
		last = now
		wait := w.Charge(user, step, earned, now)
		done += step
		now = now.Add(step) // on one CPU
		for wait > 0 && now.Sub(start) < lasts {
			now = now.Add(wait)
			wait = w.Charge(user, 0, time.Duration(cpu*float64(now.Sub(last))), now)
			last = now
		}
	}
	return done
}

func TestWorkIsBoundedByTheCPUTimeOfItsUser(t *testing.T) {
	t.Parallel()
	var w limit.Work
	start := time.Unix(1000, 0)
	for _, c := range []struct {
		user  string
		cpu   float64
		least time.Duration
		most  time.Duration
	}{
		{"idle", 0, 1200 * time.Millisecond, 1350 * time.Millisecond}, // the burst, and a tenth of 10 s
		{"half", 0.5, 6 * time.Second, 6500 * time.Millisecond},
		{"busy", 1, 9 * time.Second, 10 * time.Second},
	} {
		if got := flood(&w, c.user, start, 10*time.Second, c.cpu); got < c.least || got > c.most {
			t.Errorf(
				"a user whose processes use %.1f CPUs: got %s of work in 10 s, want %s to %s",
				c.cpu,
				got,
				c.least,
				c.most,
			)
		}
	}
	statements := limit.Work{Floor: 0.5}
	if got := flood(&statements, "idle", start, 10*time.Second, 0); got < 5*time.Second || got > 5500*time.Millisecond {
		t.Errorf("half a CPU for an idle user: got %s of work in 10 s, want 5 s to 5.5 s", got)
	}
	if wait := w.Charge("another", 200*time.Millisecond, 0, start); wait != 0 {
		t.Errorf("another user's first 200 ms of work: got a wait of %s, want none", wait)
	}
	later := start.Add(time.Hour)
	if wait := w.Charge("idle", 200*time.Millisecond, 0, later); wait != 0 {
		t.Errorf("an hour later: got a wait of %s, want none", wait)
	}
}
