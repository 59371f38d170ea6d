package egress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/egress"
)

// A refusal is a 403 with its reason in the status line and in the body. The body names the config key. The broker
// records the refusal and connects to no host.
func TestRefusedHosts(t *testing.T) {
	const list = "*.example 44.1.1.9 44.0.0.44 64.0.0.0/2:8080 inner.test 10.0.0.5:8080"
	for _, c := range []struct{ target, host, reason string }{
		{"evil.test:443", "evil.test", "evil.test:443 is not in allowed_hosts"},
		{"example:443", "example", "not in allowed_hosts"},
		{"a.example:22", "a.example", "a.example:22 is not in allowed_hosts"},
		{"44.1.1.8:443", "44.1.1.8", "not in allowed_hosts"},
		{"127.0.0.1:443", "127.0.0.1", "not in allowed_hosts"},
		{"[::1]:443", "::1", "not in allowed_hosts"},
		{"10.0.0.5:443", "10.0.0.5", "not in allowed_hosts"},
		{"private.example:443", "private.example", "private.example:443 resolves to 10.0.0.5, a private address"},
		{"loop.example:443", "loop.example", "127.0.0.1, a loopback address"},
		{"metadata.example:443", "metadata.example", "169.254.169.254, a link-local address"},
		{"mapped.example:443", "mapped.example", "resolves to 169.254.169.254"},
		{"nat64.example:443", "nat64.example", "a NAT64 form"},
		{"6to4.example:443", "6to4.example", "a 6to4 address"},
		{"zone.example:443", "zone.example", "resolves to fe80::1, a link-local"},
		{"mixed.example:443", "mixed.example", "192.168.0.1, a private address"},
		{"mine.example:443", "mine.example", "44.0.0.44, an address of this service's own machine"},
		{"inner.test:80", "inner.test", "10.0.0.5, a private address"},
		{"127.0.0.1:8080", "127.0.0.1", "127.0.0.1:8080 is a loopback address"}, // it is in 64.0.0.0/2
		{"44.0.0.44:80", "44.0.0.44", "44.0.0.44:80 is an address of this service's own machine"},
	} {
		for _, way := range []string{"CONNECT", "GET"} {
			world := newInternet()
			world.names = map[string][]string{
				"private.example": {"10.0.0.5"}, "loop.example": {"127.0.0.1"}, "metadata.example": {"169.254.169.254"},
				"mapped.example": {"::ffff:169.254.169.254"}, "nat64.example": {"64:ff9b::a00:5"},
				"6to4.example": {"2002:a00:5::1"}, "mixed.example": {"44.1.1.1", "192.168.0.1"},
				"mine.example": {"44.0.0.44"},
				"zone.example": {"fe80::1%eth0"}, "inner.test": {"10.0.0.5"},
			}
			s := startBroker(t, world, list)
			line := "CONNECT " + c.target
			if way == "GET" {
				line = "GET http://" + c.target + "/"
			}
			text := s.send(line + " HTTP/1.1\r\nHost: a.example\r\n\r\n")
			answer, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != 403 || !strings.Contains(answer.Status, c.reason) ||
				!strings.Contains(string(body), c.reason) || !strings.Contains(answer.Status, c.host) {
				t.Errorf("%s: got %s, body %q, %v; want 403 with %q", line, answer.Status, body, err, c.reason)
			}
			if !strings.Contains(c.reason, "own machine") && !strings.Contains(string(body), "allowed_hosts") {
				t.Errorf("%s: the body does not name allowed_hosts: %q", line, body)
			}
			r := s.onlyRecord()
			if r.Host != c.host || r.Status != sandbox.ConnectionRefused || r.Address != "" ||
				!strings.Contains(r.Reason, c.reason) || r.BytesSent+r.BytesReceived != 0 {
				t.Errorf("%s: got record %+v, want a refusal with %q", line, r, c.reason)
			}
			if len(world.dialed) > 0 || strings.Contains(c.reason, "not in allowed_hosts") && len(world.resolved) > 0 {
				t.Errorf("%s: resolved %v, dialed %v; want none", line, world.resolved, world.dialed)
			}
		}
	}
}

