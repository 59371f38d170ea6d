package history_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/sandbox"
)

// BenchmarkBeginFinish is what history adds to an answer: alone, and with the
// callers of a busy service.
func BenchmarkBeginFinish(b *testing.B) {
	ctx := context.Background()
	h := open(b, dbtest.Start(b))
	defer h.Close()
	var n atomic.Int64
	round := func(b *testing.B, opening, closing bool) {
		e := execution(fmt.Sprint(n.Add(1)))
		now := time.Now()
		if opening {
			if err := h.Begin(ctx, e); err != nil {
				b.Error(err)
			}
		}
		if closing {
			e.Status, e.CompletedAt = sandbox.StatusCompleted, &now
			if err := h.Finish(ctx, e); err != nil {
				b.Error(err)
			}
		}
	}
	b.Run("begin", func(b *testing.B) {
		for b.Loop() {
			round(b, true, false)
		}
	})
	b.Run("finish", func(b *testing.B) {
		for b.Loop() {
			round(b, false, true)
		}
	})
	b.Run("both", func(b *testing.B) {
		for b.Loop() {
			round(b, true, true)
		}
	})
	for _, clients := range []int{4, 16} {
		b.Run(fmt.Sprint("both/clients=", clients), func(b *testing.B) {
			b.SetParallelism(clients / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					round(b, true, true)
				}
			})
		})
	}
}
