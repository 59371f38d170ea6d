package run_test

import (
	"context"
	"errors"
	"testing"

	"glasshouse/dbaccess/history"
	"glasshouse/sandbox"
	"glasshouse/service/servicetest"
)

// historyWithoutArtifacts fails to record artifacts while fails is set.
type historyWithoutArtifacts struct {
	*history.Store
	fails bool
}

func (h *historyWithoutArtifacts) KeepArtifacts(ctx context.Context, list []sandbox.Artifact) error {
	if h.fails {
		return errors.New("the disk is full")
	}
	return h.Store.KeepArtifacts(ctx, list)
}

func TestLargeOutputThatCannotBeStoredStaysInline(t *testing.T) {
	t.Parallel()
	h := &historyWithoutArtifacts{}
	s := servicetest.Start(t, servicetest.WithHistory(func(store *history.Store) servicetest.History {
		h.Store = store
		return h
	}))
	for _, fails := range []bool{false, true} {
		h.fails = fails
		e, err := s.Runs.QuickExecute(t.Context(), ada, sandbox.Request{Code: "show", Kind: sandbox.KindQuick}, nil)
		if err != nil {
			t.Fatal(err)
		}
		data := e.Outputs[0].Data
		reference := data["application/vnd.glasshouse.artifact+json"]
		if isInline := len(data["text/html"]) == 300_002; isInline != fails || (reference == nil) != fails {
			t.Errorf("history fails: %v: got inline %v, reference %s", fails, isInline, reference)
		}
		if got := string(data["text/plain"]); got != `"page"` {
			t.Errorf("history fails: %v: got text/plain %s, want %q", fails, got, "page")
		}
		if want := map[bool]int{false: 1, true: 0}[fails]; len(e.Artifacts) != want {
			t.Errorf("history fails: %v: got %d artifacts, want %d", fails, len(e.Artifacts), want)
		}
	}
}
