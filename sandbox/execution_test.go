package sandbox

import (
	"encoding/json"
	"testing"
)

func TestKindOfEarlierArchivesIsNeMo(t *testing.T) {
	for text, want := range map[string]Kind{
		`{"kind": "facade"}`: KindNeMo, `{"kind": "nemo"}`: KindNeMo, `{"kind": "debug"}`: KindDebug,
	} {
		var e Execution
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.Kind != want {
			t.Errorf("%s: got %q, %v; want %q", text, e.Kind, err, want)
		}
	}
}
