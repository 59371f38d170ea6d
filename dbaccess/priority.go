package dbaccess

import (
	"sync"
	"time"

	"glasshouse/policy/limit"
)

// priorities divides the CPU time of the database server among users by their weights: the long statements of a user
// together have the priority of one, or less beside a user with a larger weight. limit.Share bounds the short ones.
type priorities struct {
	set   func(pid uint32, nice int) // nil: priorities does nothing
	users *limit.Users

	mu      sync.Mutex
	running map[string]map[*longStatement]bool // by user
}

// longStatement is a statement that has run for longAfter.
type longStatement struct {
	pid     uint32 // of the server's process
	nice    int
	isEnded bool
}

// longAfter is the time from which a statement is long.
const longAfter = 20 * time.Millisecond

// begin notes that a statement of a user begins in the server's process with a pid. The caller calls end when the
// statement has ended, and before the process gets another one.
func (p *priorities) begin(user string, pid uint32) (end func()) {
	if p.set == nil {
		return func() {}
	}
	s := &longStatement{pid: pid}
	timer := time.AfterFunc(longAfter, func() { p.add(user, s) })
	return func() {
		if !timer.Stop() {
			p.remove(user, s)
		}
	}
}

func (p *priorities) add(user string, s *longStatement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.isEnded {
		return
	}
	if p.running == nil {
		p.running = map[string]map[*longStatement]bool{}
	}
	if p.running[user] == nil {
		p.running[user] = map[*longStatement]bool{}
	}
	p.running[user][s] = true
	p.divide()
}

func (p *priorities) remove(user string, s *longStatement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.isEnded = true
	if !p.running[user][s] {
		return // it waits for mu
	}
	p.change(s, 0)
	if delete(p.running[user], s); len(p.running[user]) == 0 {
		delete(p.running, user)
	}
	p.divide()
}

// divide gives each long statement its part of the user's priority. The caller holds mu.
func (p *priorities) divide() {
	counts := make(map[string]int, len(p.running))
	for user, statements := range p.running {
		counts[user] = len(statements)
	}
	for user, divisor := range p.users.Divisors(counts) {
		for s := range p.running[user] {
			p.change(s, limit.Nice(divisor))
		}
	}
}

func (p *priorities) change(s *longStatement, nice int) {
	if s.nice != nice {
		s.nice = nice
		p.set(s.pid, nice)
	}
}
