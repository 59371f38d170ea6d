package debug_test

import (
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/debug"
	"glasshouse/service/servicetest"
)

// Nothing lists debug sessions. So sessions whose sandbox or run has ended make room for others, and those that were
// used lately are kept.
func TestEndedDebugSessionsMakeRoom(t *testing.T) {
	t.Parallel()
	const most = 20
	end := make(chan struct{})
	f := servicetest.Start(t, func(c *servicetest.Config) {
		c.Live.PerUser, c.Live.InAll, c.Runs.Parallel = most+2, 4*most, 10*most
	})
	f.Code.Record = func(d supervisor.DebugDriver) error {
		d.Begin(func() {})
		<-end
		return nil
	}
	open := func() (*debug.Session, error) {
		t.Helper()
		sb, err := f.Live.Create(t.Context(), grace, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.Clock.Move(time.Second)
		d, _, err := f.Debug.Open(t.Context(), grace, sb.ID, debug.Start{
			Request: sandbox.Request{Code: "1", Kind: sandbox.KindDebug},
		})
		return d, err
	}
	openAll := func(when string) (all []*debug.Session) {
		t.Helper()
		for n := range most {
			d, err := open()
			if err != nil {
				t.Fatalf("%s: got %v for session %d, want it open", when, err, n+1)
			}
			all = append(all, d)
		}
		return all
	}
	isOpen := func(d *debug.Session) bool {
		_, err := f.Debug.Session(grace, d.ID)
		return err == nil
	}

	inDeleted := openAll("at first")
	_, err := open()
	servicetest.WantFault(t, err, sandbox.FaultLimit)
	if _, err := f.Live.DeleteAll(t.Context(), grace); err != nil {
		t.Fatal(err)
	}
	if !isOpen(inDeleted[0]) {
		t.Error("got no session whose sandbox is deleted, want its end to be readable until others need its place")
	}
	running := openAll("after their sandboxes are deleted")
	for n, d := range inDeleted {
		if isOpen(d) {
			t.Errorf("session %d of a deleted sandbox is open in addition to %d others", n+1, most)
		}
	}
	_, err = open()
	servicetest.WantFault(t, err, sandbox.FaultLimit)

	close(end)
	for _, d := range running {
		d.WaitForStop(t.Context()) // until the run has ended
	}
	f.Clock.Move(time.Second)
	if !isOpen(running[0]) { // a use
		t.Fatal("the first session is not open")
	}
	d, err := open()
	if err != nil {
		t.Fatalf("after the runs have ended: got %v, want a session", err)
	}
	for _, kept := range []*debug.Session{d, running[0], running[2], running[most-1]} {
		if !isOpen(kept) {
			t.Error("a session that was used later is not open")
		}
	}
	if isOpen(running[1]) {
		t.Error("the session that was unused for longest is open")
	}
	f.Runs.Drain(t.Context())
}
