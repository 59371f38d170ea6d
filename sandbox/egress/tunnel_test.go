package egress_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/egress"
)

func TestTLSPassesATunnelUnchanged(t *testing.T) {
	world := newInternet()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s over %s", r.Host, r.Proto)
	}))
	counted := make(chan *byteCounter, 1)
	server.Listener = countingListener{server.Listener, counted}
	server.StartTLS()
	t.Cleanup(server.Close)
	world.addHost("example.com", "44.1.1.1", "443", server.Listener.Addr()) // a name of httptest's certificate
	s := startBroker(t, world, "example.com")
	client := s.client()
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	if _, body := get(t, client, "https://example.com/x"); body != "example.com over HTTP/1.1" {
		t.Errorf("body: got %q", body)
	}
	client.CloseIdleConnections()
	c := s.onlyRecord()
	server.Close() // waits until its connections have ended
	wire := <-counted
	if c.Host != "example.com" || c.Port != 443 || c.Address != "44.1.1.1:443" ||
		c.Status != sandbox.ConnectionAllowed || c.BytesSent != wire.read || c.BytesReceived != wire.written || wire.read == 0 {
		t.Errorf("record: got %+v, want %d bytes sent and %d received", c, wire.read, wire.written)
	}
}

type countingListener struct {
	net.Listener
	all chan *byteCounter
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	counted := &byteCounter{Conn: c}
	l.all <- counted
	return counted, nil
}

// Each side of a tunnel still receives after it has sent everything.
func TestHalfClosedTunnelStillReceives(t *testing.T) {
	world := newInternet()
	world.addServer(t, "data.example", "44.1.1.1", "443", func(c *net.TCPConn) {
		all, err := io.ReadAll(c) // until the client has sent everything
		if err != nil {
			t.Error(err)
		}
		c.Write(bytes.ToUpper(all))
	})
	world.addServer(t, "first.example", "44.1.1.2", "443", func(c *net.TCPConn) {
		io.WriteString(c, "mine")
		c.CloseWrite()
		if all, err := io.ReadAll(c); err != nil || string(all) != "yours" {
			t.Errorf("the host got %q, %v; want yours", all, err)
		}
	})
	s := startBroker(t, world, "data.example first.example")
	c := s.tunnel("data.example:443")
	io.WriteString(c, "hello")
	c.CloseWrite()
	if all, err := io.ReadAll(c); err != nil || string(all) != "HELLO" {
		t.Errorf("client first: got %q, %v; want HELLO", all, err)
	}
	c = s.tunnel("first.example:443")
	if all, err := io.ReadAll(c); err != nil || string(all) != "mine" {
		t.Errorf("host first: got %q, %v; want mine", all, err)
	}
	io.WriteString(c, "yours")
	c.CloseWrite()
	for _, c := range s.waitForRecords(2) {
		if c.Reason != "" || c.BytesSent != 5 || c.BytesReceived != 5 && c.BytesReceived != 4 {
			t.Errorf("record: got %+v", c)
		}
	}
}

// Bytes that a client sends with its CONNECT, before the response, are the first of the tunnel.
func TestBytesSentWithConnectAreNotLost(t *testing.T) {
	world := newInternet()
	world.addServer(t, "data.example", "44.1.1.1", "443", func(c *net.TCPConn) { io.Copy(c, c) })
	s := startBroker(t, world, "data.example")
	c := s.dialProxy()
	io.WriteString(c, "CONNECT data.example:443 HTTP/1.1\r\nHost: x\r\n\r\nearly and ")
	head := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\nearly and "))
	if _, err := io.ReadFull(c, head); err != nil || !strings.HasSuffix(string(head), "\r\n\r\nearly and ") {
		t.Fatalf("first bytes: got %q, %v", head, err)
	}
	io.WriteString(c, "late")
	c.CloseWrite()
	if all, err := io.ReadAll(c); err != nil || string(all) != "late" {
		t.Errorf("next bytes: got %q, %v; want late", all, err)
	}
}

func TestLimitsCutConnectionsAndAreRecorded(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits egress.Limits
		talk   bool
		reason string
	}{
		{"idle", egress.Limits{IdleTimeout: 50 * time.Millisecond}, false, "no byte"},
		{"whole", egress.Limits{MaxDuration: 100 * time.Millisecond}, true, "open for too long"},
		{"bytes", egress.Limits{MaxBytes: 1 << 20}, true, "all its bytes"},
	} {
		world := newInternet()
		world.addServer(t, "data.example", "44.1.1.1", "443", func(conn *net.TCPConn) {
			if c.talk {
				io.Copy(conn, zeros{})
			} else {
				io.Copy(io.Discard, conn)
			}
		})
		s := startBroker(t, world, "data.example", func(e *egress.Config) { e.Limits = c.limits })
		n, err := io.Copy(io.Discard, s.tunnel("data.example:443"))
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("%s: the connection was not cut", c.name)
		}
		log := s.waitForRecords(1)
		if log[0].Status != sandbox.ConnectionAllowed || !strings.Contains(log[0].Reason, c.reason) {
			t.Errorf("%s: got record %+v, want the reason %q", c.name, log[0], c.reason)
		}
		if limit := int64(1<<20 + 32<<10); c.name == "bytes" && (n > limit || log[0].BytesReceived > limit) {
			t.Errorf("received %d bytes, recorded %d; want at most %d", n, log[0].BytesReceived, limit)
		}
	}
}

