package inputlog

import (
	"fmt"

	"glasshouse/sandbox"
	"glasshouse/sandbox/protocol"
)

// Diverged is the error for a request that the original run did not send.
type Diverged struct {
	Number int      // of the request, from 1
	Got    Request  // that the replay sent; it has no answer
	Want   *Request // that the original sent; nil: it sent no more
}

func (d *Diverged) Error() string {
	if d.Want == nil {
		return fmt.Sprintf("the replay has sent more requests than the original run, which sent %d", d.Number-1)
	}
	return fmt.Sprintf("request %d of the replay is not that of the original run", d.Number)
}

// Columns returns the columns of the rows that answered a request; nil: no rows did, or they are not kept.
func (r *Request) Columns() ([]sandbox.Column, error) { return protocol.AnswerColumns(r.Answer) }

// Player answers the requests of a replay from a log. One goroutine uses it.
type Player struct {
	keys     Keys
	log      *Log
	isEdited bool
	used     []bool
	next     int // number of requests so far
	diverged *Diverged
}

// Replay returns a Player of a log. isEdited says that the code is not that of the original: its requests may come in
// another order, and new ones are not an error.
func (k Keys) Replay(l *Log, isEdited bool) *Player {
	return &Player{keys: k, log: l, isEdited: isEdited, used: make([]bool, len(l.Requests))}
}

// Next returns the logged request that equals a request of the replay, with its answer if the log keeps it. It returns
// nil for a request of edited code that the original did not send, and *Diverged for such a request of the original
// code, and for all that follow.
func (p *Player) Next(body []byte) (*Request, error) {
	if p.diverged != nil {
		return nil, p.diverged
	}
	got, err := p.keys.read(body)
	if err != nil {
		return nil, err
	}
	n := p.next
	p.next++
	if p.isEdited {
		for n := range p.log.Requests {
			if q := &p.log.Requests[n]; !p.used[n] && q.Hash == got.Hash {
				p.used[n] = true
				return q, nil
			}
		}
		return nil, nil
	}
	if n < len(p.log.Requests) && p.log.Requests[n].Hash == got.Hash {
		p.used[n] = true
		return &p.log.Requests[n], nil
	}
	p.diverged = &Diverged{Number: n + 1, Got: got}
	if n < len(p.log.Requests) {
		p.diverged.Want = &p.log.Requests[n]
	}
	return nil, p.diverged
}

// Diverged returns where the replay left the log; nil: it did not.
func (p *Player) Diverged() *Diverged { return p.diverged }

// Unused returns the number of requests of the original that the replay has not sent.
func (p *Player) Unused() (n int) {
	for _, used := range p.used {
		if !used {
			n++
		}
	}
	return n
}
