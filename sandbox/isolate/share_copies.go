package isolate

import (
	"errors"
	"time"

	"glasshouse/sandbox/isolate/procfs"
	"glasshouse/sandbox/protocol"
)

// A guest copies each page of its zygote's memory that it writes to. Python writes to the reference count of each
// object that it uses, and later writes the same number again. So half of the copies of an idle guest, about 2 MB, are
// equal to the pages of the zygote. Guests that are idle for long give them back.

const (
	// shareTimeout is how long a guest may take before it is ended. Nothing in it takes more than some milliseconds of
	// CPU time, except handlers of signals that user code has left behind.
	shareTimeout = time.Minute

	// maxShareCPU is the CPU time for giving back copies that does not count as the guest's.
	maxShareCPU = 20 * time.Millisecond
)

// shareLater makes a process give back its unchanged copies. The caller holds q.mu.
func (q *idleProcesses) shareLater(p *Process) {
	if !p.hasRun || p.neverFrozen {
		return
	}
	q.copies = append(q.copies, p)
	if !q.isSharing {
		q.isSharing = true
		go q.shareCopies()
	}
}

// shareCopies makes the processes in q.copies give back their unchanged copies, one after the other.
func (q *idleProcesses) shareCopies() {
	for {
		q.mu.Lock()
		if len(q.copies) == 0 {
			q.copies, q.isSharing = nil, false
			q.mu.Unlock()
			return
		}
		p := q.copies[0]
		q.copies = q.copies[1:]
		q.mu.Unlock()
		p.shareCopies()
	}
}

// shareCopies makes an idle process give back its unchanged copies. It does nothing if the process is in use.
func (p *Process) shareCopies() {
	p.use.Lock()
	defer p.use.Unlock()
	if p.isAwake || p.hasExited() || p.Conn.HasUnread() || procfs.CountThreads(p.pid) != 1 || !procfs.IsStopped(p.pid) {
		return
	}
	copies := procfs.CopiesOf(p.pid)
	if len(copies) == 0 || !p.reopen() {
		return
	}
	before := p.CPU()
	p.EnforceLimits()
	p.Thaw()
	err := p.exchangeCopies(copies)
	p.Freeze()
	if err != nil {
		p.Kill() // the next run starts another guest
	}
	p.shareCPU.Add(int64(min(max(p.CPU()-before, 0), maxShareCPU)))
	p.idlers.mu.Lock()
	defer p.idlers.mu.Unlock()
	if !p.isGone {
		p.closeSpareFiles()
	}
}

// reopen opens the files of a process that has been idle for long and is not closed. It reports whether it did.
func (p *Process) reopen() bool {
	p.idlers.mu.Lock()
	defer p.idlers.mu.Unlock()
	return !p.isGone && p.idle == nil && p.openFiles() == nil
}

// exchangeCopies sends the guest its copies, and waits until it has given back those that are unchanged.
func (p *Process) exchangeCopies(copies []byte) error {
	err := p.Conn.WriteCopies(copies)
	if err == nil {
		err = p.Conn.SetReadDeadline(time.Now().Add(shareTimeout))
	}
	if err == nil {
		var kind protocol.Kind
		if kind, _, err = p.Conn.Read(); err == nil && kind != protocol.KindValue {
			err = p.Conn.Illegal("another frame came as the answer to the copies")
		}
	}
	return errors.Join(err, p.Conn.SetReadDeadline(time.Time{}))
}
