package debugger

import (
	"context"
	"sync"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
	"glasshouse/debugger/why"
)

// Explain describes the run. See why.Run.Explain.
func (r *Recording) Explain(budget int) (string, error) { return r.explained().Explain(budget) }

// Why explains a value of the run. See why.Run.Why.
func (r *Recording) Why(ctx context.Context, q why.Question) (*why.Answer, error) {
	return r.explained().Why(ctx, q)
}

// LastSet returns the step that set a global variable last. See why.Run.LastSet.
func (r *Recording) LastSet(ctx context.Context, name string) *why.Earlier {
	return r.explained().LastSet(ctx, name)
}

// explained returns what explanations need of the recording as it is now.
func (r *Recording) explained() why.Run {
	reader := r.journal.Snapshot()
	return why.Run{Reader: reader, Program: r.program.of(reader.Table(), r.Source), Edits: r.Edits()}
}

// programCache keeps the program of a recording, because decoding its statements takes time.
type programCache struct {
	mu      sync.Mutex
	program *program.Program
	texts   int // statements that were there
}

// of returns the program of a recording.
func (c *programCache) of(t *recording.Table, source []string) *program.Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(t.Statements()); c.program == nil || c.texts != n {
		c.program, c.texts = program.New(t, source), n
	}
	return c.program
}
