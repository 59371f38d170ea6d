package limit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"glasshouse/policy/limit"
)

// takeAll takes slots for a user until none is left for the user.
func takeAll(t *testing.T, s *limit.Shared, user string) (releases []func()) {
	t.Helper()
	for {
		release, err := s.Acquire(t.Context(), user, 0)
		if errors.Is(err, limit.ErrFull) {
			return releases
		}
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
}

func TestSharedKeepsAReserveForOtherUsers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ size, first, second, third int }{
		{1, 1, 0, 0}, {4, 4, 0, 0}, {5, 4, 1, 0}, {10, 8, 2, 0}, {40, 32, 7, 1}, {80, 64, 13, 3},
	} {
		s := limit.NewShared(c.size, nil)
		var got []int
		var releases []func()
		for _, user := range []string{"first", "second", "third"} {
			taken := takeAll(t, s, user)
			got, releases = append(got, len(taken)), append(releases, taken...)
		}
		if want := []int{c.first, c.second, c.third}; !slices.Equal(got, want) {
			t.Errorf("%d slots: got %v for three users, want %v", c.size, got, want)
		}
		for _, release := range releases {
			release()
		}
		if again := takeAll(t, s, "first"); len(again) != c.first {
			t.Errorf("%d slots, after all were released: got %d, want %d", c.size, len(again), c.first)
		}
	}
}

// However many operations one user queues, another user's operation waits for one turn.
func TestSharedServesUsersInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limit.NewShared(1, nil)
		release, err := s.Acquire(t.Context(), "many", 0)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var served []string
		var all sync.WaitGroup
		queue := func(user string, n int) {
			for i := range n {
				all.Go(func() {
					release, err := s.Acquire(t.Context(), user, limit.Forever)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					served = append(served, fmt.Sprint(user, i))
					mu.Unlock()
					release()
				})
				synctest.Wait() // the operation is in the queue
			}
		}
		queue("many", 6)
		queue("few", 2)
		queue("one", 1)
		release()
		all.Wait()
		for user, latest := range map[string]int{"few0": 3, "one0": 3, "few1": 6} {
			if at := slices.Index(served, user); at >= latest {
				t.Errorf("got the order %v, want %s among the first %d", served, user, latest)
			}
		}
		own := slices.DeleteFunc(served, func(name string) bool { return !strings.HasPrefix(name, "many") })
		if !slices.IsSorted(own) {
			t.Errorf("got the order %v for one user, want the order of arrival", own)
		}
	})
}

// holders count how many slots of a Shared each user holds.
type holders struct {
	shared *limit.Shared
	mu     sync.Mutex
	held   map[string]int
}

// repeat takes a slot for a user, holds it for a time, and begins again until ctx ends.
func (h *holders) repeat(ctx context.Context, user string, hold time.Duration) {
	for ctx.Err() == nil {
		release, err := h.shared.Acquire(ctx, user, limit.Forever)
		if err != nil {
			return
		}
		h.add(user, 1)
		time.Sleep(hold)
		h.add(user, -1)
		release()
	}
}

func (h *holders) add(user string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[user] += n
}

// The user with the fewest slots is served first, even if another user waits for longer.
func TestSharedServesTheUserWithFewestSlotsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limit.NewShared(4, nil)
		var releases []func()
		for _, user := range []string{"a", "a", "a", "b"} {
			release, err := s.Acquire(t.Context(), user, 0)
			if err != nil {
				t.Fatal(err)
			}
			releases = append(releases, release)
		}
		served := make(chan string, 2)
		for _, user := range []string{"a", "b"} {
			go func() {
				release, err := s.Acquire(t.Context(), user, limit.Forever)
				if err != nil {
					t.Error(err)
					return
				}
				served <- user
				release()
			}()
			synctest.Wait() // the user waits
		}
		releases[0]()
		if first := <-served; first != "b" {
			t.Errorf("got %s served first, want b, who holds one slot and not two", first)
		}
	})
}

