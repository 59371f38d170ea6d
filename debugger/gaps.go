package debugger

import (
	"glasshouse/debugger/recording"
)

// SetHeldSteps tells the recording how many steps the recorder holds back. They are lost if the run is killed now.
func (r *Recording) SetHeldSteps(steps uint64) {
	r.held.Lock()
	defer r.held.Unlock()
	if steps != r.held.steps {
		r.held.steps, r.held.after = steps, r.journal.Steps()
	}
}

const lostByKill = "the run was killed before the recorder sent its last steps"

// loseHeldSteps records that the steps which the recorder still holds are lost.
func (r *Recording) loseHeldSteps() {
	r.held.Lock()
	last := r.held.after + int(min(r.held.steps, maxHeldSteps))
	r.held.Unlock()
	if lost := last - r.journal.Steps(); lost > 0 {
		record := recording.Record{Kind: recording.KindLost, Number: uint64(lost), Text: lostByKill}
		_ = r.journal.Append(recording.AppendRecord(nil, &record)) // fails if the recording has ended already
	}
}

// maxHeldSteps bounds the number of held steps, which a guest can forge.
const maxHeldSteps = 1 << 40
