package service_test

import (
	"context"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service"
)

func TestCPUTimeIsRememberedAcrossRestartsUntilTheNextDay(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx := context.Background()
	caller := sandbox.Key{ID: "k", Account: "k", User: "ada", Role: sandbox.RoleAgent,
		Limits: sandbox.KeyLimits{CPUSeconds: 1}}
	compute := func(s *service.Service) error {
		_, err := s.QuickExecute(ctx, caller, service.Job{Code: "compute", Kind: sandbox.KindQuick}, nil)
		return err
	}
	for range 2 {
		if err := compute(s.Service); err != nil {
			t.Fatal(err)
		}
	}
	isFault(t, compute(s.Service), sandbox.FaultLimit)
	s.Drain(ctx)
	restarted := service.New(s.Config)
	defer restarted.Drain(ctx)
	isFault(t, compute(restarted), sandbox.FaultLimit)
	s.clock.move(24 * time.Hour)
	if err := compute(restarted); err != nil {
		t.Errorf("on the next day: got %v, want the code to run", err)
	}
}