// A connection with bytes at shorter intervals than IdleTimeout stays open.
func TestIdleTimeBeginsAnewWithEachByte(t *testing.T) {
	const idle = time.Second
	world := newInternet()
	world.addServer(t, "data.example", "44.1.1.1", "443", func(conn *net.TCPConn) {
		tick := time.NewTicker(idle / 10)
		defer tick.Stop()
		for range 12 {
			<-tick.C
			io.WriteString(conn, "x")
		}
	})
	s := startBroker(t, world, "data.example", func(e *egress.Config) { e.Limits.IdleTimeout = idle })
	if all, err := io.ReadAll(s.tunnel("data.example:443")); len(all) != 12 || err != nil {
		t.Errorf("got %d bytes, %v; want 12", len(all), err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// MaxBytes counts all connections of a run together. At the limit, new connections are refused.
func TestMaxBytesCountsAllConnections(t *testing.T) {
	world := newInternet()
	world.addWebServer(t, "data.example", "44.1.1.1", func(w http.ResponseWriter, _ *http.Request) {
		w.Write(make([]byte, 3000))
	})
	s := startBroker(t, world, "data.example", func(e *egress.Config) { e.Limits.MaxBytes = 6000 })
	var codes []int
	for range 3 {
		if answer, err := s.client().Get("http://data.example/"); err == nil {
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			codes = append(codes, answer.StatusCode)
		}
	}
	if len(codes) == 0 || codes[0] != 200 || codes[len(codes)-1] != 403 {
		t.Errorf("statuses: got %v, want 200 first and 403 last", codes)
	}
	if log := s.waitForRecords(3); log[2].Status != sandbox.ConnectionRefused || len(world.dialed) != 2 {
		t.Errorf("records: got %+v, %d dialed; want the third refused", log, len(world.dialed))
	}
}

// A hundred parallel tunnels are separate streams; one more is rejected.
func TestConnectionOverTheLimitIsRejected(t *testing.T) {
	const all = 100
	world := newInternet()
	world.addServer(t, "data.example", "44.1.1.1", "443", func(c *net.TCPConn) { io.Copy(c, c) })
	s := startBroker(t, world, "data.example", func(e *egress.Config) { e.Limits.MaxConnections = all })
	tunnels := make([]*net.TCPConn, all)
	for i := range tunnels {
		tunnels[i] = s.tunnel("data.example:443")
	}
	answer := s.send("CONNECT data.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 503 ") || !strings.Contains(answer, "Retry-After: 1\r\n") {
		t.Errorf("one more: got %q, want 503 with Retry-After", answer)
	}
	var work sync.WaitGroup
	for i, c := range tunnels {
		work.Go(func() {
			sent := bytes.Repeat([]byte(fmt.Sprintf("%03d ", i)), 50_000)
			go func() { c.Write(sent); c.CloseWrite() }()
			if back, err := io.ReadAll(c); err != nil || !bytes.Equal(back, sent) {
				t.Errorf("tunnel %d: got %d bytes back, %v; want those sent", i, len(back), err)
			}
		})
	}
	work.Wait()
	allowed := 0
	for _, c := range s.waitForRecords(all + 1) {
		complete := c.BytesSent == 200_000 && c.BytesReceived == 200_000 && c.Reason == ""
		if c.Status == sandbox.ConnectionAllowed && complete {
			allowed++
		}
	}
	if allowed != all {
		t.Errorf("%d of %d tunnels have a complete record", allowed, all)
	}
}

// Memory does not grow with the bytes of a tunnel.
func TestTunnelMemoryIsBounded(t *testing.T) {
	const size = 256 << 20
	world := newInternet()
	world.addServer(t, "data.example", "44.1.1.1", "443", func(c *net.TCPConn) { io.CopyN(c, zeros{}, size) })
	s := startBroker(t, world, "data.example")
	c := s.tunnel("data.example:443")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 64<<10))
	runtime.ReadMemStats(&after)
	if n != size || err != nil {
		t.Errorf("got %d bytes, %v; want %d", n, err, size)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 4<<20 {
		t.Errorf("%d bytes of memory were allocated to copy %d", allocated, n)
	}
}

// The end of the context closes tunnels and requests, and stops connection attempts.
func TestEndOfContextClosesAllConnections(t *testing.T) {
	world := newInternet()
	over := make(chan error, 1)
	world.addServer(t, "data.example", "44.1.1.1", "443", func(c *net.TCPConn) {
		_, err := io.Copy(io.Discard, c)
		over <- err
	})
	asked := make(chan struct{})
	world.addWebServer(t, "slow.example", "44.1.1.2", func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	dialing := make(chan struct{})
	s := startBroker(t, world, "data.example slow.example hole.example", func(e *egress.Config) {
		world.names["hole.example"] = []string{"44.1.1.3"}
		e.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Addr().String() == "44.1.1.3" {
				close(dialing)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return world.dial(ctx, to)
		}
	})
	idle, tunnel := s.dialProxy(), s.tunnel("data.example:443")
	for _, host := range []string{"slow", "hole"} {
		fmt.Fprintf(s.dialProxy(), "GET http://%s.example/ HTTP/1.1\r\nHost: x\r\n\r\n", host)
	}
	<-asked
	<-dialing
	log := s.stop()
	for _, c := range []net.Conn{idle, tunnel} {
		if n, err := io.Copy(io.Discard, c); n > 0 || isTimeout(err) {
			t.Errorf("a client's connection is still open: %d bytes, %v", n, err)
		}
	}
	if err := <-over; isTimeout(err) {
		t.Error("the connection to the host is still open")
	}
	for _, c := range log {
		if !strings.Contains(c.Reason, "the run ended") {
			t.Errorf("record: got %+v, want that the run ended", c)
		}
	}
	if len(log) != 3 {
		t.Errorf("records: got %+v, want 3", log)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestBrokenListenerIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := egress.New(egress.Config{}).Serve(t.Context(), l); err == nil {
		t.Error("Serve on a closed listener: got no error")
	}
}
