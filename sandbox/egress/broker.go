package egress

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// Config is what a Broker is made of. Only Hosts has to be given; without it
// everything is refused.
type Config struct {
	Hosts  policy.Hosts
	Limits Limits

	// Asked is called for each connection that is asked for, before its name is looked up,
	// and Opened when it has been made, before anything passes; an error, which the code
	// is told, ends it there. Log is called once for each that is over, refused ones too,
	// before Serve returns. They are called from many goroutines, and told the number of
	// the connection, from 0.
	OnRequest func(number int64, c sandbox.Connection) error
	OnConnect func(number int64, c sandbox.Connection) error
	OnEnd     func(number int64, c sandbox.Connection)

	Resolve        func(ctx context.Context, name string) ([]netip.Addr, error)   // nil: the machine's resolver
	Dial           func(ctx context.Context, to netip.AddrPort) (net.Conn, error) // nil: TCP
	LocalAddresses func() ([]netip.Addr, error)                                   // the machine's own addresses; nil: those of its interfaces
	Clock          func() time.Time                                               // nil: time.Now
}

// Limits bounds a Broker. The zero value of a field means its default.
type Limits struct {
	HeaderTimeout  time.Duration // for the whole head of a request; 10 s
	ConnectTimeout time.Duration // for resolving and connecting; 10 s
	IdleTimeout    time.Duration // without a byte either way; 2 min
	MaxDuration    time.Duration // for one connection; 10 min
	MaxHeaderBytes int           // of a request or an answer; 64 KiB
	MaxConnections int           // at a time; 64. One more is answered 503
	MaxBytes       int64         // both ways, of all connections together; 1 GiB
}

func (l Limits) orDefaults() Limits {
	return Limits{
		HeaderTimeout: or(l.HeaderTimeout, 10*time.Second), ConnectTimeout: or(l.ConnectTimeout, 10*time.Second), IdleTimeout: or(l.IdleTimeout, 2*time.Minute), MaxDuration: or(l.MaxDuration, 10*time.Minute),
		MaxHeaderBytes: or(l.MaxHeaderBytes, 64<<10), MaxConnections: or(l.MaxConnections, 64), MaxBytes: or(l.MaxBytes, 1<<30),
	}
}

func or[T comparable](given, otherwise T) T {
	var zero T
	if given == zero {
		return otherwise
	}
	return given
}

// Broker connects one sandbox to its allowed hosts, for one run.
type Broker struct {
	Config
	moved  atomic.Int64 // bytes, both ways, of all flows
	active atomic.Int64 // flows
	flows  atomic.Int64 // in all
}

// New makes a Broker; it does nothing until Serve.
func New(c Config) *Broker {
	c.Limits = c.Limits.orDefaults()
	if c.OnEnd == nil {
		c.OnEnd = func(int64, sandbox.Connection) {}
	}
	none := func(int64, sandbox.Connection) error { return nil }
	if c.OnRequest == nil {
		c.OnRequest = none
	}
	if c.OnConnect == nil {
		c.OnConnect = none
	}
	if c.Resolve == nil {
		c.Resolve = resolve
	}
	if c.Dial == nil {
		c.Dial = dial
	}
	if c.LocalAddresses == nil {
		c.LocalAddresses = own
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return &Broker{Config: c}
}

// Environment is the variables by which programs find the proxy that listens at
// address, in both ways of writing them that are in use.
func Environment(address string) map[string]string {
	url := "http://" + address
	return map[string]string{"HTTP_PROXY": url, "HTTPS_PROXY": url, "http_proxy": url, "https_proxy": url, "NO_PROXY": "", "no_proxy": ""}
}

// Serve brokers what connects to the listener until ctx ends, which is no
// error. It closes the listener, ends every connection, and returns when all have
// been logged.
func (b *Broker) Serve(ctx context.Context, l net.Listener) error {
	// Of its own, so that its end has a cause that records can tell.
	base, end := context.WithCancelCause(context.WithoutCancel(ctx))
	s := &serving{Broker: b}
	server := &http.Server{
		Handler: s, BaseContext: func(net.Listener) context.Context { return base },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, clientKey{}, c) },
		ReadHeaderTimeout: b.Limits.HeaderTimeout, IdleTimeout: b.Limits.IdleTimeout, MaxHeaderBytes: b.Limits.MaxHeaderBytes,
		DisableGeneralOptionsHandler: true, ErrorLog: log.New(io.Discard, "", 0),
	}
	stop := context.AfterFunc(ctx, func() {
		end(errEnded) // before a closed client can look like one that left
		server.Close()
	})
	// Twice the flows: room for clients that wait between requests, and for saying no.
	err := server.Serve(newGate(l, 2*b.Limits.MaxConnections))
	asked := !stop()
	end(errEnded)
	server.Close()
	s.wait()
	if asked {
		return nil
	}
	return err
}

// serving is one call of Serve: it keeps count of the requests under way.
type serving struct {
	*Broker
	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// enter admits a request, until wait has been called.
func (s *serving) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

func (s *serving) wait() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.work.Wait()
}

// clientKey is where a request's context has the connection that it came by.
type clientKey struct{}

func client(r *http.Request) net.Conn { return r.Context().Value(clientKey{}).(net.Conn) }
