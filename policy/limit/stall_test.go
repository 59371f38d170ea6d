package limit_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"glasshouse/policy/limit"
)

const stallTimeout = 500 * time.Millisecond

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(limit.StallTimeout(handler, stallTimeout))
	t.Cleanup(server.Close)
	return server.URL
}

// dial sends a request's head and returns the connection.
func dial(t *testing.T, url, head string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil { // fail instead of hanging
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, strings.ReplaceAll(head, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestStalledBodyEndsWithTimeout(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		ended <- err
	})
	dial(t, url, "POST / HTTP/1.1\nHost: x\nContent-Length: 10\n\nx")
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("got %v, want a timeout", err)
	}
}

// A slow handler is not ended by a read deadline that was set for a body that does not exist.
func TestSlowHandlerWithoutBodyIsNotEnded(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(stallTimeout)) // as huma does
		select {
		case <-r.Context().Done():
			w.WriteHeader(http.StatusTeapot)
		case <-time.After(3 * stallTimeout):
		}
	})
	response, err := http.Post(url, "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("got HTTP %d, want 200: the request's context ended", response.StatusCode)
	}
}

func TestUnreadResponseEndsAndSlowReaderGetsAll(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	for name, answer := range map[string]func(http.ResponseWriter) error{
		"Write": func(w http.ResponseWriter) error { _, err := w.Write(text); return err },
		"ReadFrom": func(w http.ResponseWriter) error {
			_, err := io.Copy(w, struct{ io.Reader }{bytes.NewReader(text)}) // without WriteTo, which Copy would prefer
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan error, 1)
			url := serve(t, func(w http.ResponseWriter, r *http.Request) { ended <- answer(w) })
			dial(t, url, "GET / HTTP/1.1\nHost: x\n\n")
			select {
			case err := <-ended:
				if err == nil {
					t.Error("a response that nobody reads: got no error, want a timeout")
				}
			case <-time.After(20 * time.Second):
				t.Fatal("a response that nobody reads is still being written after 20s")
			}
			conn := dial(t, url, "GET / HTTP/1.0\nHost: x\n\n")
			in, got := bufio.NewReader(conn), 0
			buffer := make([]byte, 256<<10)
			for tick := time.Tick(stallTimeout / 20); ; <-tick { // takes longer than stallTimeout in all
				n, err := in.Read(buffer)
				got += n
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := <-ended; err != nil || got < len(text) {
				t.Errorf("a slow reader: got %d bytes and %v, want %d bytes", got, err, len(text))
			}
		})
	}
}

func TestLargeWritesAndEndAreReported(t *testing.T) {
	t.Parallel()
	ended := make(chan int, 1)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		transfer, unread := limit.TransferOf(r.Context()), 0
		transfer.OnLargeWrite = func(n int) func() { unread += n; return func() {} }
		transfer.OnEnd = func() { ended <- unread }
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(make([]byte, 1000))
		_, _ = w.Write(make([]byte, 100_000))
	})
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.Copy(io.Discard, response.Body)
	response.Body.Close()
	if response.StatusCode != http.StatusAccepted || all != 101_000 || err != nil {
		t.Errorf("got HTTP %d with %d bytes, %v; want 202 with 101000", response.StatusCode, all, err)
	}
	if got := <-ended; got != 100_000 {
		t.Errorf("got %d bytes in large writes, want 100000", got)
	}
}
