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

// The causes that end a flow early. They are the reason in the flow's record.
var (
	errIdle        = errors.New("cut: no byte for too long")
	errMaxDuration = errors.New("cut: open for too long")
	errMaxBytes    = errors.New("cut: the run has used all its bytes of network traffic")
	errRunEnded    = errors.New("cut: the run ended")
	errClientLeft  = errors.New("cut: the code did not wait for the response")
)

// flow is one connection through the Broker, from the request for it to its record.
type flow struct {
	broker  *Broker
	ctx     context.Context // ends with the flow; its cause says why
	cancel  context.CancelCauseFunc
	release context.CancelFunc // of the timer of MaxDuration
	idle    *time.Timer
	number  int64
	record  sandbox.Connection

	writing  sync.Mutex // held while bytes are written to the host and counted
	sent     atomic.Int64
	received atomic.Int64
}

func (b *Broker) newFlow(ctx context.Context, to policy.Target) *flow {
	f := &flow{broker: b, number: b.flows.Add(1) - 1, record: sandbox.Connection{
		Host: to.Name, Port: int(to.Port), Status: sandbox.ConnectionAllowed, StartedAt: b.Clock(),
	}}
	if to.Name == "" {
		f.record.Host = to.Addr.String()
	}
	ctx, f.release = context.WithTimeoutCause(ctx, b.Limits.MaxDuration, errMaxDuration)
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	f.idle = time.AfterFunc(b.Limits.IdleTimeout, func() { f.cancel(errIdle) })
	return f
}

// reject records why the flow got no connection.
func (f *flow) reject(r *rejection) {
	f.record.Status, f.record.Reason = r.status, r.reason
}

// cutCause returns what ended the flow early, or nil.
func (f *flow) cutCause() error {
	switch cause := context.Cause(f.ctx); cause {
	case errIdle, errMaxDuration, errMaxBytes, errRunEnded:
		return cause
	}
	return nil
}

// finish ends the flow and calls OnEnd.
func (f *flow) finish() {
	f.idle.Stop()
	if cause := f.cutCause(); cause != nil && f.record.Reason == "" {
		f.record.Reason = cause.Error()
	}
	f.cancel(nil)
	f.release()
	f.writing.Lock() // a response may arrive before the Write of its request has returned
	defer f.writing.Unlock()
	f.record.BytesSent, f.record.BytesReceived = f.sent.Load(), f.received.Load()
	f.record.DurationMS = float64(f.broker.Clock().Sub(f.record.StartedAt)) / float64(time.Millisecond)
	f.broker.OnEnd(f.number, f.record)
}

// onRequest calls OnRequest and returns a rejection if it returns an error.
func (f *flow) onRequest(to policy.Target) *rejection {
	if err := f.broker.OnRequest(f.number, f.record); err != nil {
		return refused("no connection to "+to.String()+": "+err.Error(), "")
	}
	return nil
}

// onConnect records the address, calls OnConnect and returns a rejection if it returns an error.
func (f *flow) onConnect(to policy.Target, at netip.AddrPort) *rejection {
	f.record.Address = at.String()
	open := f.record
	open.Status = sandbox.ConnectionOpen
	if err := f.broker.OnConnect(f.number, open); err != nil {
		return failed(http.StatusServiceUnavailable, "no connection to "+to.String()+": "+err.Error())
	}
	return nil
}

// wrap returns the flow's connection to the host, which counts its bytes, restarts the idle time with each byte, and is
// closed when the flow ends.
func (f *flow) wrap(c net.Conn) *countedConn {
	context.AfterFunc(f.ctx, func() { c.Close() })
	return &countedConn{Conn: c, flow: f}
}

// count counts the n bytes of one Read or Write. If the total exceeds MaxBytes, count ends the flow and returns an
// error; otherwise it returns err.
func (f *flow) count(direction *atomic.Int64, n int, err error) error {
	if n <= 0 {
		return err
	}
	direction.Add(int64(n))
	f.idle.Reset(f.broker.Limits.IdleTimeout)
	if f.broker.totalBytes.Add(int64(n)) > f.broker.Limits.MaxBytes {
		f.cancel(errMaxBytes)
		return errMaxBytes
	}
	return err
}

// countedConn is a flow's connection to the host.
type countedConn struct {
	net.Conn
	flow *flow
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.flow.count(&c.flow.received, n, err)
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.flow.writing.Lock()
	defer c.flow.writing.Unlock()
	n, err := c.Conn.Write(p)
	return n, c.flow.count(&c.flow.sent, n, err)
}

func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }
