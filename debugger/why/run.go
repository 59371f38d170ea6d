package why

import (
	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
)

// Run is what an explanation needs of a recorded run.
type Run struct {
	Reader  *recording.Reader // its steps and variables
	Program *program.Program  // its statements
	Edits   []sandbox.Edit    // what people changed in the debugger
}

// edit returns the edit with a number at a step, or nil. The numbers in a recording can be forged.
func (r Run) edit(number uint64, step int) *sandbox.Edit {
	for i := range r.Edits {
		if e := &r.Edits[i]; e.Step == step && e.Number == number {
			return e
		}
	}
	return nil
}
