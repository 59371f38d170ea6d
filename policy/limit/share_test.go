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
		seen func(*limit.CPU)
		want time.Duration // until the last of 100 operations of 10 ms begins, with half a CPU
	}{
		{"nobody", func(*limit.CPU) {}, 0},
		{"the user alone", func(cpu *limit.CPU) { cpu.Seen("many") }, 0},
		{"another user all the time", func(cpu *limit.CPU) { keepSeen(cpu, "few") }, 1730 * time.Millisecond},
		{"another user once", func(cpu *limit.CPU) { cpu.Seen("few") }, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cpu := limit.NewCPU(2)
				share := limit.NewShare(cpu, 0.5)
				c.seen(cpu)
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
func keepSeen(cpu *limit.CPU, user string) {
	cpu.Seen(user)
	go func() {
		for range 30 {
			time.Sleep(100 * time.Millisecond)
			cpu.Seen(user)
		}
	}()
}

// An operation whose caller leaves does not wait.
func TestShareEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cpu := limit.NewCPU(2)
		share := limit.NewShare(cpu, 1)
		cpu.Seen("few")
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		share.Wait(ctx, "many", 10*time.Second) // the burst
		began := time.Now()
		if share.Wait(ctx, "many", 10*time.Second); time.Since(began) != 30*time.Millisecond {
			t.Errorf("got a wait of %s, want 30ms", time.Since(began))
		}
	})
}
