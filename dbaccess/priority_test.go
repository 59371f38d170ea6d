package dbaccess

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"glasshouse/policy/limit"
)

// The long statements of a user with three times the weight of another have three times the weight of the other's.
func TestLongStatementsShareByWeight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		users := new(limit.Users)
		users.Seen("heavy", 3)
		nice := map[uint32]int{}
		p := &priorities{set: func(pid uint32, value int) { nice[pid] = value }, users: users}
		ends := []func(){p.begin("heavy", 1), p.begin("light", 2), p.begin("heavy", 3)}
		time.Sleep(longAfter)
		synctest.Wait()
		// 1/1.25^3 is about 1/2, and 1/1.25^5 about 1/3
		if want := map[uint32]int{1: 3, 2: 5, 3: 3}; !maps.Equal(nice, want) {
			t.Errorf("got the nice values %v, want %v", nice, want)
		}
		ends[0]()
		ends[2]()
		if nice[2] != 0 {
			t.Errorf("the light user alone: got the nice value %d, want 0", nice[2])
		}
		ends[1]()
	})
}

// The long statements of a user together have the weight of one. Short statements change nothing.
func TestLongStatementsOfAUserShareAWeight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nice := map[uint32]int{}
		p := &priorities{set: func(pid uint32, value int) { nice[pid] = value }}
		want := func(when string, want map[uint32]int) {
			t.Helper()
			time.Sleep(longAfter)
			synctest.Wait()
			if !maps.Equal(nice, want) {
				t.Errorf("%s: got the nice values %v, want %v", when, nice, want)
			}
		}
		p.begin("many", 1)() // a short statement
		ends := []func(){p.begin("many", 2), p.begin("many", 3), p.begin("many", 4), p.begin("few", 5)}
		want("three and one", map[uint32]int{2: 5, 3: 5, 4: 5}) // 1/1.25^5 is about 1/3
		ends[1]()
		want("two and one", map[uint32]int{2: 3, 3: 0, 4: 3})
		ends[0]()
		ends[3]()
		want("one", map[uint32]int{2: 0, 3: 0, 4: 0})
		if ends[2](); len(p.running) > 0 {
			t.Errorf("at the end: got statements of %d users, want none", len(p.running))
		}
	})
}
