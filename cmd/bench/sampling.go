package main

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// baselineProgram measures the machine: the time of its start is B, to which most rows are compared.
const baselineProgram = "/usr/bin/python3"

// baselineMilliseconds starts the baseline program once.
func baselineMilliseconds(ctx context.Context) (float64, error) {
	return timeIt(func() error { return exec.CommandContext(ctx, baselineProgram, "-c", "pass").Run() })
}

// baselinePerSecond returns how often the baseline program runs in a second, one after another.
func baselinePerSecond(ctx context.Context) (float64, error) {
	const runs = 5
	total := 0.0
	for range runs {
		took, err := baselineMilliseconds(ctx)
		if err != nil {
			return 0, err
		}
		total += took
	}
	return 1000 * runs / total, nil
}

// timeIt returns how many milliseconds f takes.
func timeIt(f func() error) (float64, error) {
	begun := time.Now()
	err := f()
	return inMilliseconds(time.Since(begun)), err
}

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// inTurn takes at most n pairs of samples of a and b, after a pair that is not counted. It stops after
// limit once there are three pairs. b is the first of each pair; with alternate, of every second.
func inTurn(ctx context.Context, n int, limit time.Duration, a, b sampleFunc, alternate bool) (as, bs []float64, err error) {
	for pair, end := -1, time.Now().Add(limit); pair < n && (pair < 3 || time.Now().Before(end)); pair++ {
		var values [2]float64
		order := [2]int{1, 0}
		if alternate && pair%2 == 0 {
			order = [2]int{0, 1}
		}
		for _, which := range order {
			if values[which], err = [2]func() (float64, error){a, b}[which](); err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return nil, nil, err
			}
		}
		if pair >= 0 {
			as, bs = append(as, values[0]), append(bs, values[1])
		}
	}
	return as, bs, nil
}

// ratios returns the ratio of each pair.
func ratios(as, bs []float64) []float64 {
	out := make([]float64, len(as))
	for n := range as {
		out[n] = as[n] / bs[n]
	}
	return out
}

// loop returns the median of 100 samples in a row as one sample. A single sample would contain the time in
// which a sleeping core wakes up.
func loop(sample sampleFunc) sampleFunc {
	return func() (float64, error) {
		values := make([]float64, 100)
		for n := range values {
			var err error
			if values[n], err = sample(); err != nil {
				return 0, err
			}
		}
		return median(values), nil
	}
}

// roundTime is the duration of one sample of a rate.
const roundTime = 1500 * time.Millisecond

// rate returns how often f succeeds per second with a number of concurrent clients. Each client calls f with
// its own number. The first failure ends all clients.
func rate(ctx context.Context, clients int, d time.Duration, f func(ctx context.Context, client int) error) (float64, error) {
	if err := f(ctx, 0); err != nil { // not counted: the first call may be slower
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
	if done.Load() == 0 {
		return 0, errors.New("no request was answered in the time of a round")
	}
	return float64(done.Load()) / took.Seconds(), nil
}

// quantile returns the nearest-rank quantile, q from 0 to 1, or NaN if there are no samples.
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
