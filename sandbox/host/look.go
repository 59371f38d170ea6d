package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/hatch"
)

const lookTimeLimit = time.Second

// Look pictures the session's variables; only between runs. A session whose
// child cannot answer in a second has lost it.
func (s *Session) Look(ctx context.Context) (sandbox.Variables, error) {
	var v sandbox.Variables
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p == nil {
		return sandbox.Variables{Variables: map[string]sandbox.Variable{}, Globals: []string{}}, nil
	}
	p.Thaw()
	defer p.Freeze()
	if err := p.Hatch.Write(hatch.KindLook, struct{}{}); err != nil {
		return v, s.drop(p)
	}
	said := make(chan error, 1)
	go func() {
		kind, body, err := p.Hatch.Read()
		if err == nil && kind != hatch.KindValue {
			err = &hatch.IllegalFrame{Why: fmt.Sprintf("%c as an answer to a look", kind)}
		}
		if err == nil {
			err = json.Unmarshal(body, &v)
		}
		said <- err
	}()
	select {
	case err := <-said:
		if err != nil {
			return sandbox.Variables{}, errors.Join(s.drop(p), sandbox.Errorf(sandbox.FaultGone, "the session was lost; /session stays"))
		}
		return v, nil
	case <-time.After(lookTimeLimit):
	case <-ctx.Done():
	}
	err := s.drop(p)
	<-said // its hatch is closed
	return sandbox.Variables{}, errors.Join(err, sandbox.Errorf(sandbox.FaultGone, "the session did not answer within a second and was ended; /session stays"))
}
