package limit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"glasshouse/policy/limit"
)

func TestSlotsWaitThenReportFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := limit.NewSlots(1)
		release, err := slots.Acquire(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := slots.Acquire(t.Context(), 0); !errors.Is(err, limit.ErrFull) {
			t.Errorf("without waiting: got %v, want ErrFull", err)
		}
		start := time.Now()
		if _, err := slots.Acquire(t.Context(), 10*time.Second); !errors.Is(err, limit.ErrFull) {
			t.Errorf("after waiting: got %v, want ErrFull", err)
		}
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("waited %s, want 10s", waited)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := slots.Acquire(ctx, limit.Forever); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: got %v, want context.Canceled", err)
		}
		time.AfterFunc(time.Second, release)
		release, err = slots.Acquire(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatalf("after a release: %v", err)
		}
		release()
	})
}

func TestKeyedBoundsEachKeyByItself(t *testing.T) {
	t.Parallel()
	keyed := limit.NewKeyed(2)
	var releases []func()
	take := func(key string) error {
		release, err := keyed.Acquire(t.Context(), key, 0)
		if err == nil {
			releases = append(releases, release)
		}
		return err
	}
	for _, c := range []struct {
		key  string
		want error
	}{{"a", nil}, {"a", nil}, {"a", limit.ErrFull}, {"b", nil}, {"", nil}, {"", nil}, {"", nil}} {
		if err := take(c.key); !errors.Is(err, c.want) {
			t.Errorf("key %q: got %v, want %v", c.key, err, c.want)
		}
	}
	for _, release := range releases {
		release()
	}
	if err := take("a"); err != nil {
		t.Errorf("after all are released: %v", err)
	}
}

func TestKeyedServesInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keyed := limit.NewKeyed(1)
		release, err := keyed.Acquire(t.Context(), "a", 0)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var served []int
		var all sync.WaitGroup
		for n := range 5 {
			all.Go(func() {
				release, err := keyed.Acquire(t.Context(), "a", limit.Forever)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				served = append(served, n)
				mu.Unlock()
				release()
			})
			synctest.Wait() // n is in the queue
		}
		release()
		all.Wait()
		for n, got := range served {
			if got != n {
				t.Errorf("got order %v, want 0 to 4", served)
				break
			}
		}
	})
}
