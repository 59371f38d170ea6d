package live_test

import (
	"context"
	"os"
	"testing"
	"time"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/sandbox"
	"glasshouse/service/servicetest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

var ada, grace = servicetest.Ada, servicetest.Grace

func TestUnusedSandboxExpires(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	ctx := context.Background()
	sb := s.Create(t, ada, `{"idle_timeout": 60, "lifetime": 100}`)
	for range 2 { // the lifetime ends after 100 s, and use does not extend it
		if _, err := s.Execute(sb.ID, "1"); err != nil {
			t.Fatal(err)
		}
		s.Live.Expire()
		if s.Code.Closed.Load() != 0 {
			t.Fatal("the sandbox expired while it was used")
		}
		s.Clock.Move(50 * time.Second)
	}
	s.Clock.Move(time.Second)
	s.Live.Expire()
	_, err := s.Execute(sb.ID, "1")
	servicetest.WantFault(t, err, sandbox.FaultGone)
	list, _, total, err := s.Records.SandboxHistory(ctx, ada, sb.ID, 10, "")
	if err != nil || len(list) != 2 || total != 2 {
		t.Errorf("got %d of %d executions, error %v; want 2 of 2", len(list), total, err)
	}
	s.Live.Close()
}

func TestDeletedSandboxesDoNotCountAgainstTheLimit(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	ctx := context.Background()
	for range 3 {
		var last sandbox.Sandbox
		for range 2 {
			last = s.Create(t, ada, "")
		}
		_, err := s.Live.Create(ctx, ada, nil)
		servicetest.WantFault(t, err, sandbox.FaultLimit)
		servicetest.WantFault(t, s.Live.Delete(ctx, grace, last.ID), sandbox.FaultNotFound)
		if n, err := s.Live.DeleteAll(ctx, ada); n != 2 || err != nil {
			t.Errorf("got %d deleted sandboxes, error %v; want 2", n, err)
		}
	}
	s.Live.Close()
}
