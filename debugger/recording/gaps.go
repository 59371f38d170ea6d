package recording

import (
	"fmt"
	"slices"
)

// Gap is a part of a run that its recording does not have.
type Gap struct {
	After  int    `json:"after_step" doc:"The last step before the gap"`
	Steps  int    `json:"steps" doc:"Number of missing steps; 0 if it is unknown"`
	Reason string `json:"reason"`
}

// String returns the missing steps and the reason.
func (g Gap) String() string {
	if g.Steps == 0 {
		return fmt.Sprintf("after step %d: %s", g.After, g.Reason)
	}
	return fmt.Sprintf("steps %d to %d: %s", g.After+1, g.After+g.Steps, g.Reason)
}

// GapOf returns the gap of a lost record that has been applied to s.
func GapOf(s *State, rec *Record) Gap {
	return Gap{After: s.Step - int(rec.Number), Steps: int(rec.Number), Reason: rec.Text}
}

// LastGap returns the last gap before a step, or nil.
func (r *Reader) LastGap(step int) (last *Gap, err error) {
	for _, c := range slices.Backward(r.Chunks()) {
		if !c.Loses || c.First > step {
			continue
		}
		err := r.Replay(c, func(s *State, rec *Record) bool {
			if rec.Kind == KindLost && s.Step < step {
				gap := GapOf(s, rec)
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
