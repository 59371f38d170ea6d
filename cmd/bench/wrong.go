package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// wrongClients is how many run at a time in the count of wrong statuses.
const wrongClients = 16

// maxExamples bounds how many wrong answers are told.
const maxExamples = 3

// wrongStatuses runs a mix of programs whose every answer is known exactly, from
// many clients, and counts the answers that differ: a status, a result, an
// output, a state that is not that sandbox's own, an HTTP error.
func (b *bench) wrongStatuses(ctx context.Context) {
	name := fmt.Sprintf("wrong statuses in %d runs, clients: %d", b.size.wrong, wrongClients)
	if ctx.Err() != nil {
		return
	}
	b.inSandboxes(ctx, wrongClients, name, nil, func(ids []string) {
		progress("%s", name)
		wrong, done, examples := b.client.countWrong(ctx, b.size.wrong, ids)
		r := row{Name: name, Samples: done, Value: fmt.Sprint(wrong), Goal: "0", Met: new(wrong == 0 && done == b.size.wrong)}
		if len(examples) > 0 {
			r.Note = fmt.Sprintf("such as: %v", examples)
		}
		b.report.add(r)
	})
}

// countWrong makes n runs from len(ids) clients, each with a sandbox of its own,
// and returns how many were wrong, how many were made, and some examples.
func (c *client) countWrong(ctx context.Context, n int, ids []string) (wrong, done int, examples []string) {
	var (
		next, ran atomic.Int64
		mu        sync.Mutex
		wg        sync.WaitGroup
	)
	for client, id := range ids {
		wg.Go(func() {
			turns := 0
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				err := c.mixed(ctx, i, client, id, &turns)
				if ctx.Err() != nil {
					return
				}
				ran.Add(1)
				if err != nil {
					mu.Lock()
					wrong++
					if len(examples) < maxExamples {
						examples = append(examples, err.Error())
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return wrong, int(ran.Load()), examples
}

// mixed makes the i-th run. turns counts the ones that changed this client's
// sandbox, which only its own state can tell.
func (c *client) mixed(ctx context.Context, i, client int, id string, turns *int) error {
	mark := fmt.Sprintf("run-%d-client-%d", i, client)
	given := map[string]any{"mark": mark, "i": i}
	switch i % 5 {
	case 0: // a result, ephemeral
		return expect{status: "completed", result: fmt.Sprint(i*7 + 1)}.check(c.quick(ctx, "i * 7 + 1", given))
	case 1: // an output, ephemeral
		return expect{status: "completed", stdout: mark + "\n"}.check(c.quick(ctx, "print(mark)", given))
	case 2: // a failure after an output, ephemeral
		return expect{status: "failed", stdout: mark + "\n", errorHas: "ValueError: " + mark}.check(
			c.quick(ctx, "print(mark)\nraise ValueError(mark)", given))
	case 3: // a state, which lasts
		err := expect{status: "completed", result: fmt.Sprintf("[%q, %d]", mark, *turns+1)}.check(
			c.execute(ctx, id, "try:\n    turns += 1\nexcept NameError:\n    turns = 1\n[mark, turns]", given))
		*turns++
		return err
	default: // a failure that the state survives
		return expect{status: "failed", stdout: mark + "\n", errorHas: "ZeroDivisionError"}.check(
			c.execute(ctx, id, "print(mark)\n1 / 0", given))
	}
}
