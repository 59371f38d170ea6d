// Package polltest waits in tests for states that have no event. It has no goroutines. Only tests import it.
//
//	polltest.Eventually(t, "the pool is full", func() bool { return pool.Len() == 8 })
package polltest

import (
	"errors"
	"testing"
	"time"
)

// limit only ends a test that fails: a busy machine needs a while.
const limit = 2 * time.Minute

const interval = 5 * time.Millisecond

// Eventually polls until a condition holds, and ends the test if it does not. The condition is described by what.
func Eventually(t testing.TB, what string, isTrue func() bool) {
	t.Helper()
	Succeeds(t, func() error {
		if isTrue() {
			return nil
		}
		return errors.New(what)
	})
}

// Succeeds calls check until it returns nil, and ends the test with its last error if it does not.
func Succeeds(t testing.TB, check func() error) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(interval) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %s: %v", limit, err)
		}
	}
}
