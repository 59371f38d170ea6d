package host

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/sandbox/hatch"
)

// shown is a Desk that shows everything as it is.
type shown struct{ Desk }

func (shown) Show(_ context.Context, o sandbox.Output) sandbox.Output { return o }

// What history could not be read with is not taken from a child; what is just less deep
// can be read.
func TestDeepFrames(t *testing.T) {
	for _, depth := range []int{maxDepth - 2, maxDepth + 1} {
		e := &sandbox.Execution{DebugInfo: sandbox.DebugInfo{Variables: map[string][]sandbox.Note{}}}
		s := &says{e: e, desk: shown{}, room: 1 << 20, notes: 1 << 20}
		deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		for name, err := range map[string]error{
			"note":   s.keepNote([]byte(`{"level":"INFO","data":` + deep + `}`)),
			"output": s.keepOutput(t.Context(), []byte(`{"data":{"text/plain":`+deep+`}}`)),
		} {
			var illegal *hatch.IllegalFrame
			if errors.As(err, &illegal) != (depth > maxDepth) {
				t.Errorf("a %s %d deep: %v", name, depth, err)
			}
		}
		text, err := json.Marshal(map[string]any{"history": []any{e}})
		if err == nil {
			var read any
			err = json.Unmarshal(text, &read)
		}
		if err != nil {
			t.Errorf("%d deep: %v", depth, err)
		}
	}
}