// The user with the fewest slots is served first, so users who all want more come to hold equal numbers.
func TestSharedEvensOutSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limit.NewShared(40, nil)
		h := &holders{shared: s, held: map[string]int{}}
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 60 {
			all.Go(func() { h.repeat(ctx, "a", time.Second) })
		}
		time.Sleep(10500 * time.Millisecond)
		for range 60 {
			all.Go(func() { h.repeat(ctx, "b", time.Second) })
		}
		time.Sleep(10250 * time.Millisecond) // no slot changes hands at this moment
		h.mu.Lock()
		if a, b := h.held["a"], h.held["b"]; a != b || a+b < 34 {
			t.Errorf("got %d and %d slots of 40, want equal numbers, together at least 34", a, b)
		}
		h.mu.Unlock()
		end()
		all.Wait()
	})
}

func TestSharedWaitsThenReportsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limit.NewShared(1, nil)
		release, err := s.Acquire(t.Context(), "a", 0)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := s.Acquire(t.Context(), "b", 10*time.Second); !errors.Is(err, limit.ErrFull) {
			t.Errorf("after waiting: got %v, want ErrFull", err)
		}
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("waited %s, want 10s", waited)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := s.Acquire(ctx, "b", limit.Forever); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: got %v, want context.Canceled", err)
		}
		time.AfterFunc(time.Second, release) // those who gave up are not served
		release, err = s.Acquire(t.Context(), "c", 10*time.Second)
		if err != nil {
			t.Fatalf("after a release: %v", err)
		}
		release()
	})
}

func BenchmarkSharedAcquire(b *testing.B) {
	s := limit.NewShared(40, nil)
	for b.Loop() {
		release, err := s.Acquire(b.Context(), "a", time.Second)
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}

// Users who all want more come to hold slots in proportion to their weights, and a user who holds none still gets one
// at once.
func TestSharedGivesSlotsByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := new(limit.Users)
		users.Seen("heavy", 4)
		s := limit.NewShared(40, users)
		h := &holders{shared: s, held: map[string]int{}}
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, user := range []string{"light", "heavy"} {
			for n := range 100 {
				all.Go(func() {
					h.repeat(ctx, user, time.Second+time.Duration(n)*time.Millisecond)
				})
			}
			time.Sleep(time.Second / 2) // the light user takes all it can
		}
		time.Sleep(20*time.Second + time.Millisecond/2)
		h.mu.Lock()
		heavy, light := h.held["heavy"], h.held["light"]
		h.mu.Unlock()
		if heavy+light < 30 || heavy < 3*light || heavy > 5*light {
			t.Errorf("got %d and %d slots for the weights 4 and 1, want four times as many of at least 30",
				heavy, light)
		}
		release, err := s.Acquire(ctx, "third", 0)
		if err != nil {
			t.Fatalf("a third user: %v", err)
		}
		release()
		end()
		all.Wait()
	})
}

// Next to a user who waits as well, a user with the weight 3 has three turns of four.
func TestSharedGivesTurnsByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := new(limit.Users)
		users.Seen("heavy", 3)
		s := limit.NewShared(1, users)
		release, err := s.Acquire(t.Context(), "heavy", 0)
		if err != nil {
			t.Fatal(err)
		}
		var served []string // one slot
		var all sync.WaitGroup
		for range 40 {
			for _, user := range []string{"heavy", "light"} {
				all.Go(func() {
					release, err := s.Acquire(t.Context(), user, limit.Forever)
					if err != nil {
						t.Error(err)
						return
					}
					served = append(served, user)
					release()
				})
				synctest.Wait()
			}
		}
		release()
		all.Wait()
		count := 0
		for _, user := range served[:40] {
			if user == "heavy" {
				count++
			}
		}
		if count != 30 {
			t.Errorf("got %d of 40 turns for the weight 3 next to 1, want 30: %v", count, served[:40])
		}
	})
}
