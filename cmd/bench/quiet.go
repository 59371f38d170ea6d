package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// maxQuietWait is how long a report waits for a quiet machine.
const maxQuietWait = 10 * time.Minute

// quietInterval is the time between two looks at the load. The kernel renews it every 5 s.
const quietInterval = 5 * time.Second

// waitForQuiet returns when the load is at most half the cores. Figures of a busy machine say nothing about the service,
// and stay in the document for months. It returns an error if the machine is still busy after as many looks as fit
// into maxQuietWait. load returns the load of the last minute, and wait waits for quietInterval.
func waitForQuiet(
	ctx context.Context, cores int, load func() (float64, error), wait func(context.Context) error,
) error {
	limit := float64(cores) / 2
	for looks := int(maxQuietWait / quietInterval); ; looks-- {
		current, err := load()
		if err != nil {
			return fmt.Errorf("the load of the machine cannot be read: %w", err)
		}
		if current <= limit {
			return nil
		}
		if looks == 0 {
			return fmt.Errorf("the load is %.2f after %v, and a report needs at most %g, half of the cores: end the other "+
				"programs and start again; without report, bench prints a table at any load", current, maxQuietWait, limit)
		}
		if looks%12 == 0 {
			progress("the load is %.2f; the report begins when it is at most %g", current, limit)
		}
		if err := wait(ctx); err != nil {
			return err
		}
	}
}

// loadOfMinute returns the load average of the last minute.
func loadOfMinute() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	return strconv.ParseFloat(first, 64)
}

// pause waits for quietInterval or until ctx ends.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(quietInterval):
		return nil
	}
}
