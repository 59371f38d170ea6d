package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// grace is how long an ended client may take to read what is left to be told.
const grace = time.Second

// via is how the broker names itself in what it sends on (RFC 9110, 7.6.3).
const via = "1.1 glasshouse"

// ServeHTTP brokers one request of a client inside.
func (s *serving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.work.Done()
	to, why := target(r)
	if why != nil {
		answer(w, r, why)
		return
	}
	f := s.begin(r.Context(), to)
	defer f.finish()
	if why = s.admit(to); why == nil {
		defer s.active.Add(-1)
		why = s.carry(w, r, f, to)
	}
	if why != nil {
		f.fail(why)
		answer(w, r, why)
	}
}

// target reads which host and port a request is for.
func target(r *http.Request) (policy.Target, *no) {
	var to policy.Target
	var err error
	switch {
	case r.Method == http.MethodConnect && (r.ContentLength != 0 || len(r.TransferEncoding) > 0):
		return to, malformed("a CONNECT has no body")
	case r.Method == http.MethodConnect:
		to, err = policy.ParseTarget(r.RequestURI, 0)
	case r.Method == http.MethodTrace:
		return to, &no{code: http.StatusMethodNotAllowed, reason: "TRACE is not passed on"}
	case r.URL.Scheme == "https":
		return to, malformed("an https URL is asked for with CONNECT")
	case r.URL.Scheme != "http" || r.URL.Host == "":
		return to, malformed("this is an HTTP proxy: a request names an absolute http URL, or is a CONNECT")
	default:
		to, err = policy.ParseTarget(r.URL.Host, 80)
	}
	if err != nil {
		return to, malformed("the target " + err.Error())
	}
	return to, nil
}

func malformed(reason string) *no { return &no{code: http.StatusBadRequest, reason: reason} }

// admit takes one of the places for connections, which the caller gives back.
func (s *serving) admit(to policy.Target) *no {
	if s.moved.Load() > s.Limits.MaxBytes {
		return &no{http.StatusForbidden, sandbox.ConnectionRefused, fmt.Sprintf("%s: this run has used all its %d bytes of network", to, s.Limits.MaxBytes), ""}
	}
	if s.active.Add(1) > int64(s.Limits.MaxConnections) {
		s.active.Add(-1)
		return &no{http.StatusServiceUnavailable, sandbox.ConnectionRefused, fmt.Sprintf("%s: this sandbox has %d connections open, which is all that it may", to, s.Limits.MaxConnections), ""}
	}
	return nil
}

// carry connects and passes everything on. It returns a no only while nothing of an
// answer has been sent.
func (s *serving) carry(w http.ResponseWriter, r *http.Request, f *flow, to policy.Target) *no {
	if why := f.ask(to); why != nil {
		return why
	}
	c, at, why := s.connect(f.ctx, to)
	if why != nil {
		if cause := f.cut(); cause != nil {
			why.reason = to.String() + " " + cause.Error()
		}
		return why
	}
	upstream := f.through(c)
	defer upstream.Close()
	if why := f.open(to, at); why != nil {
		return why
	}
	if r.Method == http.MethodConnect {
		tunnel(w, f, upstream)
		return nil
	}
	return s.forward(w, r, f, to, upstream)
}

// tunnel passes bytes both ways until both ends are done. One that has said all it
// has to say may still listen.
func tunnel(w http.ResponseWriter, f *flow, upstream *counted) {
	inside, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer inside.Close()
	defer context.AfterFunc(f.ctx, func() { inside.Close() })()
	if _, err := io.WriteString(inside, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var outward sync.WaitGroup
	outward.Go(func() {
		early := io.LimitReader(buffered, int64(buffered.Reader.Buffered())) // sent before our 200
		pass(f, upstream, io.MultiReader(early, inside))
	})
	pass(f, inside, upstream)
	outward.Wait()
}

// pass copies one way to its end. A connection that broke, rather than ended, takes
// the other way with it.
func pass(f *flow, to net.Conn, from io.Reader) {
	buffer := buffers.Get()
	defer buffers.Put(buffer)
	// Bare, so that the copy uses our buffer.
	if _, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, buffer); err != nil || closeWrite(to) != nil {
		f.cancel(nil)
	}
}

