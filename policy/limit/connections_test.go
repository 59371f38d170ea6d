package limit_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"glasshouse/policy/limit"
)

// connectionsTest is a server with few connections. A request of /hold/USER holds its connection for that user until
// release is closed, one of /hijack/USER also takes it over. Any other request is answered at once.
type connectionsTest struct {
	*testing.T
	address string
	release chan struct{}
}

func newConnectionsTest(t *testing.T, size int) connectionsTest {
	c := connectionsTest{T: t, release: make(chan struct{})}
	connections := limit.NewConnections(size, nil)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	hold := func(w http.ResponseWriter, r *http.Request, answer func()) {
		release, err := connections.Hold(r.Context(), r.PathValue("user"))
		if err != nil {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		defer release()
		answer()
		<-c.release
	}
	mux.HandleFunc("/hold/{user}", func(w http.ResponseWriter, r *http.Request) {
		hold(w, r, func() { _ = http.NewResponseController(w).Flush() })
	})
	mux.HandleFunc("/hijack/{user}", func(w http.ResponseWriter, r *http.Request) {
		hold(w, r, func() {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			go func() { <-c.release; conn.Close() }()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
		})
	})
	server := httptest.NewUnstartedServer(mux)
	connections.Watch(server.Config)
	server.Start()
	t.Cleanup(server.Close)
	c.address = server.Listener.Addr().String()
	return c
}

// send sends text on a new connection.
func (c connectionsTest) send(text string) net.Conn {
	c.Helper()
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { conn.Close() })
	_, _ = io.WriteString(conn, text) // fails if the server has closed the connection
	return conn
}

// get sends a request on a new connection. status is 0 if the connection is closed without an answer.
func (c connectionsTest) get(path string) (conn net.Conn, status int) {
	c.Helper()
	conn = c.send("GET " + path + " HTTP/1.1\r\nHost: here\r\n\r\n")
	if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
		status = response.StatusCode
	}
	return conn, status
}

// want sends the request again until it is answered with the status: the server may not have noticed that the last
// connection is closed or idle.
func (c connectionsTest) want(status int, path string) (conn net.Conn) {
	c.Helper()
	got := 0
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if conn, got = c.get(path); got == status {
			return conn
		}
		conn.Close()
	}
	c.Fatalf("%s: got status %d, want %d", path, got, status)
	return nil
}

func (c connectionsTest) wantClosed(conn net.Conn, what string) {
	c.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute)) // fail instead of hanging
	n, err := conn.Read(make([]byte, 1))
	if timeout, ok := errors.AsType[net.Error](err); n != 0 || err == nil || ok && timeout.Timeout() {
		c.Errorf("%s: got %d bytes, %v; want it closed", what, n, err)
	}
}

// A held connection stays. An idle one, and one whose request has not arrived, make room for a new one. If all are
// held, the new one is closed.
func TestConnectionsOverTheLimitAreClosed(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"/hold/", "/hijack/"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			status := http.StatusOK
			if way == "/hijack/" {
				status = http.StatusSwitchingProtocols
			}
			c := newConnectionsTest(t, 2)
			c.want(status, way+"ada")
			idle := c.want(http.StatusOK, "/")
			c.want(http.StatusOK, "/")
			c.wantClosed(idle, "an idle connection")
			silent, half := c.send(""), c.send("GET / HT")
			c.wantClosed(silent, "a connection without a request")
			c.want(status, way+"grace")
			c.wantClosed(half, "a connection with half a request")
			if _, got := c.get("/"); got != 0 {
				t.Errorf("a connection over the limit: got status %d, want it closed, because all others are held", got)
			}
			close(c.release)
			c.want(http.StatusOK, "/")
			if c.release = make(chan struct{}); way == "/hold/" {
				c.want(http.StatusOK, "/")
			}
		})
	}
}

// One user's requests leave connections to others, and the user is told so at once.
func TestRequestsOfAUserLeaveConnections(t *testing.T) {
	t.Parallel()
	c := newConnectionsTest(t, 20)
	for range 16 {
		c.want(http.StatusOK, "/hold/ada")
	}
	for range 10 {
		c.want(http.StatusTooManyRequests, "/hold/ada")
	}
	for n := range 3 {
		c.want(http.StatusOK, fmt.Sprintf("/hold/other%d", n))
	}
	close(c.release)
	c.want(http.StatusOK, "/hold/ada")
}