// The name of a host with a private address needs two entries in allowed_hosts: the name and the address.
func TestPrivateHostNeedsNameAndAddress(t *testing.T) {
	world := newInternet()
	world.addServer(t, "inner.test", "10.0.0.5", "8080", func(c *net.TCPConn) { io.Copy(c, c) })
	for _, entries := range []string{"inner.test:8080 10.0.0.5:8080", "inner.test:8080 10.0.0.0/24:8080"} {
		s := startBroker(t, world, entries)
		c := s.tunnel("inner.test:8080")
		c.CloseWrite()
		io.Copy(io.Discard, c)
		if r := s.onlyRecord(); r.Address != "10.0.0.5:8080" {
			t.Errorf("record: got address %s, want 10.0.0.5:8080 (%+v)", r.Address, r)
		}
	}
}

// The broker connects to the address that it resolved and checked, even if the next answer differs (DNS rebinding).
func TestDNSRebindingIsPrevented(t *testing.T) {
	world := newInternet()
	world.addServer(t, "turn.example", "44.1.1.1", "443", func(c *net.TCPConn) { io.WriteString(c, "public") })
	answers := 0
	s := startBroker(t, world, "turn.example", func(c *egress.Config) {
		c.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			if answers++; answers == 1 {
				return world.resolve(ctx, name)
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
	})
	if said, err := io.ReadAll(s.tunnel("turn.example:443")); string(said) != "public" || err != nil || answers != 1 {
		t.Errorf("got %q, %v after %d lookups; want public after 1", said, err, answers)
	}
	answer := s.send("CONNECT turn.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 403 ") {
		t.Errorf("second request: got %q, want 403", answer)
	}
	if fmt.Sprint(world.dialed) != "[44.1.1.1:443]" {
		t.Errorf("dialed %v, want 44.1.1.1:443 only", world.dialed)
	}
}

// A client follows a redirect with a request of its own, which is checked.
func TestRedirectsAreChecked(t *testing.T) {
	world := newInternet()
	world.addWebServer(t, "data.example", "44.1.1.1", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	})
	s := startBroker(t, world, "data.example")
	answer, body := get(t, s.client(), "http://data.example/")
	if answer.StatusCode != 403 || !strings.Contains(body, "169.254.169.254:80 is not in allowed_hosts") {
		t.Errorf("got %s %q, want 403", answer.Status, body)
	}
}

// The reason of a failure reveals nothing about the machine's own network.
func TestUnreachableHosts(t *testing.T) {
	world := newInternet()
	world.names["empty.example"] = []string{}
	world.names["hole.example"] = []string{"44.1.1.3", "44.1.1.4"}
	world.names["shut.example"] = []string{"44.1.1.5"}
	world.names["dead.example"] = []string{"44.1.1.6"}
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	l.Close()
	world.servers["44.1.1.5:443"] = l.Addr().String()
	for host, want := range map[string]string{
		"none.example":  "502 none.example:443 could not be resolved: no such host",
		"empty.example": "502 empty.example:443 could not be resolved",
		"hole.example":  "504 hole.example:443 could not be reached: no answer in time",
		"shut.example":  "502 shut.example:443 could not be reached: connection refused",
		"dead.example":  "502 dead.example:443 could not be reached",
	} {
		world.dialed = nil
		s := startBroker(t, world, "*.example", func(c *egress.Config) {
			c.Limits.ConnectTimeout = 100 * time.Millisecond
			c.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
				if host == "hole.example" {
					world.dialed = append(world.dialed, to.String())
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return world.dial(ctx, to)
			}
		})
		line, _, _ := strings.Cut(s.send("CONNECT "+host+":443 HTTP/1.1\r\nHost: x\r\n\r\n"), "\r\n")
		if line != "HTTP/1.1 "+want {
			t.Errorf("%s: got %q, want %s", host, line, want)
		}
		if r := s.onlyRecord(); r.Status != sandbox.ConnectionFailed || r.Reason != want[4:] {
			t.Errorf("%s: got record %+v, want a failure with %q", host, r, want[4:])
		}
		if host == "hole.example" && len(world.dialed) != 2 {
			t.Errorf("dialed %v, want both addresses: the first must leave time for the second", world.dialed)
		}
	}
}

