package limit_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"glasshouse/policy/limit"
)

// While another user sends requests, a user's operations take their share at most, after a burst of 250 ms.
func TestShareSpacesOperations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		seen func(*limit.Users)
		want time.Duration // until the last of 100 operations of 10 ms begins, with half a CPU
	}{
		{"nobody", func(*limit.Users) {}, 0},
		{"the user alone", func(users *limit.Users) { users.Seen("many", 1) }, 0},
		{"another user all the time", func(users *limit.Users) { keepSeen(users, "few") }, 1730 * time.Millisecond},
		{"another user once", func(users *limit.Users) { users.Seen("few", 1) }, time.Second},
		{"another user with less weight", func(users *limit.Users) { users.Seen("many", 3); keepSeen(users, "few") },
			740 * time.Millisecond}, // 990 ms of a CPU, less the burst
		{"another user with more weight", func(users *limit.Users) { users.Seen("few", 3); keepSeen(users, "few") },
			4 * time.Second}, // until keepSeen's last request is a second old
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				users := new(limit.Users)
				share := limit.NewShare(users, 2)
				c.seen(users)
				began := time.Now()
				var all sync.WaitGroup
				var last time.Time
				var mu sync.Mutex
				for range 100 {
					all.Go(func() {
						share.Wait(t.Context(), "many", 10*time.Millisecond)
						mu.Lock()
						defer mu.Unlock()
						last = time.Now()
					})
				}
				share.Wait(t.Context(), "few", 10*time.Millisecond)
				if took := time.Since(began); took > 0 {
					t.Errorf("the other user waited %s", took)
				}
				all.Wait()
				if got := last.Sub(began); got != c.want {
					t.Errorf("the last operation began after %s, want %s", got, c.want)
				}
				time.Sleep(5 * time.Second) // until keepSeen ends
			})
		})
	}
}

// keepSeen lets a user send requests for some seconds.
func keepSeen(users *limit.Users, user string) {
	users.Seen(user, 1)
	go func() {
		for range 30 {
			time.Sleep(100 * time.Millisecond)
			users.Seen(user, 1)
		}
	}()
}

// An operation whose caller leaves does not wait.
func TestShareEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		users := new(limit.Users)
		share := limit.NewShare(users, 4)
		users.Seen("few", 1)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		share.Wait(ctx, "many", 10*time.Second) // the burst
		began := time.Now()
		if share.Wait(ctx, "many", 10*time.Second); time.Since(began) != 30*time.Millisecond {
			t.Errorf("got a wait of %s, want 30ms", time.Since(began))
		}
	})
}

// What an operation takes in addition to the amount that it waited for delays the user's next one.
func TestShareChargesWhatAnOperationTook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		users := new(limit.Users)
		share := limit.NewShare(users, 4)
		wait := func() time.Duration {
			began := time.Now()
			share.Wait(t.Context(), "many", 0)
			return time.Since(began)
		}
		share.Charge("many", time.Minute) // nobody else sends requests
		users.Seen("few", 1)
		if took := wait(); took != 0 {
			t.Errorf("after an operation alone: got a wait of %s, want none", took)
		}
		share.Charge("many", 10*time.Millisecond)
		if took := wait(); took != 10*time.Millisecond { // the operation alone took the burst
			t.Errorf("after 10 ms of a CPU: got a wait of %s, want 10ms", took)
		}
		time.Sleep(300 * time.Millisecond)
		users.Seen("few", 1)
		share.Charge("many", 300*time.Millisecond)
		if took := wait(); took != 50*time.Millisecond { // less the burst
			t.Errorf("after a rest and 300 ms of a CPU: got a wait of %s, want 50ms", took)
		}
	})
}
