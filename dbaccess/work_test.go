package dbaccess

import (
	"testing"
	"testing/synctest"
	"time"
)

// A user is charged for the time of a short statement, and for the CPU time of a long one, up to a second.
func TestStatementsAreChargedTheirWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		cpuPart float64 // of the time that passes, the process computes this part
		isKnown bool
		took    time.Duration
		want    time.Duration
	}{
		{"short", 0.5, true, 10 * time.Millisecond, 10 * time.Millisecond},
		{"long, computes", 1, true, 200 * time.Millisecond, 200 * time.Millisecond},
		{"long, computes half the time", 0.5, true, 220 * time.Millisecond, 120 * time.Millisecond},
		{"long, waits", 0, true, time.Minute, minMeasuredWork},
		{"very long", 1, true, time.Minute, maxChargedWork},
		{"long, of another machine", 1, false, time.Minute, minMeasuredWork},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				r := &Reader{config: Config{CPUTime: func(pid uint32) (time.Duration, bool) {
					return time.Hour + time.Duration(c.cpuPart*float64(time.Since(began))), c.isKnown && pid == 7
				}}}
				work := r.measureWork(7)
				time.Sleep(c.took)
				synctest.Wait()
				if got := work(); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}
