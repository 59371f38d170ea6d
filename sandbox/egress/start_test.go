package egress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/egress"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// internet is the world outside, as the tests have it: names with public
// addresses, and real servers on this machine behind these.
type internet struct {
	mu      sync.Mutex
	names   map[string][]string
	servers map[string]string // "address:port" to where it really is
	looked  []string          // every name that was looked up
	dialled []string          // every address that was connected to
}

func newInternet() *internet {
	return &internet{names: map[string][]string{}, servers: map[string]string{}}
}

func (i *internet) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.looked = append(i.looked, name)
	var addrs []netip.Addr
	for _, a := range i.names[name] {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	if _, known := i.names[name]; !known {
		return nil, &net.DNSError{Err: "no such host", Name: name, Server: "10.9.8.7:53", IsNotFound: true}
	}
	return addrs, nil
}

func (i *internet) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	i.mu.Lock()
	i.dialled = append(i.dialled, to.String())
	at, ok := i.servers[to.String()]
	i.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("nobody is at %s", to)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", at)
}

// host gives a server on this machine a name and a public address.
func (i *internet) host(name, address, port string, l net.Addr) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.names[name] = []string{address}
	i.servers[net.JoinHostPort(address, port)] = l.String()
}

// web serves plain HTTP as a host of the internet.
func (i *internet) web(t testing.TB, name, address string, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	i.host(name, address, "80", s.Listener.Addr())
	return s
}

// served is a broker at work and what a sandbox sees of it.
type served struct {
	*internet
	t       testing.TB
	address string // of the proxy
	end     context.CancelFunc
	done    chan error
	mu      sync.Mutex
	log     []sandbox.Connection
	logged  chan struct{} // one for each in log
}

// serve starts a broker for some entries of allowed_hosts.
func serve(t testing.TB, i *internet, entries string, change ...func(*egress.Config)) *served {
	t.Helper()
	hosts, err := policy.ParseHosts(strings.Fields(entries))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{internet: i, t: t, address: l.Addr().String(), done: make(chan error, 1), logged: make(chan struct{}, 1000)}
	c := egress.Config{Hosts: hosts, Resolve: i.resolve, Dial: i.dial, LocalAddresses: func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("44.0.0.44")}, nil }}
	c.OnEnd = func(_ int64, c sandbox.Connection) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log = append(s.log, c)
		s.logged <- struct{}{}
	}
	for _, f := range change {
		f(&c)
	}
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	go func() { s.done <- egress.New(c).Serve(ctx, l) }()
	t.Cleanup(func() { s.stop() })
	return s
}

// stop ends the broker and returns what it logged; Serve has returned by then, so
// nothing is missing.
func (s *served) stop() []sandbox.Connection {
	s.t.Helper()
	s.end()
	select {
	case err := <-s.done:
		s.done <- nil
		if err != nil {
			s.t.Errorf("Serve: %v", err)
		}
	case <-time.After(patience):
		s.t.Fatal("Serve did not end")
	}
	if c, err := net.Dial("tcp", s.address); err == nil {
		c.Close()
		s.t.Error("the listener is still open")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// only returns the one connection that was logged, once it has ended by itself.
func (s *served) only() sandbox.Connection {
	s.t.Helper()
	log := s.finished(1)
	if len(log) != 1 {
		s.t.Fatalf("%d connections were logged: %+v", len(log), log)
	}
	return log[0]
}

// finished waits until so many connections have ended by themselves.
func (s *served) finished(n int) []sandbox.Connection {
	s.t.Helper()
	late := time.After(patience)
	for count := 0; count < n; count++ {
		select {
		case <-s.logged:
		case <-late:
			s.t.Fatalf("%d connections have finished, not %d", count, n)
		}
	}
	return s.stop()
}

// client is Go's own HTTP client, told of the proxy.
func (s *served) client() *http.Client {
	proxy := &url.URL{Scheme: "http", Host: s.address}
	t := &http.Transport{Proxy: http.ProxyURL(proxy), DisableCompression: true}
	s.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, Timeout: patience}
}

// dialProxy opens a bare connection to the proxy.
func (s *served) dialProxy() *net.TCPConn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

// say sends raw text to the proxy and returns all that it answers until it closes.
func (s *served) say(text string) string {
	s.t.Helper()
	c := s.dialProxy()
	defer c.Close()
	go io.WriteString(c, text)
	all, err := io.ReadAll(c)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		s.t.Fatalf("no end after %q: %q", text, all)
	}
	return string(all)
}

// tunnel opens a CONNECT and returns it ready for bytes.
func (s *served) tunnel(target string) *net.TCPConn {
	s.t.Helper()
	c := s.dialProxy()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	head := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	if _, err := io.ReadFull(c, head); err != nil || !strings.HasPrefix(string(head), "HTTP/1.1 200 ") {
		rest, _ := bufio.NewReader(c).ReadString('\n')
		s.t.Fatalf("CONNECT %s: %q %v", target, string(head)+rest, err)
	}
	return c
}

// listen accepts connections as a host of the internet; each goes to f, and is
// closed after it. The function returned ends it and waits for what is under way.
func (i *internet) listen(t testing.TB, name, address, port string, f func(*net.TCPConn)) (gone func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(patience))
				f(c.(*net.TCPConn))
			})
		}
	})
	gone = func() { l.Close(); all.Wait() }
	t.Cleanup(gone)
	i.host(name, address, port, l.Addr())
	return gone
}
