package limit_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"glasshouse/policy/limit"
)

// The largest weight of the keys with which a user sent requests in the last minute counts.
func TestWeightOfAUserIsThatOfTheKeysInUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		users := new(limit.Users)
		want := func(when string, want int) {
			t.Helper()
			if got := users.Weight("ada"); got != want {
				t.Errorf("%s: got the weight %d, want %d", when, got, want)
			}
		}
		want("without a request", 1)
		users.Seen("ada", 0)
		want("a key without a weight", 1)
		users.Seen("ada", 5)
		users.Seen("grace", 7)
		users.Seen("ada", 2)
		want("keys of 5 and 2", 5)
		time.Sleep(30 * time.Second)
		users.Seen("ada", 5)
		time.Sleep(50 * time.Second)
		users.Seen("ada", 0)
		want("50 s after a request with 5", 5)
		time.Sleep(10 * time.Second)
		want("a minute after it", 5) // work that goes on keeps its weight
		users.Seen("ada", 2)
		want("a minute after it, a key of 2", 2)
		var nobody *limit.Users
		if nobody.Seen("ada", 5); nobody.Weight("ada") != 1 {
			t.Error("nil users: got a weight other than 1")
		}
	})
}

// The processes of a user with the largest weight have the priority of one, those of others less.
func TestDivisorsFollowTheWeights(t *testing.T) {
	t.Parallel()
	users := new(limit.Users)
	users.Seen("heavy", 4)
	users.Seen("medium", 2)
	for _, c := range []struct{ processes, want map[string]int }{
		{map[string]int{}, map[string]int{}},
		{map[string]int{"a": 1, "b": 3}, map[string]int{"a": 1, "b": 3}},
		{map[string]int{"heavy": 5}, map[string]int{"heavy": 5}},
		{map[string]int{"heavy": 5, "medium": 1, "b": 3}, map[string]int{"heavy": 5, "medium": 2, "b": 12}},
	} {
		if got := users.Divisors(c.processes); !maps.Equal(got, c.want) {
			t.Errorf("%v processes: got the divisors %v, want %v", c.processes, got, c.want)
		}
	}
}
