package debugger

import (
	"errors"
	"sync"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
)

// Recording is the recording of one run, with the program that ran. It may be read while it grows; all methods may be
// called from any goroutine.
type Recording struct {
	Source  []string // the program's lines
	journal *recording.Journal
	stream  *stepStream
	roots   rootFrames
	ends    programEnd
	held    heldSteps
	program programCache
	edits   editList
	lineMap lineMapCache
}

// heldSteps counts the steps after a step that the recorder has not sent yet.
type heldSteps struct {
	sync.Mutex
	steps uint64
	after int
}

// NewRecording returns an empty recording of a run of code.
func NewRecording(code string) (*Recording, error) {
	journal, err := recording.NewJournal()
	return &Recording{Source: program.Split(code), journal: journal}, err
}

// OpenRecording returns the stored recording of a run of code. See recording.Open.
func OpenRecording(code string, chunks []sandbox.Chunk, load func(sequence int) ([]byte, error)) (*Recording, error) {
	journal, err := recording.Open(chunks, load)
	return &Recording{Source: program.Split(code), journal: journal}, err
}

// CheckChunk returns an error for a stored chunk that is damaged or forged. See recording.Check.
func CheckChunk(c sandbox.Chunk) error { return recording.Check(c) }

// IndexBytes returns the estimated memory in bytes of the indexes of a stored recording, which are kept while it is
// open.
func (r *Recording) IndexBytes() int { return r.journal.IndexBytes() }

// Append adds a piece of the recorder's stream. See recording.Journal.Append.
func (r *Recording) Append(b []byte) error { return r.journal.Append(b) }

// End completes the recording, and passes the unfinished lines to the function that StreamLines registered.
func (r *Recording) End() {
	r.loseHeldSteps()
	r.journal.End(func(last *recording.State) {
		if r.stream != nil {
			r.stream.end(last)
		}
	})
}

// TakeChunks returns the chunks that were completed since the last call, to be stored.
func (r *Recording) TakeChunks() []sandbox.Chunk { return r.journal.TakeChunks() }

// Steps returns the number of the last step.
func (r *Recording) Steps() int { return r.journal.Steps() }

// StreamLines registers send, which is called for each line of the program when the line has run, until send returns
// false. Call StreamLines before the first Append. send must not call methods of the Recording.
func (r *Recording) StreamLines(send func(Line) (more bool)) {
	closed := false
	r.journal.Follow(func(t *recording.Table, s *recording.State, rec *recording.Record) {
		if closed {
			return
		}
		if r.stream == nil {
			r.stream = newStepStream(t, s, r.Source, func(l Line) {
				if !closed {
					closed = !send(l)
				}
			})
		}
		r.stream.see(s, rec)
	})
}

// rootFrames caches the outermost frames at the first and the last step of a recording. A run has up to two outermost
// frames: of its statements, and of its last expression, which is compiled separately so that its value is the result.
// Stepping treats them as one.
type rootFrames struct {
	mu     sync.Mutex
	byStep map[int]*recording.Frame
}

// at returns a copy of the outermost frame at a step.
func (c *rootFrames) at(r *recording.Reader, step int) (*recording.Frame, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.byStep[step]; f != nil {
		return f, nil
	}
	s, err := r.State(step)
	if err != nil {
		return nil, err
	}
	stack := s.Stack(s.Current)
	f := *stack[len(stack)-1]
	first := c.byStep[1]
	c.byStep = map[int]*recording.Frame{step: &f} // drops earlier entries: the last step changes while the run goes on
	if first != nil {
		c.byStep[1] = first
	}
	return &f, nil
}

// addOtherRoot adds the run's other outermost frame to the frames of a rule that stops in root.
func (c *rootFrames) addOtherRoot(r *recording.Reader, rule *stopRule, root *recording.Frame) error {
	if !rule.frames[root.Number] {
		return nil
	}
	for _, step := range []int{1, r.Steps()} {
		f, err := c.at(r, step)
		if err != nil && !errors.Is(err, recording.ErrNoStep) { // a step that was lost has no frame
			return err
		}
		if err == nil && f.Thread == root.Thread {
			rule.frames[f.Number] = true
		}
	}
	return nil
}
