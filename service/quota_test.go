package service_test

import (
	"context"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service"
)

// CPU time that was used is not forgotten when the service starts again, and is when
// the day is over.
func TestCPUTimeOutlivesTheService(t *testing.T) {
	s, _, _, now := start(t)
	ctx := context.Background()
	caller := sandbox.Key{ID: "k", Account: "k", User: "ada", Role: sandbox.RoleAgent, Limits: sandbox.KeyLimits{CPUSeconds: 1}}
	compute := func(s *service.Service) error {
		_, err := s.QuickExecute(ctx, caller, service.Job{Code: "compute", Kind: sandbox.KindQuick}, nil)
		return err
	}
	for range 2 {
		if err := compute(s); err != nil {
			t.Fatal(err)
		}
	}
	isFault(t, compute(s), sandbox.FaultLimit)
	s.Drain(ctx)
	again := service.New(s.Config)
	defer again.Drain(ctx)
	isFault(t, compute(again), sandbox.FaultLimit)
	now.move(24 * time.Hour)
	if err := compute(again); err != nil {
		t.Errorf("the day after: %v", err)
	}
}

// Requests come back steadily, and no more than a minute's worth of them.
func TestRequestsComeBack(t *testing.T) {
	s, _, _, now := start(t)
	defer s.Drain(context.Background())
	caller := sandbox.Key{ID: "k", Account: "k", Role: sandbox.RoleAgent, Limits: sandbox.KeyLimits{Requests: 60}}
	admitted := func() (n int) {
		for {
			if _, err := s.Admit(caller); err != nil {
				isFault(t, err, sandbox.FaultLimit)
				return n
			}
			n++
		}
	}
	for _, x := range []struct {
		wait time.Duration
		want int
	}{{0, 60}, {0, 0}, {time.Second, 1}, {10 * time.Second, 10}, {time.Hour, 60}} {
		now.move(x.wait)
		if n := admitted(); n != x.want {
			t.Errorf("after %s more %d were admitted, not %d", x.wait, n, x.want)
		}
	}
}
