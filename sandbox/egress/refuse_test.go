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

// A no comes as 403 with its reason in the status line and, with the key, in the
// body, and is recorded; nobody is connected to.
func TestRefused(t *testing.T) {
	const list = "*.example 44.1.1.9 inner.test 10.0.0.5:8080"
	for _, c := range []struct{ target, host, says string }{
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
	} {
		for _, way := range []string{"CONNECT", "GET"} {
			world := newInternet()
			world.names = map[string][]string{
				"private.example": {"10.0.0.5"}, "loop.example": {"127.0.0.1"}, "metadata.example": {"169.254.169.254"}, "mapped.example": {"::ffff:169.254.169.254"},
				"nat64.example": {"64:ff9b::a00:5"}, "6to4.example": {"2002:a00:5::1"}, "mixed.example": {"44.1.1.1", "192.168.0.1"}, "mine.example": {"44.0.0.44"},
				"zone.example": {"fe80::1%eth0"}, "inner.test": {"10.0.0.5"},
			}
			s := serve(t, world, list)
			line := "CONNECT " + c.target
			if way == "GET" {
				line = "GET http://" + c.target + "/"
			}
			answer, err := http.ReadResponse(bufio.NewReader(strings.NewReader(s.say(line+" HTTP/1.1\r\nHost: a.example\r\n\r\n"))), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			if answer.StatusCode != 403 || !strings.Contains(answer.Status, c.says) || !strings.Contains(string(body), c.says) || !strings.Contains(answer.Status, c.host) || err != nil {
				t.Errorf("%s: %s: %q %v", line, answer.Status, body, err)
			}
			if c.host != "mine.example" && !strings.Contains(string(body), "allowed_hosts") {
				t.Errorf("%s: the body does not name the key: %q", line, body)
			}
			if r := s.only(); r.Host != c.host || r.Status != sandbox.ConnectionRefused || r.Address != "" || !strings.Contains(r.Reason, c.says) || r.BytesSent+r.BytesReceived != 0 {
				t.Errorf("%s: %+v", line, r)
			}
			if len(world.dialled) > 0 || strings.Contains(c.says, "not in allowed_hosts") && !strings.Contains(c.says, "resolves") && len(world.looked) > 0 {
				t.Errorf("%s: looked up %v, connected to %v", line, world.looked, world.dialled)
			}
		}
	}
}

// A name of an inner host takes two entries, its own and its address's.
func TestNamedPrivate(t *testing.T) {
	world := newInternet()
	world.listen(t, "inner.test", "10.0.0.5", "8080", func(c *net.TCPConn) { io.Copy(c, c) })
	for _, entries := range []string{"inner.test:8080 10.0.0.5:8080", "inner.test:8080 10.0.0.0/24:8080"} {
		s := serve(t, world, entries)
		c := s.tunnel("inner.test:8080")
		c.CloseWrite()
		io.Copy(io.Discard, c)
		if r := s.only(); r.Address != "10.0.0.5:8080" {
			t.Errorf("%+v", r)
		}
	}
}

// What is connected to is what was resolved and checked, though the next answer
// be another (rebinding).
func TestRebinding(t *testing.T) {
	world := newInternet()
	world.listen(t, "turn.example", "44.1.1.1", "443", func(c *net.TCPConn) { io.WriteString(c, "public") })
	answers := 0
	s := serve(t, world, "turn.example", func(c *egress.Config) {
		c.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			if answers++; answers == 1 {
				return world.resolve(ctx, name)
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
	})
	if said, err := io.ReadAll(s.tunnel("turn.example:443")); string(said) != "public" || err != nil || answers != 1 {
		t.Errorf("%q %v, after %d lookups", said, err, answers)
	}
	if answer := s.say("CONNECT turn.example:443 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 403 ") {
		t.Errorf("%q", answer)
	}
	if fmt.Sprint(world.dialled) != "[44.1.1.1:443]" {
		t.Errorf("connected to %v", world.dialled)
	}
}

// A redirect is followed by the client, and judged like any request.
func TestRedirect(t *testing.T) {
	world := newInternet()
	world.web(t, "data.example", "44.1.1.1", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	})
	s := serve(t, world, "data.example")
	answer, body := get(t, s.client(), "http://data.example/")
	if answer.StatusCode != 403 || !strings.Contains(body, "169.254.169.254:80 is not in allowed_hosts") {
		t.Errorf("%s %q", answer.Status, body)
	}
}

// What can't be resolved or reached fails, in words that tell nothing of the
// machine's own network.
func TestFailed(t *testing.T) {
	world := newInternet()
	world.names["empty.example"] = []string{}
	world.names["hole.example"] = []string{"44.1.1.3", "44.1.1.4"}
	world.names["shut.example"] = []string{"44.1.1.5"}
	world.names["dead.example"] = []string{"44.1.1.6"}
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	l.Close()
	world.servers["44.1.1.5:443"] = l.Addr().String()
	for host, want := range map[string]string{
		"none.example": "502 none.example:443 could not be resolved: no such host", "empty.example": "502 empty.example:443 could not be resolved",
		"hole.example": "504 hole.example:443 could not be reached: no answer in time", "shut.example": "502 shut.example:443 could not be reached: connection refused",
		"dead.example": "502 dead.example:443 could not be reached",
	} {
		world.dialled = nil
		s := serve(t, world, "*.example", func(c *egress.Config) {
			c.Limits.ConnectTimeout = 100 * time.Millisecond
			c.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
				if host == "hole.example" {
					world.dialled = append(world.dialled, to.String())
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return world.dial(ctx, to)
			}
		})
		line, _, _ := strings.Cut(s.say("CONNECT "+host+":443 HTTP/1.1\r\nHost: x\r\n\r\n"), "\r\n")
		if line != "HTTP/1.1 "+want {
			t.Errorf("%s: %q", host, line)
		}
		if r := s.only(); r.Status != sandbox.ConnectionFailed || r.Reason != want[4:] {
			t.Errorf("%+v", r)
		}
		if host == "hole.example" && len(world.dialled) != 2 {
			t.Errorf("of two addresses, the first took all the time: %v", world.dialled)
		}
	}
}

// The next address is tried where one does not answer.
func TestSecondAddress(t *testing.T) {
	world := newInternet()
	world.listen(t, "data.example", "44.1.1.2", "443", func(c *net.TCPConn) { io.WriteString(c, "two") })
	world.names["data.example"] = []string{"2a00::1", "44.1.1.2"}
	s := serve(t, world, "data.example")
	c := s.tunnel("data.example:443")
	if said, err := io.ReadAll(c); string(said) != "two" || err != nil {
		t.Errorf("%q %v", said, err)
	}
	c.Close()
	if r := s.only(); r.Address != "44.1.1.2:443" {
		t.Errorf("%+v", r)
	}
}

// A connection that can't be logged is not used, and one that is used is logged first.
func TestOpenedBeforeItIsUsed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // of a server that hangs up
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.Close()
		}
	}()
	for _, way := range []string{"CONNECT 44.1.1.1:443", "GET http://44.1.1.1:443/"} {
		for _, kept := range []error{nil, errors.New("the log is full")} {
			world := newInternet()
			world.host("a.example", "44.1.1.1", "443", l.Addr())
			told := make(chan sandbox.Connection, 1)
			s := serve(t, world, "44.1.1.1", func(c *egress.Config) {
				c.OnConnect = func(_ int64, c sandbox.Connection) error {
					told <- c
					return kept
				}
			})
			answer := s.say(way + " HTTP/1.1\r\nHost: a.example\r\n\r\n")
			log := s.only()
			var c sandbox.Connection
			select {
			case c = <-told:
			default:
			}
			if c.Status != sandbox.ConnectionOpen || c.Address != log.Address || log.Address == "" {
				t.Errorf("%s: told of %+v, and logged %+v", way, c, log)
			}
			if refused := strings.Contains(answer, "503") && log.Status == sandbox.ConnectionFailed && log.BytesSent == 0; refused != (kept != nil) {
				t.Errorf("%s, %v: %q, %+v", way, kept, answer, log)
			}
		}
	}
}

// What is refused when it is asked for is not looked up, nor connected to.
func TestAskedBeforeItIsLookedUp(t *testing.T) {
	world := newInternet()
	s := serve(t, world, "*", func(c *egress.Config) {
		c.OnRequest = func(_ int64, c sandbox.Connection) error { return fmt.Errorf("%s is one too many", c.Host) }
	})
	answer := s.say("CONNECT secret.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n")
	if c := s.only(); !strings.Contains(answer, "403") || !strings.Contains(answer, "secret.example is one too many") || c.Status != sandbox.ConnectionRefused {
		t.Errorf("%q, %+v", answer, c)
	}
	if len(world.looked)+len(world.dialled) > 0 {
		t.Errorf("looked up %q, dialled %q", world.looked, world.dialled)
	}
}
