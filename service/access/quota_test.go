package access_test

import (
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

func TestCPUTimeIsRememberedAcrossRestartsUntilTheNextDay(t *testing.T) {
	t.Parallel()
	s := start(t)
	caller := sandbox.Key{Account: "k", User: "ada", Limits: sandbox.KeyLimits{CPUSeconds: 1}}
	compute := func(s *access.Service) error {
		_, end, err := s.Begin(t.Context(), caller, access.Executions,
			access.Meter{TakeCPU: func() time.Duration { return 700 * time.Millisecond }})
		if err == nil {
			end()
		}
		return err
	}
	for range 2 {
		if err := compute(s.Service); err != nil {
			t.Fatal(err)
		}
	}
	isFault(t, compute(s.Service), sandbox.FaultLimit)
	s.Close()
	restarted := access.New(s.Config)
	defer restarted.Close()
	isFault(t, compute(restarted), sandbox.FaultLimit)
	s.clock.move(24 * time.Hour)
	if err := compute(restarted); err != nil {
		t.Errorf("on the next day: got %v, want the code to run", err)
	}
}
