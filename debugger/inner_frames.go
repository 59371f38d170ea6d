package debugger

import (
	"context"
	"slices"
)

// innerFrame is a frame that an uncaught exception has left, of code that the program made while it ran, as with exec.
// Such code is not recorded, so the frame can be inspected only where the program is stopped.
type innerFrame struct {
	Frame    uint64 `json:"frame"`
	Function string `json:"function"`
	Line     int64  `json:"line"`
}

// Bounds of the guest's report of inner frames, which the program can forge.
const (
	maxInnerFrames  = 20
	firstInnerFrame = 1 << 40 // recorded frames have smaller numbers
)

// checkedInner returns the valid ones of the frames that the guest reports, the outermost first.
func checkedInner(reported []innerFrame) (out []innerFrame) {
	for i, f := range reported[:min(len(reported), maxInnerFrames)] {
		f.Frame = firstInnerFrame + uint64(i)
		f.Function = shorten(f.Function, maxReasonChars)
		out = append(out, f)
	}
	return out
}

// innerFrames returns the inner frames at the session's position, the innermost first.
func (s *Session) innerFrames() []innerFrame {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running || !s.position.Live {
		return nil
	}
	frames := slices.Clone(s.liveInner)
	slices.Reverse(frames)
	return frames
}

// isInner reports whether a frame is an inner frame at the session's position.
func (s *Session) isInner(frame uint64) bool {
	return slices.ContainsFunc(s.innerFrames(), func(f innerFrame) bool { return f.Frame == frame })
}

// innerVariables returns a page of the variables of an inner frame.
func (s *Session) innerVariables(ctx context.Context, frame uint64, start, count int) ([]VariableView, error) {
	page, err := askFor[struct {
		Items []liveView `json:"items"`
	}](ctx, s, map[string]any{"do": "page", "expression": "", "frame": frame, "start": start, "count": count})
	out := []VariableView{}
	for _, item := range page.Items {
		out = append(out, item.view())
	}
	return out, err
}
