package debugger

import (
	"fmt"
	"slices"

	"glasshouse/debugger/recording"
)

// Gap is a part of a run that its recording does not have.
type Gap struct {
	After  int    `json:"after_step" doc:"The last step before the gap"`
	Steps  int    `json:"steps" doc:"Number of missing steps; 0 if it is unknown"`
	Reason string `json:"reason"`
}

func (g Gap) String() string {
	if g.Steps == 0 {
		return fmt.Sprintf("after step %d: %s", g.After, g.Reason)
	}
	return fmt.Sprintf("steps %d to %d: %s", g.After+1, g.After+g.Steps, g.Reason)
}

func gapOf(s *recording.State, rec *recording.Record) Gap {
	return Gap{After: s.Step - int(rec.Number), Steps: int(rec.Number), Reason: rec.Text}
}

// lastGap returns the last gap before a step, or nil.
func lastGap(reader *recording.Reader, step int) (last *Gap, err error) {
	for _, c := range slices.Backward(reader.Chunks()) {
		if !c.Loses || c.First > step {
			continue
		}
		err := reader.Replay(c, func(s *recording.State, rec *recording.Record) bool {
			if rec.Kind == recording.KindLost && s.Step < step {
				gap := gapOf(s, rec)
				last = &gap
			}
			return s.Step < step
		})
		if err != nil || last != nil {
			return last, err
		}
	}
	return nil, nil
}

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
