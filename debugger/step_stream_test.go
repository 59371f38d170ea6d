package debugger

import (
	"testing"

	"glasshouse/debugger/recording/recordingtest"
)

// A page of lines equals the same range of all lines.
func TestPageOfLinesEqualsPartOfAllLines(t *testing.T) {
	t.Parallel()
	const turns = 20_000
	r := recordingOf(t, recordingtest.Loop(turns), "first", "second", "third")
	whole, err := r.Lines(1, 3*turns)
	if err != nil || len(whole) != 3*turns {
		t.Fatalf("got %d lines, %v, want %d", len(whole), err, 3*turns)
	}
	for _, first := range []int{1, 2, 30_000, 3*turns - 9} {
		page, err := r.Lines(first, first+9)
		if err != nil || len(page) != 10 {
			t.Fatalf("from %d: got %d lines, %v, want 10", first, len(page), err)
		}
		for i, got := range page {
			want := whole[first-1+i]
			if got.Step != first+i || got.Code != want.Code || got.Variables["x"] != want.Variables["x"] {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	}
	if l := whole[3*777+1]; l.Code != "second" || l.Variables["x"] != "777" || len(l.Changed) != 1 {
		t.Errorf("got %+v, want the second line with a change of x to 777", l)
	}
}
