package limit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A user or key without operations takes no memory, whether its operations got a slot or not.
func TestLimitsForgetUsersWithoutOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keyed, shared, cpu, responses := NewKeyed(1), NewShared(1, nil), NewCPU(1, new(Users)), NewResponses(1)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		endKeyed, keyedErr := keyed.Acquire(t.Context(), "ada", 0)
		endShared, sharedErr := shared.Acquire(t.Context(), "ada", 0)
		if err := errors.Join(keyedErr, sharedErr); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			ctx  context.Context
			user string
			wait time.Duration
			want error
		}{
			{t.Context(), "bob", 0, ErrFull},
			{t.Context(), "eve", time.Second, ErrFull},
			{ended, "fay", Forever, context.Canceled},
		} {
			_, keyedErr := keyed.Acquire(c.ctx, "ada", c.wait)
			_, sharedErr := shared.Acquire(c.ctx, c.user, c.wait)
			if !errors.Is(keyedErr, c.want) || !errors.Is(sharedErr, c.want) {
				t.Errorf("%s waits %s: got %v and %v, want %v", c.user, c.wait, keyedErr, sharedErr, c.want)
			}
		}
		endKeyed()
		endShared()
		cpu.Compute("ada", minComputedBytes, func() {})
		responses.Add("ada", 1)()
		if len(keyed.inUse)+len(shared.users)+len(cpu.waiting)+len(responses.unread) != 0 {
			t.Errorf("got %v, %v, %v and %v at the end; want them empty",
				keyed.inUse, shared.users, cpu.waiting, responses.unread)
		}
	})
}

// A slot that is given at the moment at which the caller gives up is either taken or free, and not lost.
func TestSharedLosesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(1, nil)
		for range 50 {
			release, err := shared.Acquire(t.Context(), "ada", 0)
			if err != nil {
				t.Fatalf("the slot is lost: %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				if release, err := shared.Acquire(ctx, "bob", Forever); err == nil {
					release()
				}
			}()
			synctest.Wait() // bob waits
			cancel()
			release()
			synctest.Wait()
		}
	})
}
