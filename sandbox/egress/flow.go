package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// What ends a flow before its time; the record has it as the reason.
var (
	errIdle  = errors.New("cut: no byte for too long")
	errWhole = errors.New("cut: open for too long")
	errBytes = errors.New("cut: the run has used all its bytes of network")
	errEnded = errors.New("cut: the run ended")
	errLeft  = errors.New("cut: the code did not wait for it")
)

// flow is one connection being brokered, from the request for it to its record.
type flow struct {
	broker   *Broker
	ctx      context.Context // ends with the flow; its cause says why
	cancel   context.CancelCauseFunc
	release  context.CancelFunc
	idle     *time.Timer
	number   int64
	record   sandbox.Connection
	writing  sync.Mutex // a Write to the host, and the count of it
	sent     atomic.Int64
	received atomic.Int64
}

func (b *Broker) begin(ctx context.Context, to policy.Target) *flow {
	f := &flow{broker: b, number: b.flows.Add(1) - 1, record: sandbox.Connection{Host: to.Name, Port: int(to.Port), Status: sandbox.ConnectionAllowed, StartedAt: b.Clock()}}
	if to.Name == "" {
		f.record.Host = to.Addr.String()
	}
	ctx, f.release = context.WithTimeoutCause(ctx, b.Limits.MaxDuration, errWhole)
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	f.idle = time.AfterFunc(b.Limits.IdleTimeout, func() { f.cancel(errIdle) })
	return f
}

// fail notes why a flow came to nothing.
func (f *flow) fail(why *no) {
	f.record.Status, f.record.Reason = why.status, why.reason
}

// cut says what ended the flow before its time, nil where nothing did.
func (f *flow) cut() error {
	switch cause := context.Cause(f.ctx); cause {
	case errIdle, errWhole, errBytes, errEnded:
		return cause
	}
	return nil
}

// finish ends the flow, whatever is left of it, and logs it.
func (f *flow) finish() {
	f.idle.Stop()
	if cause := f.cut(); cause != nil && f.record.Reason == "" {
		f.record.Reason = cause.Error()
	}
	f.cancel(nil)
	f.release()
	f.writing.Lock() // an answer may be faster than the return of the Write that it answers
	defer f.writing.Unlock()
	f.record.BytesSent, f.record.BytesReceived = f.sent.Load(), f.received.Load()
	f.record.DurationMS = float64(f.broker.Clock().Sub(f.record.StartedAt)) / float64(time.Millisecond)
	f.broker.OnEnd(f.number, f.record)
}

// through wraps the connection that was made for the flow: what passes is counted
// and keeps the flow awake, and the flow's end closes it.
func (f *flow) through(c net.Conn) *counted {
	context.AfterFunc(f.ctx, func() { c.Close() })
	return &counted{Conn: c, flow: f}
}

// ask tells that the flow is wanted, or why it may not be.
func (f *flow) ask(to policy.Target) *no {
	if err := f.broker.OnRequest(f.number, f.record); err != nil {
		return refused(to.String()+" is not connected to: "+err.Error(), "")
	}
	return nil
}

// open tells that the flow goes to an address from now on, or why it may not.
func (f *flow) open(to policy.Target, at netip.AddrPort) *no {
	f.record.Address = at.String()
	now := f.record
	now.Status = sandbox.ConnectionOpen
	if err := f.broker.OnConnect(f.number, now); err != nil {
		return failed(http.StatusServiceUnavailable, to.String()+" is not connected to: "+err.Error())
	}
	return nil
}

// passed counts bytes of one Read or Write, and makes an error of those that are
// too many; they are the last.
func (f *flow) passed(way *atomic.Int64, n int, err error) error {
	if n <= 0 {
		return err
	}
	way.Add(int64(n))
	f.idle.Reset(f.broker.Limits.IdleTimeout)
	if f.broker.moved.Add(int64(n)) > f.broker.Limits.MaxBytes {
		f.cancel(errBytes)
		return errBytes
	}
	return err
}

// counted is a flow's connection to the host.
type counted struct {
	net.Conn
	flow *flow
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.flow.passed(&c.flow.received, n, err)
}

func (c *counted) Write(p []byte) (int, error) {
	c.flow.writing.Lock()
	defer c.flow.writing.Unlock()
	n, err := c.Conn.Write(p)
	return n, c.flow.passed(&c.flow.sent, n, err)
}

func (c *counted) CloseWrite() error { return closeWrite(c.Conn) }
