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

// TLS goes through untouched, from Go's own client to a real server.
func TestTLS(t *testing.T) {
	world := newInternet()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s over %s", r.Host, r.Proto)
	}))
	counted := make(chan *tally, 1)
	server.Listener = tallied{server.Listener, counted}
	server.StartTLS()
	t.Cleanup(server.Close)
	world.host("example.com", "44.1.1.1", "443", server.Listener.Addr()) // a name of httptest's certificate
	s := serve(t, world, "example.com")
	client := s.client()
	client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	if _, body := get(t, client, "https://example.com/x"); body != "example.com over HTTP/1.1" {
		t.Errorf("%q", body)
	}
	client.CloseIdleConnections()
	c := s.only()
	server.Close() // waits for its end of the connection
	wire := <-counted
	if c.Host != "example.com" || c.Port != 443 || c.Address != "44.1.1.1:443" || c.Status != sandbox.ConnectionAllowed || c.BytesSent != wire.read || c.BytesReceived != wire.written || wire.read == 0 {
		t.Errorf("%+v; %d and %d passed", c, wire.read, wire.written)
	}
}

type tallied struct {
	net.Listener
	all chan *tally
}

func (l tallied) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	counted := &tally{Conn: c}
	l.all <- counted
	return counted, nil
}

// An end that has said all it has to say still hears the answer, whichever it is.
func TestHalfClosed(t *testing.T) {
	world := newInternet()
	world.listen(t, "data.example", "44.1.1.1", "443", func(c *net.TCPConn) {
		all, err := io.ReadAll(c) // to the end of what is sent
		if err != nil {
			t.Error(err)
		}
		c.Write(bytes.ToUpper(all))
	})
	world.listen(t, "first.example", "44.1.1.2", "443", func(c *net.TCPConn) {
		io.WriteString(c, "mine")
		c.CloseWrite()
		if all, err := io.ReadAll(c); err != nil || string(all) != "yours" {
			t.Errorf("%q %v", all, err)
		}
	})
	s := serve(t, world, "data.example first.example")
	c := s.tunnel("data.example:443")
	io.WriteString(c, "hello")
	c.CloseWrite()
	if all, err := io.ReadAll(c); err != nil || string(all) != "HELLO" {
		t.Errorf("%q %v", all, err)
	}
	c = s.tunnel("first.example:443")
	if all, err := io.ReadAll(c); err != nil || string(all) != "mine" {
		t.Errorf("%q %v", all, err)
	}
	io.WriteString(c, "yours")
	c.CloseWrite()
	for _, c := range s.finished(2) {
		if c.Reason != "" || c.BytesSent != 5 || c.BytesReceived != 5 && c.BytesReceived != 4 {
			t.Errorf("%+v", c)
		}
	}
}

// Bytes that come with the CONNECT, before its answer, are the tunnel's first.
func TestEarlyBytes(t *testing.T) {
	world := newInternet()
	world.listen(t, "data.example", "44.1.1.1", "443", func(c *net.TCPConn) { io.Copy(c, c) })
	s := serve(t, world, "data.example")
	c := s.dialProxy()
	io.WriteString(c, "CONNECT data.example:443 HTTP/1.1\r\nHost: x\r\n\r\nearly and ")
	head := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\nearly and "))
	if _, err := io.ReadFull(c, head); err != nil || !strings.HasSuffix(string(head), "\r\n\r\nearly and ") {
		t.Fatalf("%q %v", head, err)
	}
	io.WriteString(c, "late")
	c.CloseWrite()
	if all, err := io.ReadAll(c); err != nil || string(all) != "late" {
		t.Errorf("%q %v", all, err)
	}
}

// Each limit ends a connection and stands in its record.
func TestCut(t *testing.T) {
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
		world.listen(t, "data.example", "44.1.1.1", "443", func(conn *net.TCPConn) {
			if c.talk {
				io.Copy(conn, zeros{})
			} else {
				io.Copy(io.Discard, conn)
			}
		})
		s := serve(t, world, "data.example", func(e *egress.Config) { e.Limits = c.limits })
		n, err := io.Copy(io.Discard, s.tunnel("data.example:443"))
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("%s: it was not cut", c.name)
		}
		log := s.finished(1)
		if log[0].Status != sandbox.ConnectionAllowed || !strings.Contains(log[0].Reason, c.reason) {
			t.Errorf("%s: %+v", c.name, log[0])
		}
		if most := int64(1<<20 + 32<<10); c.name == "bytes" && (n > most || log[0].BytesReceived > most) {
			t.Errorf("%d bytes came, and the record has %d", n, log[0].BytesReceived)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Once its bytes are used, a sandbox gets no new connection.
func TestBytesAreOfAllConnections(t *testing.T) {
	world := newInternet()
	world.web(t, "data.example", "44.1.1.1", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 3000)) })
	s := serve(t, world, "data.example", func(e *egress.Config) { e.Limits.MaxBytes = 6000 })
	var codes []int
	for range 3 {
		if answer, err := s.client().Get("http://data.example/"); err == nil {
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			codes = append(codes, answer.StatusCode)
		}
	}
	if len(codes) == 0 || codes[0] != 200 || codes[len(codes)-1] != 403 {
		t.Errorf("%v", codes)
	}
	if log := s.finished(3); log[2].Status != sandbox.ConnectionRefused || len(world.dialled) != 2 {
		t.Errorf("%+v", log)
	}
}

// A hundred at a time, each its own stream, and one too many.
func TestHundredConnections(t *testing.T) {
	const all = 100
	world := newInternet()
	world.listen(t, "data.example", "44.1.1.1", "443", func(c *net.TCPConn) { io.Copy(c, c) })
	s := serve(t, world, "data.example", func(e *egress.Config) { e.Limits.MaxConnections = all })
	tunnels := make([]*net.TCPConn, all)
	for i := range tunnels {
		tunnels[i] = s.tunnel("data.example:443")
	}
	if answer := s.say("CONNECT data.example:443 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 503 ") || !strings.Contains(answer, "Retry-After: 1\r\n") {
		t.Errorf("one too many: %q", answer)
	}
	var work sync.WaitGroup
	for i, c := range tunnels {
		work.Go(func() {
			sent := bytes.Repeat([]byte(fmt.Sprintf("%03d ", i)), 50_000)
			go func() { c.Write(sent); c.CloseWrite() }()
			if back, err := io.ReadAll(c); err != nil || !bytes.Equal(back, sent) {
				t.Errorf("%d: %d bytes came back, %v", i, len(back), err)
			}
		})
	}
	work.Wait()
	allowed := 0
	for _, c := range s.finished(all + 1) {
		if c.Status == sandbox.ConnectionAllowed && c.BytesSent == 200_000 && c.BytesReceived == 200_000 && c.Reason == "" {
			allowed++
		}
	}
	if allowed != all {
		t.Errorf("%d of %d are recorded in full", allowed, all)
	}
}

// Memory stays flat however much passes, and however slow one end is.
func TestFlatMemory(t *testing.T) {
	const size = 256 << 20
	world := newInternet()
	world.listen(t, "data.example", "44.1.1.1", "443", func(c *net.TCPConn) { io.CopyN(c, zeros{}, size) })
	s := serve(t, world, "data.example")
	c := s.tunnel("data.example:443")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 64<<10))
	runtime.ReadMemStats(&after)
	if n != size || err != nil {
		t.Errorf("%d bytes came, %v", n, err)
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 4<<20 {
		t.Errorf("%d bytes of memory were asked for to pass %d", made, n)
	}
}

// The end of the context ends everything: tunnels, requests, those that wait.
func TestEnd(t *testing.T) {
	world := newInternet()
	over := make(chan error, 1)
	world.listen(t, "data.example", "44.1.1.1", "443", func(c *net.TCPConn) {
		_, err := io.Copy(io.Discard, c)
		over <- err
	})
	asked := make(chan struct{})
	world.web(t, "slow.example", "44.1.1.2", func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	dialling := make(chan struct{})
	s := serve(t, world, "data.example slow.example hole.example", func(e *egress.Config) {
		world.names["hole.example"] = []string{"44.1.1.3"}
		e.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Addr().String() == "44.1.1.3" {
				close(dialling)
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
	<-dialling
	log := s.stop()
	for _, c := range []net.Conn{idle, tunnel} {
		if n, err := io.Copy(io.Discard, c); n > 0 || isTimeout(err) {
			t.Errorf("a client's connection goes on: %d, %v", n, err)
		}
	}
	if err := <-over; isTimeout(err) {
		t.Error("the host's connection goes on")
	}
	for _, c := range log {
		if !strings.Contains(c.Reason, "the run ended") {
			t.Errorf("%+v", c)
		}
	}
	if len(log) != 3 {
		t.Errorf("%+v", log)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// A listener that breaks is an error, and leaves nothing either.
func TestBrokenListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := egress.New(egress.Config{}).Serve(t.Context(), l); err == nil {
		t.Error("nobody was told")
	}
}
