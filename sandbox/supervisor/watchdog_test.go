package supervisor

import (
	"context"
	"testing"
	"time"
)

// The deletion of a sandbox ends the run's context and kills its process. The run is then cancelled, even if the
// process was gone before the watchdog saw the end of the context.
func TestCancelledRunWhoseProcessIsGoneIsCancelled(t *testing.T) {
	t.Parallel()
	running := context.Background()
	over, cancel := context.WithCancel(running)
	cancel()
	for _, c := range []struct {
		name   string
		caller context.Context
		died   bool
		by     string // so far
		want   string
	}{
		{"deleted", over, true, "", endedByCancel},
		{"answered before it was cancelled", over, false, "", ""},
		{"died by itself", running, true, "", ""},
		{"out of time before it was cancelled", over, true, endedByTimeout, endedByTimeout},
	} {
		w := &watchdog{
			caller: c.caller, timer: time.NewTimer(time.Hour), release: func() bool { return false }, cancel: func() {},
			onEnd: func() {}, stopped: make(chan struct{}), end: runEnd{by: c.by},
		}
		if got := w.stop(c.died).by; got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
