package supervisor

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/protocol"
)

// A client cannot parse a history with deeply nested JSON. So the supervisor treats such a
// note as illegal, and cuts such an output: an object of a user may be deep without intent.
func TestDeepJSONIsNotKept(t *testing.T) {
	for _, depth := range []int{maxDepth - 2, maxDepth + 1} {
		isTooDeep := depth > maxDepth
		l := &runLoop{
			process:   &isolate.Process{Conn: protocol.NewConn(nil)},
			debugInfo: sandbox.DebugInfo{Variables: map[string][]sandbox.Note{}}, truncated: map[string]int64{},
			outputBytesLeft: 1 << 20, noteBytesLeft: 1 << 20, meter: &workMeter{},
		}
		deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		var illegal *protocol.IllegalFrame
		if err := l.keepNote([]byte(`{"level":"INFO","data":` + deep + `}`)); errors.As(err, &illegal) != isTooDeep {
			t.Errorf("note %d levels deep: got error %v, want an illegal frame: %v", depth, err, isTooDeep)
		}
		err := l.keepOutput(t.Context(), []byte(`{"role":"display","data":{"text/plain":`+deep+`}}`))
		if err != nil || (l.truncated["outputs"] == 1) != isTooDeep || (len(l.outputs) == 0) != isTooDeep {
			t.Errorf("output %d levels deep: got %d outputs, truncated %v, error %v; want it cut: %v",
				depth, len(l.outputs), l.truncated, err, isTooDeep)
		}
		text, err := json.Marshal(map[string]any{"history": []any{sandbox.Execution{
			DebugInfo: l.debugInfo, Outputs: l.outputs}},
		})
		if err == nil {
			var parsed any
			err = json.Unmarshal(text, &parsed)
		}
		if err != nil {
			t.Errorf("%d levels deep: the record cannot be parsed: %v", depth, err)
		}
	}
}
