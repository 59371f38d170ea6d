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

// testTimeout bounds the wait for an event; it only ends a test that fails.
const testTimeout = 20 * time.Second

// internet simulates the hosts outside: names with public addresses that lead to real servers on this machine.
type internet struct {
	mu       sync.Mutex
	names    map[string][]string
	servers  map[string]string // the real address of each "address:port"
	resolved []string          // every name that was resolved
	dialed   []string          // every address that was dialed
}

func newInternet() *internet {
	return &internet{names: map[string][]string{}, servers: map[string]string{}}
}

func (i *internet) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.resolved = append(i.resolved, name)
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
	i.dialed = append(i.dialed, to.String())
	at, ok := i.servers[to.String()]
	i.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("no server at %s", to)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", at)
}

// addHost gives a server on this machine a name and a public address.
func (i *internet) addHost(name, address, port string, l net.Addr) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.names[name] = []string{address}
	i.servers[net.JoinHostPort(address, port)] = l.String()
}

// addWebServer adds a host that serves plain HTTP.
func (i *internet) addWebServer(t testing.TB, name, address string, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	i.addHost(name, address, "80", s.Listener.Addr())
	return s
}

// testBroker is a running Broker, seen from its sandbox.
type testBroker struct {
	*internet
	t       testing.TB
	address string // of the proxy
	end     context.CancelFunc
	done    chan error
	mu      sync.Mutex
	log     []sandbox.Connection
	logged  chan struct{} // receives once for each entry of log
}

// startBroker starts a Broker with these entries of allowed_hosts.
func startBroker(t testing.TB, i *internet, entries string, change ...func(*egress.Config)) *testBroker {
	t.Helper()
	hosts, err := policy.ParseHosts(strings.Fields(entries))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &testBroker{internet: i, t: t, address: l.Addr().String(),
		done: make(chan error, 1), logged: make(chan struct{}, 1000)}
	local := func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("44.0.0.44")}, nil }
	c := egress.Config{Hosts: hosts, Resolve: i.resolve, Dial: i.dial, LocalAddresses: local}
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

// stop stops the Broker and returns all its records.
func (s *testBroker) stop() []sandbox.Connection {
	s.t.Helper()
	s.end()
	select {
	case err := <-s.done:
		s.done <- nil
		if err != nil {
			s.t.Errorf("Serve: %v", err)
		}
	case <-time.After(testTimeout):
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

// onlyRecord waits until the one connection has ended by itself, and returns its record.
func (s *testBroker) onlyRecord() sandbox.Connection {
	s.t.Helper()
	log := s.waitForRecords(1)
	if len(log) != 1 {
		s.t.Fatalf("got %d records, want 1: %+v", len(log), log)
	}
	return log[0]
}

// waitForRecords waits until n connections have ended by themselves, and returns all records.
func (s *testBroker) waitForRecords(n int) []sandbox.Connection {
	s.t.Helper()
	late := time.After(testTimeout)
	for count := 0; count < n; count++ {
		select {
		case <-s.logged:
		case <-late:
			s.t.Fatalf("got %d records, want %d", count, n)
		}
	}
	return s.stop()
}

// client returns an HTTP client that uses the proxy.
func (s *testBroker) client() *http.Client {
	proxy := &url.URL{Scheme: "http", Host: s.address}
	t := &http.Transport{Proxy: http.ProxyURL(proxy), DisableCompression: true}
	s.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, Timeout: testTimeout}
}

// dialProxy opens a TCP connection to the proxy.
func (s *testBroker) dialProxy() *net.TCPConn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testTimeout))
	return c.(*net.TCPConn)
}

// send sends raw text to the proxy and returns everything that it answers until it closes the connection.
func (s *testBroker) send(text string) string {
	s.t.Helper()
	c := s.dialProxy()
	defer c.Close()
	go io.WriteString(c, text)
	all, err := io.ReadAll(c)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		s.t.Fatalf("the proxy keeps the connection open after %q; it answered %q", text, all)
	}
	return string(all)
}

// tunnel opens a tunnel to a target.
func (s *testBroker) tunnel(target string) *net.TCPConn {
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

// addServer adds a host that calls f with each connection and then closes the connection. The returned function stops
// the server and waits for all calls of f.
func (i *internet) addServer(t testing.TB, name, address, port string, f func(*net.TCPConn)) (gone func()) {
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
				c.SetDeadline(time.Now().Add(testTimeout))
				f(c.(*net.TCPConn))
			})
		}
	})
	gone = func() { l.Close(); all.Wait() }
	t.Cleanup(gone)
	i.addHost(name, address, port, l.Addr())
	return gone
}