// An address that does not answer leaves time for the next one.
func TestAddressThatDoesNotAnswerLeavesTimeForTheNext(t *testing.T) {
	world := newInternet()
	world.addServer(t, "data.example", "44.1.1.2", "443", func(c *net.TCPConn) { io.WriteString(c, "two") })
	world.names["data.example"] = []string{"44.1.1.1", "44.1.1.2"}
	s := startBroker(t, world, "data.example", func(c *egress.Config) {
		c.Limits.ConnectTimeout = 2 * time.Second
		c.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Addr() == netip.MustParseAddr("44.1.1.1") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return world.dial(ctx, to)
		}
	})
	if said, err := io.ReadAll(s.tunnel("data.example:443")); string(said) != "two" || err != nil {
		t.Errorf("got %q, %v; want two", said, err)
	}
}

func TestSecondAddressIsTried(t *testing.T) {
	world := newInternet()
	world.addServer(t, "data.example", "44.1.1.2", "443", func(c *net.TCPConn) { io.WriteString(c, "two") })
	world.names["data.example"] = []string{"2a00::1", "44.1.1.2"}
	s := startBroker(t, world, "data.example")
	c := s.tunnel("data.example:443")
	if said, err := io.ReadAll(c); string(said) != "two" || err != nil {
		t.Errorf("got %q, %v; want two", said, err)
	}
	c.Close()
	if r := s.onlyRecord(); r.Address != "44.1.1.2:443" {
		t.Errorf("record: got address %s, want 44.1.1.2:443", r.Address)
	}
}

// OnConnect is called before any byte passes. If it returns an error, no byte passes.
func TestOnConnectComesBeforeTheFirstByte(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // a server that closes every connection
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.Close()
		}
	}()
	for _, way := range []string{"CONNECT 44.1.1.1:443", "GET http://44.1.1.1:443/"} {
		for _, kept := range []error{nil, errors.New("the log is full")} {
			world := newInternet()
			world.addHost("a.example", "44.1.1.1", "443", l.Addr())
			told := make(chan sandbox.Connection, 1)
			s := startBroker(t, world, "44.1.1.1", func(c *egress.Config) {
				c.OnConnect = func(_ int64, c sandbox.Connection) error {
					told <- c
					return kept
				}
			})
			answer := s.send(way + " HTTP/1.1\r\nHost: a.example\r\n\r\n")
			log := s.onlyRecord()
			var c sandbox.Connection
			select {
			case c = <-told:
			default:
			}
			if c.Status != sandbox.ConnectionOpen || c.Address != log.Address || log.Address == "" {
				t.Errorf("%s: OnConnect got %+v, OnEnd %+v", way, c, log)
			}
			rejected := strings.Contains(answer, "503") && log.Status == sandbox.ConnectionFailed && log.BytesSent == 0
			if rejected != (kept != nil) {
				t.Errorf("%s, OnConnect returns %v: got %q, record %+v", way, kept, answer, log)
			}
		}
	}
}

func TestOnRequestComesBeforeTheLookup(t *testing.T) {
	world := newInternet()
	s := startBroker(t, world, "*", func(c *egress.Config) {
		c.OnRequest = func(_ int64, c sandbox.Connection) error { return fmt.Errorf("%s is one too many", c.Host) }
	})
	answer := s.send("CONNECT secret.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n")
	c := s.onlyRecord()
	if !strings.Contains(answer, "403") || !strings.Contains(answer, "secret.example is one too many") ||
		c.Status != sandbox.ConnectionRefused {
		t.Errorf("got %q, record %+v; want a refusal with the error of OnRequest", answer, c)
	}
	if len(world.resolved)+len(world.dialed) > 0 {
		t.Errorf("resolved %q, dialed %q; want none", world.resolved, world.dialed)
	}
}
