package debugger

import (
	"glasshouse/debugger/recording"
)

// changedVariables returns the names of the variables that the line of a step changed in a frame, or with an edit those
// that the edit at the step changed there. Those of the line are empty if the next step is in another frame.
func changedVariables(reader *recording.Reader, step int, frame, edit uint64) []string {
	t := reader.Table()
	names := map[uint64]bool{}
	for _, c := range reader.Chunks() {
		if step+1 < c.First || step > c.Last {
			continue
		}
		var end *recording.State
		mutated := map[uint64]bool{}
		begin := func(s *recording.State) bool { end = s; return true }
		// Damage is not reported here: reading the step's state has reported it.
		_ = reader.ReplayAfter(c, step, begin, func(s *recording.State, rec *recording.Record) bool {
			if rec.Kind == recording.KindLine && s.Step > step || s.Step < step || s.Edit != edit ||
				edit == 0 && s.Current != frame {
				return s.Step <= step
			}
			switch rec.Kind {
			case recording.KindGlobal:
				if !s.IsDefinition(t, rec.Value) {
					names[rec.Name] = true
				}
			case recording.KindSet, recording.KindDelete, recording.KindForget:
				names[rec.Name] = true
			case recording.KindMutate:
				if !rec.ReadDeeper {
					mutated[rec.Object.Number] = true
				}
			}
			return true
		})
		if end == nil || len(mutated) == 0 {
			continue
		}
		scopes := []map[uint64]recording.Value{end.Globals}
		if f := end.Frames[frame]; f != nil {
			scopes = append(scopes, f.Variables)
		}
		recording.AddHolders(end, mutated, names, scopes...)
	}
	var out []string
	for _, n := range recording.SortedKeys(names) {
		out = append(out, t.Name(n))
	}
	return out
}
