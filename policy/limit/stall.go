package limit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"time"
)

// DefaultStallTimeout is the timeout of the service's listeners.
const DefaultStallTimeout = 30 * time.Second

const (
	// chunkBytes of a response must be read within the stall timeout.
	chunkBytes = 128 << 10
	// drainTimeout and drainBytes bound how much is read of a body that the handler did not read.
	drainTimeout = 5 * time.Second
	drainBytes   = 64 << 20
	// largeWrite is the size in bytes from which OnLargeWrite is called.
	largeWrite = 64 << 10
)

// StallTimeout ends stalled connections: for the timeout, the client sends no part of its body or
// reads no part of the response. It limits neither the handler nor the duration of a transfer.
func StallTimeout(next http.Handler, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &Transfer{
			ResponseWriter: w, out: http.NewResponseController(w), body: r.Body, timeout: timeout,
			bodyRead: r.Body == nil || r.Body == http.NoBody,
		}
		r = r.WithContext(context.WithValue(r.Context(), transferKey{}, t))
		if !t.bodyRead {
			r.Body = t
		}
		defer t.end()
		next.ServeHTTP(t, r)
		t.begin(http.StatusOK)
		t.extendWrite() // net/http flushes its buffer, then removes the deadline
		if t.drainsAfter {
			_ = t.out.Flush()
			t.drain()
		}
	})
}

type transferKey struct{}

// TransferOf returns the transfer of a request under StallTimeout, or nil.
func TransferOf(ctx context.Context) *Transfer {
	t, _ := ctx.Value(transferKey{}).(*Transfer)
	return t
}

// Transfer is the body and the response of one request. It belongs to the request's goroutine.
type Transfer struct {
	http.ResponseWriter
	out     *http.ResponseController
	body    io.ReadCloser
	timeout time.Duration

	readBy time.Time // the body is not read after it; zero means no bound
	// to its end: a read deadline would now end the request, as net/http watches for a closed connection
	bodyRead     bool
	begun        bool // the response has begun, or the connection was hijacked
	drainsAfter  bool // the rest of the body is read after the response
	ownDeadlines bool // the handler sets the write deadlines

	// OnLargeWrite is called with the size of each large write. Its result is called when the
	// client has read the data. It may be nil.
	OnLargeWrite func(bytes int) (done func())
	// OnChunk is called before each chunk that ReadFrom copies. Its error ends the copy. It may be nil.
	OnChunk func() error
	// OnEnd is called when the response has been written. It may be nil.
	OnEnd func()
}

func (t *Transfer) end() {
	if t.OnEnd != nil {
		t.OnEnd()
	}
}

// Read reads from the body. Each call has the whole timeout.
func (t *Transfer) Read(b []byte) (int, error) {
	if t.bodyRead {
		return t.body.Read(b)
	}
	deadline := time.Now().Add(t.timeout)
	if !t.readBy.IsZero() && t.readBy.Before(deadline) {
		deadline = t.readBy
	}
	_ = t.out.SetReadDeadline(deadline)
	n, err := t.body.Read(b)
	if errors.Is(err, io.EOF) {
		t.bodyRead = true
		_ = t.out.SetReadDeadline(time.Time{})
	}
	return n, err
}

// Close does nothing. net/http closes the body itself, and after a Close its rest could not be read.
func (t *Transfer) Close() error { return nil }

// begin runs before the first byte of the response. Many clients send their whole body before they read. If the
// connection was closed while they send, they would see a reset instead of the response. So the rest of the body is
// read, within bounds: before a response, or after an error, so that a client that looks for one can stop.
func (t *Transfer) begin(status int) {
	if t.begun {
		return
	}
	t.begun = true
	if t.bodyRead {
		return
	}
	if status >= 400 {
		t.drainsAfter = true
		_ = t.out.EnableFullDuplex() // otherwise net/http reads up to 256 KB of the body before it sends the response
	} else {
		t.drain()
	}
	if !t.bodyRead {
		t.Header().Set("Connection", "close")
	}
}

// drain reads the rest of the body, up to drainBytes, for at most drainTimeout. It leaves time for the response.
func (t *Transfer) drain() {
	t.readBy = time.Now().Add(min(drainTimeout, t.timeout/2))
	_, _ = io.CopyN(io.Discard, t, drainBytes) // bodyRead tells whether the body has ended
}

func (t *Transfer) extendWrite() {
	if !t.ownDeadlines {
		_ = t.out.SetWriteDeadline(time.Now().Add(t.timeout))
	}
}

// WriteHeader sends the status.
func (t *Transfer) WriteHeader(status int) {
	if status >= 200 {
		t.begin(status)
	}
	t.ResponseWriter.WriteHeader(status)
}

// Write writes b in chunks. The client must read each chunk within the timeout.
func (t *Transfer) Write(b []byte) (n int, err error) {
	t.begin(http.StatusOK)
	if t.OnLargeWrite != nil && len(b) > largeWrite {
		defer t.OnLargeWrite(len(b))()
	}
	for {
		t.extendWrite()
		m, err := t.ResponseWriter.Write(b[n:min(len(b), n+chunkBytes)])
		n += m
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// ReadFrom copies in chunks, and keeps sendfile(2) for files.
func (t *Transfer) ReadFrom(from io.Reader) (n int64, err error) {
	to, ok := t.ResponseWriter.(io.ReaderFrom)
	if !ok {
		return io.Copy(struct{ io.Writer }{t}, from)
	}
	t.begin(http.StatusOK)
	all, ok := from.(*io.LimitedReader) // as http.ServeContent passes it
	if !ok {
		all = &io.LimitedReader{R: from, N: math.MaxInt64}
	}
	for {
		if t.OnChunk != nil {
			if err := t.OnChunk(); err != nil {
				return n, err
			}
		}
		chunk := &io.LimitedReader{R: all.R, N: min(all.N, chunkBytes)}
		t.extendWrite()
		m, err := to.ReadFrom(chunk)
		n, all.N = n+m, all.N-m
		if err != nil || chunk.N > 0 || all.N == 0 {
			return n, err
		}
	}
}

// Flush sends what is buffered.
func (t *Transfer) Flush() {
	t.begin(http.StatusOK)
	t.extendWrite()
	_ = t.out.Flush()
}

// Hijack hands the connection to the caller, without deadlines.
func (t *Transfer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	t.begun, t.ownDeadlines = true, true
	return t.out.Hijack()
}

// Unwrap returns the writer below.
func (t *Transfer) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// SetReadDeadline does nothing. huma sets a deadline of 5 s for a whole body, on any line, and
// even for a request without one, where the deadline would end the run.
func (t *Transfer) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline lets a stream set its own write deadlines, until it sets the zero time.
func (t *Transfer) SetWriteDeadline(deadline time.Time) error {
	t.ownDeadlines = !deadline.IsZero()
	return t.out.SetWriteDeadline(deadline)
}
