package debugger

import (
	"errors"
	"sync"
)

// roots are the frames that a run begins in: of its statements, and of its last
// expression, which is compiled apart so that its value is the result. To who steps,
// they are one.
type roots struct {
	mu    sync.Mutex
	known map[int]*Frame // by the step that they were found at
}

// rootAt is the outermost frame at a step of the recording.
func (j *Journal) rootAt(step int) (*Frame, error) {
	j.roots.mu.Lock()
	defer j.roots.mu.Unlock()
	if f := j.roots.known[step]; f != nil {
		return f, nil
	}
	s, err := j.state(step)
	if err != nil {
		return nil, err
	}
	stack := s.Stack(s.Current)
	f := *stack[len(stack)-1]
	first := j.roots.known[1]
	j.roots.known = map[int]*Frame{step: &f} // the last step is another one as long as the run goes on
	if first != nil {
		j.roots.known[1] = first
	}
	return &f, nil
}

// join has a rule that stops in one root stop in the other, too: the run's own are at its
// first step and at its last.
func (j *Journal) join(r *rule, root *Frame) error {
	if !r.frames[root.Number] {
		return nil
	}
	for _, step := range []int{1, j.steps()} {
		f, err := j.rootAt(step)
		if err != nil && !errors.Is(err, ErrNoStep) { // it may be among those that were lost
			return err
		}
		if err == nil && f.Lane == root.Lane {
			r.frames[f.Number] = true
		}
	}
	return nil
}
