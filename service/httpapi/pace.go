package httpapi

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

// Stall is how long a client may neither send more of its body nor take more of its answer.
const Stall = 30 * time.Second

const (
	piece   = 128 << 10       // of an answer: so much must be taken within the time
	lastFor = 5 * time.Second // for the rest of a body that nobody has asked for
)

// Paced ends connections that stand still: whose body does not go on, or whose answer
// is not taken. How long a handler takes, and a whole transfer, is not bounded.
func Paced(next http.Handler, stall time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &pacing{ResponseWriter: w, out: http.NewResponseController(w), body: r.Body, stall: stall, read: r.Body == nil || r.Body == http.NoBody}
		r = r.WithContext(context.WithValue(r.Context(), ctxPace{}, p))
		if !p.read {
			r.Body = p
		}
		defer func() {
			if p.done != nil {
				p.done()
			}
		}()
		next.ServeHTTP(p, r)
		p.settle(http.StatusOK)
		p.due() // net/http sends what it still holds, and then takes the deadline away
	})
}

type ctxPace struct{}

// pacing is one request's body and answer.
type pacing struct {
	http.ResponseWriter
	out   *http.ResponseController
	body  io.ReadCloser
	stall time.Duration
	last  time.Time // nothing is read after it, where it is set
	read  bool      // the body, to its end: net/http now waits for the client to leave, and a deadline would end the request
	begun bool      // the answer
	own   bool      // the handler sets the deadlines of what it writes

	sending func(int) (done func()) // counts what is on its way; nil: it is nobody's
	done    func()                  // gives back what the request holds until its answer is taken; nil: nothing
}

// Read is the body's. Each piece of it has the time anew.
func (p *pacing) Read(b []byte) (int, error) {
	if p.read {
		return p.body.Read(b)
	}
	by := time.Now().Add(p.stall)
	if !p.last.IsZero() && p.last.Before(by) {
		by = p.last
	}
	_ = p.out.SetReadDeadline(by)
	n, err := p.body.Read(b)
	if errors.Is(err, io.EOF) {
		p.read = true
		_ = p.out.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (p *pacing) Close() error { return p.body.Close() }

// settle comes ahead of an answer. net/http waits for the rest of a body that was not
// read, so that has an end, and a refused client's connection ends with it.
func (p *pacing) settle(status int) {
	if p.begun {
		return
	}
	p.begun = true
	if p.read {
		return
	}
	if status >= 400 {
		p.Header().Set("Connection", "close")
	}
	_ = p.out.SetReadDeadline(time.Now().Add(min(lastFor, p.stall/2))) // the answer still goes out
}

func (p *pacing) due() {
	if !p.own {
		_ = p.out.SetWriteDeadline(time.Now().Add(p.stall))
	}
}

func (p *pacing) WriteHeader(status int) {
	if status >= 200 {
		p.settle(status)
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *pacing) Write(b []byte) (n int, err error) {
	p.settle(http.StatusOK)
	if p.sending != nil && len(b) > largeAnswer {
		defer p.sending(len(b))()
	}
	for {
		p.due()
		m, err := p.ResponseWriter.Write(b[n:min(len(b), n+piece)])
		n += m
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// ReadFrom keeps files going from the kernel to the kernel, in pieces.
func (p *pacing) ReadFrom(from io.Reader) (n int64, err error) {
	to, ok := p.ResponseWriter.(io.ReaderFrom)
	if !ok {
		return io.Copy(struct{ io.Writer }{p}, from)
	}
	p.settle(http.StatusOK)
	whole, ok := from.(*io.LimitedReader) // as http.ServeContent has it
	if !ok {
		whole = &io.LimitedReader{R: from, N: math.MaxInt64}
	}
	for {
		part := &io.LimitedReader{R: whole.R, N: min(whole.N, piece)}
		p.due()
		m, err := to.ReadFrom(part)
		n, whole.N = n+m, whole.N-m
		if err != nil || part.N > 0 || whole.N == 0 {
			return n, err
		}
	}
}

func (p *pacing) Flush() {
	p.settle(http.StatusOK)
	p.due()
	_ = p.out.Flush()
}

func (p *pacing) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	p.begun, p.own = true, true // the connection is no longer ours
	return p.out.Hijack()
}

func (p *pacing) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// SetReadDeadline is huma's, which gives a whole body 5 seconds, on whatever line, and
// sets that even where there is none: the run would end with it.
func (p *pacing) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline is that of a stream.
func (p *pacing) SetWriteDeadline(by time.Time) error {
	p.own = !by.IsZero()
	return p.out.SetWriteDeadline(by)
}
