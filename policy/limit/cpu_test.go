package limit_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"glasshouse/policy/limit"
)

const large = 1 << 20 // bytes of a computation that takes turns

// While one user has fifty computations waiting, another user's next one runs before the first user's third.
func TestComputationsRunInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu, end := limit.NewCPU(2, new(limit.Users)), make(chan struct{})
		var all sync.WaitGroup
		var order []string // one computation runs at a time
		compute := func(user string, bytes int) {
			all.Go(func() {
				cpu.Compute(user, bytes, func() {
					order = append(order, user)
					<-end
				})
			})
			synctest.Wait() // it runs or waits
		}
		for range 50 {
			compute("many", large)
		}
		compute("few", large)
		if got := []int{len(order), cpu.Waiting("many"), cpu.Waiting("few"), cpu.Waiting("none")}; !slices.Equal(got,
			[]int{1, 49, 1, 0}) {
			t.Errorf("got %v computations that run, and wait for many, few and none; want [1 49 1 0]", got)
		}
		cpu.Compute("few", 1000, func() { order = append(order, "small") }) // at once
		close(end)
		all.Wait()
		if at := slices.Index(order, "few"); order[1] != "small" || at > 3 {
			t.Errorf("got the order %.20q, want small second and few at most fourth", order)
		}
	})
}

// One CPU stays free for other work if there are several, and computations of one user leave others some.
func TestComputationsLeaveACPU(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cpus, want int }{{1, 1}, {2, 1}, {3, 2}, {8, 6}} {
		t.Run(fmt.Sprint(c.cpus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cpu, end, running := limit.NewCPU(c.cpus, new(limit.Users)), make(chan struct{}), 0
				var mu sync.Mutex
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						cpu.Compute("many", large, func() {
							mu.Lock()
							running++
							mu.Unlock()
							<-end
						})
					})
				}
				synctest.Wait()
				if running != c.want {
					t.Errorf("got %d concurrent computations, want %d", running, c.want)
				}
				close(end)
				all.Wait()
			})
		})
	}
}

func TestNilCPULimitsNothing(t *testing.T) {
	t.Parallel()
	var cpu *limit.CPU
	ran := false
	cpu.Compute("any", large, func() { cpu.Compute("any", large, func() { ran = true }) })
	if !ran {
		t.Error("the computation did not run")
	}
}

// A computation is followed by a pause of three times its length while another user sends requests.
func TestComputationsPauseForOtherUsers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		seen func(*limit.CPU)
		want time.Duration // of two computations of 10 ms
	}{
		{"nobody", func(*limit.CPU) {}, 20 * time.Millisecond},
		{"the user alone", func(cpu *limit.CPU) { cpu.Users().Seen("many", 1) }, 20 * time.Millisecond},
		{"another user", func(cpu *limit.CPU) { cpu.Users().Seen("few", 1) }, 50 * time.Millisecond},
		{"another user, then the user", func(cpu *limit.CPU) {
			cpu.Users().Seen("few", 1)
			cpu.Users().Seen("many", 1)
			cpu.Users().Seen("many", 1)
		},
			50 * time.Millisecond},
		{"another user with a third of the weight", func(cpu *limit.CPU) {
			cpu.Users().Seen("many", 3)
			cpu.Users().Seen("few", 1)
		}, 30 * time.Millisecond},
		{"another user, a second ago", func(cpu *limit.CPU) { cpu.Users().Seen("few", 1); time.Sleep(time.Second) },
			20 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cpu := limit.NewCPU(2, new(limit.Users))
				c.seen(cpu)
				began := time.Now()
				for range 2 {
					cpu.Compute("many", large, func() { time.Sleep(10 * time.Millisecond) })
				}
				if took := time.Since(began); took != c.want {
					t.Errorf("two computations took %s, want %s", took, c.want)
				}
				time.Sleep(time.Second) // until the last pause ends
			})
		})
	}
}

// A Serial runs one computation at a time, in addition to those of its CPU, and pauses for the requests that the CPU
// has seen.
func TestSerial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cpu := limit.NewCPU(8, new(limit.Users))
		serial, end, running := cpu.Serial(0), make(chan struct{}), 0
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { serial.Compute("many", large, func() { running++; <-end }) })
		}
		all.Go(func() { cpu.Compute("many", large, func() { <-end }) })
		synctest.Wait()
		if got := []int{running, cpu.Waiting("many")}; !slices.Equal(got, []int{1, 0}) {
			t.Errorf("got %v serial computations that run and others that wait, want [1 0]", got)
		}
		close(end)
		all.Wait()
		cpu.Users().Seen("few", 1)
		began := time.Now()
		for range 2 {
			serial.Compute("many", large, func() { time.Sleep(10 * time.Millisecond) })
		}
		if took := time.Since(began); took != 50*time.Millisecond {
			t.Errorf("two computations with a pause took %s, want 50ms", took)
		}
		time.Sleep(time.Second) // until the last pause ends
		cpu.Users().Seen("few", 1)
		serial, began = cpu.Serial(10e6/float64(large)), time.Now() // 10 ms of other work
		for range 2 {
			serial.Compute("many", large, func() { time.Sleep(10 * time.Millisecond) })
		}
		if took := time.Since(began).Round(time.Millisecond); took != 80*time.Millisecond {
			t.Errorf("two computations, from which as much other work follows, took %s, want 80ms", took)
		}
		time.Sleep(time.Second) // until the last pause ends
	})
}
