package why

import (
	"fmt"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

// handled is an exception that the program caught, each time at one line.
type handled struct {
	step, times int
	line        int64  // where it was raised
	kind        uint64 // a name: its type
	caughtAt    int64  // the line of the catching frame at that time
	caughtIn    string
	text        string // the first time
}

// describe returns the exception as a sentence. how says what happened to it, such as "was caught".
func (h *handled) describe(how string, isComplete bool, source []string) string {
	times := "once,"
	if h.times > 1 {
		times = fmt.Sprintf("%d times, first", h.times)
		if !isComplete {
			times = "at least " + times
		}
	}
	where := ""
	if h.caughtAt != h.line {
		where = fmt.Sprintf(" (called in line %d)", h.caughtAt)
	}
	return fmt.Sprintf("%s %s %s at step %d%s: %s", h.text, how, times, h.step, where,
		strings.TrimSpace(program.Line(source, h.line)))
}

// maxHandled bounds the different exceptions of one recording.
const maxHandled = 200

// handledTracker finds, record by record, the exceptions that the program catches. It counts those of one type that are
// raised at one line together.
type handledTracker struct {
	table  *recording.Table
	list   []handled
	raised *handled // on its way; nil if there is none
}

// see examines a record that has been applied to s.
func (t *handledTracker) see(s *recording.State, rec *recording.Record) {
	switch rec.Kind {
	case recording.KindRaise:
		f := s.CurrentFrame()
		if t.raised == nil {
			t.raised = &handled{step: f.Step, line: f.Line, kind: f.Raised.Type, times: 1,
				text: program.Clip(s.ExceptionText(t.table, *f.Raised), 120)}
		}
		t.raised.caughtAt, t.raised.caughtIn = f.Line, t.table.FunctionName(f.Code)
	case recording.KindHandled:
		t.keep()
	case recording.KindLost:
		t.raised = nil
	}
}

// keep counts the exception that has been caught.
func (t *handledTracker) keep() {
	if t.raised == nil {
		return
	}
	for i := range t.list {
		if t.list[i].line == t.raised.line && t.list[i].kind == t.raised.kind {
			t.list[i].times++
			t.raised = nil
			return
		}
	}
	if len(t.list) < maxHandled {
		t.list = append(t.list, *t.raised)
	}
	t.raised = nil
}
