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

// Rows returns the columns of the answer and the values of each, as protocol.AnswerRows does.
func (r *Request) Rows() ([]sandbox.Column, [][]any, error) { return protocol.AnswerRows(r.Answer) }

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
// another order and more often, and new ones are not an error.
func (k Keys) Replay(l *Log, isEdited bool) *Player {
	return &Player{keys: k, log: l, isEdited: isEdited, used: make([]bool, len(l.Requests))}
}

// Match is a request of a replay, and what the log has for it.
type Match struct {
	Sent     Request  // it has no answer
	Logged   *Request // that equals it, with its answer if the log keeps it; nil: the original sent no such request
	IsRepeat bool     // the replay has sent it more often than the original
}

// Next returns the match of a request of the replay. It returns *Diverged for a request of the original code that the
// original run did not send there, and for all that follow.
func (p *Player) Next(body []byte) (m Match, err error) {
	if p.diverged != nil {
		return m, p.diverged
	}
	got, err := p.keys.read(body)
	if err != nil {
		return m, err
	}
	m.Sent = got
	n := p.next
	p.next++
	if p.isEdited {
		p.find(&m)
		return m, nil
	}
	if n < len(p.log.Requests) && p.log.Requests[n].Hash == got.Hash {
		p.used[n] = true
		m.Logged = &p.log.Requests[n]
		return m, nil
	}
	p.diverged = &Diverged{Number: n + 1, Got: got}
	if n < len(p.log.Requests) {
		p.diverged.Want = &p.log.Requests[n]
	}
	return m, p.diverged
}

// find sets the logged request of edited code: the first one that it has not sent yet, or else the last one.
func (p *Player) find(m *Match) {
	for n := range p.log.Requests {
		q := &p.log.Requests[n]
		if q.Hash != m.Sent.Hash {
			continue
		}
		if m.Logged, m.IsRepeat = q, p.used[n]; !p.used[n] {
			p.used[n] = true
			return
		}
	}
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