// forward sends one plain request on, over a connection that is its own.
func (s *serving) forward(w http.ResponseWriter, r *http.Request, f *flow, to policy.Target, upstream net.Conn) (why *no) {
	inside := client(r)
	if err := http.NewResponseController(w).EnableFullDuplex(); err != nil { // or the answer would wait for the request's end
		panic(http.ErrAbortHandler)
	}
	defer context.AfterFunc(f.ctx, func() { inside.SetDeadline(time.Now().Add(grace)) })()
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { rewrite(p, to) },
		ModifyResponse: func(answer *http.Response) error {
			answer.Header.Add("Via", via)
			return nil
		},
		Transport: &http.Transport{
			DialContext:       once(upstream),
			DisableKeepAlives: true, DisableCompression: true,
			MaxResponseHeaderBytes: int64(s.Limits.MaxHeaderBytes), ExpectContinueTimeout: time.Second,
		},
		FlushInterval: -1, BufferPool: buffers, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			why = failed(http.StatusBadGateway, to.String()+" gave no answer that is HTTP")
			cause := f.cut()
			if cause == nil && errors.Is(context.Cause(f.ctx), context.Canceled) {
				cause = errLeft
			}
			if cause != nil {
				why = failed(http.StatusGatewayTimeout, to.String()+" gave no answer; "+cause.Error())
			}
		},
	}
	proxy.ServeHTTP(w, r.WithContext(f.ctx))
	return why
}

// rewrite makes of the client's request the one that is sent: as it was, but for
// what ReverseProxy takes out hop by hop, and with the URL's host as its Host.
func rewrite(p *httputil.ProxyRequest, to policy.Target) {
	p.Out.URL.RawQuery = p.In.URL.RawQuery // what can't be parsed is the host's to judge
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if given, ok := p.In.Header[name]; ok {
			p.Out.Header[name] = given
		}
	}
	p.Out.URL.User = nil
	p.Out.URL.Host = to.String()
	p.Out.Host = to.String()
	if to.Port == 80 {
		p.Out.Host = to.Host()
	}
	p.Out.Header.Add("Via", via)
}

// once is a dialer that has its one connection already.
func once(c net.Conn) func(context.Context, string, string) (net.Conn, error) {
	var taken sync.Once
	return func(context.Context, string, string) (conn net.Conn, err error) {
		err = errors.New("the connection was used")
		taken.Do(func() { conn, err = c, nil })
		return conn, err
	}
}

// answer says no. The status line has the reason; the connection is closed.
func answer(w http.ResponseWriter, r *http.Request, why *no) {
	inside, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer inside.Close()
	defer context.AfterFunc(r.Context(), func() { inside.Close() })()
	body := "Glasshouse: " + why.reason + ".\n" + why.advice
	var text strings.Builder
	fmt.Fprintf(&text, "HTTP/1.1 %d %s\r\nVia: %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n", why.code, why.reason, via, len(body))
	if why.code == http.StatusServiceUnavailable {
		text.WriteString("Retry-After: 1\r\n")
	}
	text.WriteString("\r\n")
	if r.Method != http.MethodHead {
		text.WriteString(body)
	}
	inside.SetDeadline(time.Now().Add(grace))
	if _, err := io.WriteString(inside, text.String()); err != nil || closeWrite(inside) != nil {
		return
	}
	// Closing on unread bytes would reset the connection and lose the answer.
	io.Copy(io.Discard, io.LimitReader(inside, 256<<10))
}

// buffers is what copies pass through: as many as are in use.
var buffers = &pool{sync.Pool{New: func() any { return new([32 << 10]byte) }}}

type pool struct{ sync.Pool }

func (p *pool) Get() []byte  { return p.Pool.Get().(*[32 << 10]byte)[:] }
func (p *pool) Put(b []byte) { p.Pool.Put((*[32 << 10]byte)(b)) }
