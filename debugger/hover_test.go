package debugger

import (
	"strings"
	"testing"

	"glasshouse/debugger/recording/recordingtest"
	"glasshouse/debugger/why"
)

// The origin of any variable of any recording is short.
func TestOriginIsShortForAnyRecording(t *testing.T) {
	t.Parallel()
	found := 0
	for _, file := range recordingtest.Names() {
		r := recordingOf(t, recordingtest.Recorded(file), strings.Split(strings.Repeat("x = y\n", 60), "\n")...)
		r.End()
		table := r.journal.Snapshot().Table()
		for n := uint64(0); n < 200; n++ {
			for _, step := range []int{0, 1, r.Steps() / 2, r.Steps(), r.Steps() + 9} {
				for frame := range uint64(3) {
					lines := r.explained().Origin(t.Context(), table.Name(n), step, frame)
					found += len(lines)
					if text := strings.Join(lines, "\n"); len(lines) > 2 || len(text) > 2*why.MaxOriginBytes+1 {
						t.Errorf("%s, %s at step %d: got %q, want two short lines", file, table.Name(n), step, text)
					}
				}
			}
		}
	}
	if found == 0 {
		t.Error("got no origin of any variable")
	}
}
