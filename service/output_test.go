package service_test

import (
	"context"
	"errors"
	"testing"

	"glasshouse/dbaccess/history"
	"glasshouse/sandbox"
	"glasshouse/service"
)

// forgetful is a history that takes no artifacts for a while.
type forgetful struct {
	*history.Store
	away bool
}

func (f *forgetful) KeepArtifacts(ctx context.Context, list []sandbox.Artifact) error {
	if f.away {
		return errors.New("there is no room")
	}
	return f.Store.KeepArtifacts(ctx, list)
}

// A large part of a rich output is a reference where that can be kept, and else stays
// where it is: it is never lost.
func TestALargePartThatCannotBeKeptStays(t *testing.T) {
	kept := &forgetful{}
	s, _, _, _ := startWith(t, func(h *history.Store) service.History { kept.Store = h; return kept })
	s.ArtifactBytes = 1 << 30
	for _, away := range []bool{false, true} {
		kept.away = away
		e, err := s.QuickExecute(t.Context(), ada, service.Job{Code: "show", Kind: sandbox.KindQuick}, nil)
		if err != nil {
			t.Fatal(err)
		}
		data := e.Outputs[0].Data
		reference := data["application/vnd.glasshouse.artifact+json"]
		if away != (reference == nil) || away != (len(data["text/html"]) == 300_002) || string(data["text/plain"]) != `"page"` {
			t.Errorf("history away %v: the reference is %s, %d bytes are there", away, reference, len(data["text/html"]))
		}
		if want := map[bool]int{false: 1, true: 0}[away]; len(e.Artifacts) != want {
			t.Errorf("history away %v: %d artifacts", away, len(e.Artifacts))
		}
	}
}
