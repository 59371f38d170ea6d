package history

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"glasshouse/sandbox"
)

// BenchmarkBeginFinish measures the time that history adds to an answer: for one caller, and for those of a busy
// service.
func BenchmarkBeginFinish(b *testing.B) {
	ctx := context.Background()
	h := newStore(b)
	var n atomic.Int64
	store := func(b *testing.B, begin, finish bool) {
		e := runningExecution(fmt.Sprint(n.Add(1)))
		if begin {
			if err := h.Begin(ctx, e); err != nil {
				b.Error(err)
			}
		}
		if finish {
			if err := h.Finish(ctx, end(e, sandbox.StatusCompleted)); err != nil {
				b.Error(err)
			}
		}
	}
	b.Run("begin", func(b *testing.B) {
		for b.Loop() {
			store(b, true, false)
		}
	})
	b.Run("finish", func(b *testing.B) {
		for b.Loop() {
			store(b, false, true)
		}
	})
	b.Run("both", func(b *testing.B) {
		for b.Loop() {
			store(b, true, true)
		}
	})
	for _, clients := range []int{4, 16} {
		b.Run(fmt.Sprint("both/clients=", clients), func(b *testing.B) {
			b.SetParallelism(clients / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					store(b, true, true)
				}
			})
		})
	}
}
