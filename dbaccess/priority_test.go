package dbaccess

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"
)

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
