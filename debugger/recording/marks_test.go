package recording_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
)

// touches returns the records up to a step that set a variable, or change an object that it holds, and are not changes
// of objects at the passed lines.
func touches(t *testing.T, r *recording.Reader, c *recording.Chunk, w *recording.Watch,
	replay func(visit func(*recording.State, *recording.Record) bool) error) (list []string) {
	t.Helper()
	err := replay(func(s *recording.State, rec *recording.Record) bool {
		isSet := (rec.Kind == recording.KindSet || rec.Kind == recording.KindDelete) && w.Frame == s.Current
		isGlobal := (rec.Kind == recording.KindGlobal || rec.Kind == recording.KindForget) && w.Frame == 0
		line := int64(0)
		if f := s.CurrentFrame(); f != nil {
			line = f.Line
		}
		switch {
		case s.Step > w.Until:
			return false
		case rec.Kind == recording.KindLost:
			list = append(list, "lost")
		case (isSet || isGlobal) && rec.Name == w.Name,
			rec.Kind == recording.KindMutate && !w.Passed[line] && slices.Contains(w.Objects(s), rec.Object.Number):
			list = append(list, fmt.Sprint(s.Step, " ", rec.Kind, " ", rec.Object.Number, " ", line))
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// nested returns a recording of an object that is changed through another one, which comes to hold it at line 2 of the
// module, and no longer does at line 3. All this repeats.
func nested() []byte {
	b := recordingtest.New("x", "list", "call")
	b.Add(recording.Record{Kind: recording.KindCode, File: 1, Name: 5, Number: 20})
	outer, inner := recordingtest.List(1, 4), recordingtest.List(2, 4)
	b.Line(0)
	b.Object(outer)
	b.Object(inner)
	b.Global(3, recordingtest.Ref(1))
	mutate := func(o *recording.Object, values ...recording.Value) {
		o.Version++
		o.Values, o.Length = values, int64(len(values))
		b.Add(recording.Record{Kind: recording.KindMutate, Object: *o})
	}
	outer.Version, inner.Version = 1, 1
	for i := range 3000 {
		b.Line(1)
		mutate(&outer, recordingtest.Ref(2))
		b.Line(1)
		mutate(&inner, recordingtest.Int(i)) // x changes
		b.Line(0)
		mutate(&outer, recordingtest.Int(i))
		b.Line(1)
		mutate(&inner, recordingtest.Int(-i)) // x does not
		b.Line(-3)
		b.Add(recording.Record{Kind: recording.KindPush, Frame: uint64(i + 2), Code: 2, Thread: 1, Parent: 1})
		b.Line(1)
		b.Add(recording.Record{Kind: recording.KindSet, Name: 3, Value: recordingtest.Int(i)})
		b.Line(1)
		mutate(&outer, recordingtest.Int(-i))
		b.Add(recording.Record{Kind: recording.KindReturn, Value: recordingtest.Int(i)})
	}
	return b.Stream
}

// linked returns a recording in which the second line of the module makes an object hold another one, which then
// changes once.
func linked() []byte {
	b := recordingtest.New("x", "list")
	b.Line(0)
	b.Object(recordingtest.List(1, 4))
	b.Object(recordingtest.List(2, 4))
	b.Global(3, recordingtest.Ref(1))
	for n, values := range [][]recording.Value{{recordingtest.Ref(2)}, {recordingtest.Int(7)}} {
		b.Line(1)
		o := recordingtest.List(uint64(n+1), 4, values...)
		o.Version = 2
		b.Add(recording.Record{Kind: recording.KindMutate, Object: o})
	}
	b.Stream = append(b.Stream, bytes.Repeat([]byte{recording.ShortLineZero}, 6)...)
	return b.Stream
}

// A replay that watches a variable visits each record that may change it, whatever lines are passed.
func TestWatchedReplaysMissNoChange(t *testing.T) {
	t.Parallel()
	streams := map[string][]byte{"loop": recordingtest.Loop(20_000), "mixed": recordingtest.Mixed(5000),
		"nested": nested(), "linked": linked()}
	for _, name := range recordingtest.Names() {
		streams[name] = recordingtest.Recorded(name)
	}
	for name, stream := range streams {
		j := journalOf(t, stream)
		past, _ := stored(t, j)
		r := past.Snapshot()
		variables := map[[2]uint64]bool{} // frame and name
		for _, c := range r.Chunks() {
			err := r.Replay(c, func(s *recording.State, rec *recording.Record) bool {
				switch rec.Kind {
				case recording.KindSet:
					if len(variables) < 30 {
						variables[[2]uint64{s.Current, rec.Name}] = true
					}
				case recording.KindGlobal:
					variables[[2]uint64{0, rec.Name}] = true
				}
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for v := range variables {
			for _, c := range r.Chunks() {
				for _, passed := range []map[int64]bool{nil, {2: true}, {3: true, 22: true}, {4: true}} {
					w := &recording.Watch{Frame: v[0], Name: v[1], Until: c.Last - (c.Last-c.First)/3, Passed: passed,
						Objects: func(s *recording.State) []uint64 {
							scope := s.Globals
							if f := s.Frames[v[0]]; v[0] != 0 && f == nil {
								return nil
							} else if v[0] != 0 {
								scope = f.Variables
							}
							return s.Reachable(scope[v[1]])
						}}
					from := c.First + (c.Last-c.First)/5
					want := touches(t, r, c, w, func(visit func(*recording.State, *recording.Record) bool) error {
						return r.ReplayAfter(c, from, nil, visit)
					})
					got := touches(t, r, c, w, func(visit func(*recording.State, *recording.Record) bool) error {
						return r.ReplayChanges(c, from, w, nil, visit)
					})
					if !slices.Equal(got, want) {
						t.Fatalf("%s: variable %v, steps %d to %d, lines %v: got %d records, want %d", name, v, from,
							w.Until, passed, len(got), len(want))
					}
				}
			}
		}
	}
}

// A watched replay ends where nothing more can change the variable.
func TestWatchedReplaysEndEarly(t *testing.T) {
	t.Parallel()
	past, _ := stored(t, journalOf(t, recordingtest.Loop(20_000)))
	r := past.Snapshot()
	w := &recording.Watch{Name: r.Table().NumberOf("y"), Until: r.Steps(),
		Objects: func(*recording.State) []uint64 { return nil }}
	visited := 0
	err := r.ReplayChanges(r.Chunks()[0], 0, w, nil, func(*recording.State, *recording.Record) bool {
		visited++
		return true
	})
	if err != nil || visited > 10 {
		t.Errorf("got %d records, %v, want at most 10: y is set before the first step", visited, err)
	}
}
