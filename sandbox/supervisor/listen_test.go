package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/sandbox/protocol"
)

// shown is a Desk that shows everything as it is.
type shown struct{ RequestHandler }

func (shown) Show(_ context.Context, o sandbox.Output) sandbox.Output { return o }

// What history could not be read with is not taken from a child; what is just less deep
// can be read.
func TestDeepFrames(t *testing.T) {
	for _, depth := range []int{maxDepth - 2, maxDepth + 1} {
		e := &sandbox.Execution{DebugInfo: sandbox.DebugInfo{Variables: map[string][]sandbox.Note{}}}
		s := &says{e: e, desk: shown{}, room: 1 << 20, notes: 1 << 20}
		deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		var illegal *protocol.IllegalFrame
		if err := s.keepNote([]byte(`{"level":"INFO","data":` + deep + `}`)); errors.As(err, &illegal) != (depth > maxDepth) {
			t.Errorf("a note %d deep: %v", depth, err)
		}
		// What an object of the user's shows may be deep in all honesty: it is cut, and said.
		if err := s.keepOutput(t.Context(), []byte(`{"data":{"text/plain":`+deep+`}}`)); err != nil || (e.Truncated["outputs"] == 1) != (depth > maxDepth) || len(e.Outputs) == int(e.Truncated["outputs"]) {
			t.Errorf("an output %d deep: %d kept, truncated %v, %v", depth, len(e.Outputs), e.Truncated, err)
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
