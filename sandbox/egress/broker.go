package egress

import (
	"cmp"
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
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// Config configures a Broker. Without Hosts the Broker rejects every request; the other fields have defaults.
type Config struct {
	Hosts  policy.Hosts
	Limits Limits

	// The callbacks get the number of the connection, from 0, and are called from many goroutines.
	//
	// OnRequest is called before the name of a requested host is resolved, OnConnect after the connection is made and
	// before any byte passes. If one of them returns an error, the connection ends and the client gets the error.
	// OnEnd is called once for each connection that has ended or was rejected, before Serve returns.
	OnRequest func(number int64, c sandbox.Connection) error
	OnConnect func(number int64, c sandbox.Connection) error
	OnEnd     func(number int64, c sandbox.Connection)

	Resolve        func(ctx context.Context, name string) ([]netip.Addr, error)   // nil: the machine's resolver
	Dial           func(ctx context.Context, to netip.AddrPort) (net.Conn, error) // nil: TCP
	LocalAddresses func() ([]netip.Addr, error)                                   // nil: of all interfaces
	Clock          func() time.Time                                               // nil: time.Now
	Descriptors    *limit.Descriptors                                             // keeps a reserve; nil: none
}

// Limits bounds a Broker. A zero field means the default that its comment names.
type Limits struct {
	HeaderTimeout  time.Duration // for the header of a request; 10 s
	ConnectTimeout time.Duration // for resolving and connecting; 10 s
	IdleTimeout    time.Duration // without a byte in either direction; 2 min
	MaxDuration    time.Duration // of a connection; 10 min
	MaxHeaderBytes int           // of a request or a response; 64 KiB
	MaxConnections int           // at a time; 64. The client gets 503 for each connection over the limit
	MaxBytes       int64         // in both directions, of all connections together; 1 GiB
}

func (l Limits) orDefaults() Limits {
	return Limits{
		HeaderTimeout:  cmp.Or(l.HeaderTimeout, 10*time.Second),
		ConnectTimeout: cmp.Or(l.ConnectTimeout, 10*time.Second),
		IdleTimeout:    cmp.Or(l.IdleTimeout, 2*time.Minute),
		MaxDuration:    cmp.Or(l.MaxDuration, 10*time.Minute),
		MaxHeaderBytes: cmp.Or(l.MaxHeaderBytes, 64<<10),
		MaxConnections: cmp.Or(l.MaxConnections, 64),
		MaxBytes:       cmp.Or(l.MaxBytes, 1<<30),
	}
}

// Broker connects one sandbox to its allowed hosts during one run.
type Broker struct {
	Config
	totalBytes atomic.Int64 // in both directions, of all flows
	active     atomic.Int64 // flows that connect or are connected
	flows      atomic.Int64 // number of flows that were started
}

// New returns a Broker. Call Serve to start it.
func New(c Config) *Broker {
	c.Limits = c.Limits.orDefaults()
	allow := func(int64, sandbox.Connection) error { return nil }
	if c.OnRequest == nil {
		c.OnRequest = allow
	}
	if c.OnConnect == nil {
		c.OnConnect = allow
	}
	if c.OnEnd == nil {
		c.OnEnd = func(int64, sandbox.Connection) {}
	}
	if c.Resolve == nil {
		c.Resolve = resolve
	}
	if c.Dial == nil {
		c.Dial = dialTCP
	}
	if c.LocalAddresses == nil {
		c.LocalAddresses = interfaceAddresses
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return &Broker{Config: c}
}

// Environment returns the environment variables that tell programs the address of the proxy, in upper and in lower
// case, because programs differ in which they read.
func Environment(address string) map[string]string {
	url := "http://" + address
	return map[string]string{
		"HTTP_PROXY": url, "HTTPS_PROXY": url, "http_proxy": url, "https_proxy": url, "NO_PROXY": "", "no_proxy": "",
	}
}

// Serve serves the clients that connect to the listener until ctx ends, and then returns nil. It closes the listener
// and all connections, and returns after OnEnd has been called for each flow.
func (b *Broker) Serve(ctx context.Context, l net.Listener) error {
	// The flows have their own context. Its cause becomes the reason in their records.
	flowCtx, endFlows := context.WithCancelCause(context.WithoutCancel(ctx))
	h := &handler{Broker: b}
	server := &http.Server{
		Handler:     h,
		BaseContext: func(net.Listener) context.Context { return flowCtx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, clientConnKey{}, c)
		},
		ReadHeaderTimeout: b.Limits.HeaderTimeout, IdleTimeout: b.Limits.IdleTimeout,
		MaxHeaderBytes: b.Limits.MaxHeaderBytes, DisableGeneralOptionsHandler: true,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	stop := context.AfterFunc(ctx, func() {
		endFlows(errRunEnded) // before Close: a closed connection would be recorded as errClientLeft
		server.Close()
	})
	// Twice the number of flows, because idle clients and rejected requests also use a connection.
	err := server.Serve(newLimitedListener(l, 2*b.Limits.MaxConnections, b.Descriptors))
	ctxEnded := !stop()
	endFlows(errRunEnded)
	server.Close()
	h.wait()
	if ctxEnded {
		return nil
	}
	return err
}

// handler handles the requests of one call of Serve, and counts them.
type handler struct {
	*Broker
	mu       sync.Mutex
	closed   bool
	requests sync.WaitGroup
}

// startRequest reports whether a request may start. It returns false after wait was called.
func (h *handler) startRequest() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.requests.Add(1)
	return true
}

// wait returns when all requests have ended.
func (h *handler) wait() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.requests.Wait()
}

// clientConnKey is the key under which the context of a request has the client's connection.
type clientConnKey struct{}

func clientConn(r *http.Request) net.Conn { return r.Context().Value(clientConnKey{}).(net.Conn) }
