package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// baseline is the program whose time is B.
const baseline = "/usr/bin/python3"

// takeB runs the baseline once.
func takeB(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	err := exec.CommandContext(ctx, baseline, "-c", "pass").Run()
	return time.Since(begun), err
}

// pair is the same number of samples of a subject and of the baseline, in
// milliseconds, taken alternately.
type pair struct {
	subject, b []float64
}

// interleave takes at most n samples within the time limit, after one that
// isn't counted. The subject says itself how long it took, so that its
// preparations are left out.
func interleave(ctx context.Context, n int, limit time.Duration, subject func() (time.Duration, error)) (pair, error) {
	var p pair
	if _, err := subject(); err != nil {
		return p, err
	}
	for end := time.Now().Add(limit); len(p.subject) < n && (len(p.subject) < 3 || time.Now().Before(end)); {
		b, err := takeB(ctx)
		if err != nil {
			return p, fmt.Errorf("%s: %w", baseline, err)
		}
		d, err := subject()
		if err != nil {
			return p, err
		}
		p.b = append(p.b, ms(b))
		p.subject = append(p.subject, ms(d))
	}
	return p, nil
}

// inTurn takes at most n pairs of a subject and another within the time limit, after one of
// each that isn't counted; the other goes first every second time, so that a machine that is busy
// is so for both. It returns the subject's times in milliseconds, and the ratio of each to
// the other's of its pair.
func inTurn(ctx context.Context, n int, limit time.Duration, subject, other func() (time.Duration, error)) (took, ratios []float64, err error) {
	both := [2]func() (time.Duration, error){subject, other}
	var times [2]float64
	for pair, end := -1, time.Now().Add(limit); pair < n && (pair < 3 || time.Now().Before(end)); pair++ {
		for k := range both {
			which := (k + max(pair, 0)) % 2
			d, err := both[which]()
			if err = errors.Join(err, ctx.Err()); err != nil {
				return nil, nil, err
			}
			times[which] = ms(d)
		}
		if pair >= 0 {
			took, ratios = append(took, times[0]), append(ratios, times[0]/times[1])
		}
	}
	return took, ratios, nil
}

// timed makes a subject of a function that is all to be timed.
func timed(f func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		begun := time.Now()
		err := f()
		return time.Since(begun), err
	}
}

// rate counts how often f succeeds in a second with the given number of
// clients. Each client calls f with its own number; the first failure ends all.
func rate(ctx context.Context, clients int, d time.Duration, f func(ctx context.Context, client int) error) (float64, error) {
	if err := f(ctx, 0); err != nil { // the first one isn't counted
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		done  atomic.Int64
		wg    sync.WaitGroup
		begun = time.Now()
		end   = begun.Add(d)
	)
	for client := range clients {
		wg.Go(func() {
			for ctx.Err() == nil && time.Now().Before(end) {
				if err := f(ctx, client); err != nil {
					cancel(err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	return float64(done.Load()) / took.Seconds(), nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantile is the nearest-rank quantile, q from 0 to 1; NaN of nothing.
func quantile(samples []float64, q float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(samples))
	return s[min(len(s)-1, max(0, int(math.Ceil(q*float64(len(s))))-1))]
}

func median(samples []float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(samples))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
