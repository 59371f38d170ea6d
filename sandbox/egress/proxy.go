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

const (
	drainTimeout  = time.Second // for a client to read the rest of a response after its flow has ended
	maxDrainBytes = 256 << 10   // how much of a rejected request is read before the connection closes

	via = "1.1 glasshouse" // how the Broker names itself in forwarded messages (RFC 9110, 7.6.3)
)

// ServeHTTP handles one request of a client in the sandbox.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.startRequest() {
		panic(http.ErrAbortHandler)
	}
	defer h.requests.Done()
	to, rejected := parseTarget(r)
	if rejected != nil {
		writeRejection(w, r, rejected)
		return
	}
	f := h.newFlow(r.Context(), to)
	defer f.finish()
	if rejected = h.reserve(to); rejected == nil {
		defer h.active.Add(-1)
		rejected = h.connectAndForward(w, r, f, to)
	}
	if rejected != nil {
		f.reject(rejected)
		writeRejection(w, r, rejected)
	}
}

// parseTarget returns the host and port that a request is for.
func parseTarget(r *http.Request) (policy.Target, *rejection) {
	var to policy.Target
	var err error
	switch {
	case r.Method == http.MethodConnect && (r.ContentLength != 0 || len(r.TransferEncoding) > 0):
		return to, badRequest("a CONNECT has no body")
	case r.Method == http.MethodConnect:
		to, err = policy.ParseTarget(r.RequestURI, 0)
	case r.Method == http.MethodTrace:
		return to, &rejection{code: http.StatusMethodNotAllowed, reason: "TRACE is not forwarded"}
	case r.URL.Scheme == "https":
		return to, badRequest("an https URL needs a CONNECT request")
	case r.URL.Scheme != "http" || r.URL.Host == "":
		return to, badRequest("this is an HTTP proxy: send a request with an absolute http URL, or a CONNECT")
	default:
		to, err = policy.ParseTarget(r.URL.Host, 80)
	}
	if err != nil {
		return to, badRequest("the target " + err.Error())
	}
	return to, nil
}

func badRequest(reason string) *rejection {
	return &rejection{code: http.StatusBadRequest, reason: reason}
}

// reserve counts a connection as active, or rejects a connection over the limits. The caller decrements the count.
func (h *handler) reserve(to policy.Target) *rejection {
	if h.totalBytes.Load() > h.Limits.MaxBytes {
		reason := fmt.Sprintf("%s: this run has used all its %d bytes of network traffic", to, h.Limits.MaxBytes)
		return refused(reason, "")
	}
	if h.active.Add(1) > int64(h.Limits.MaxConnections) {
		h.active.Add(-1)
		reason := fmt.Sprintf("%s: this sandbox has %d connections open, its maximum", to, h.Limits.MaxConnections)
		return &rejection{code: http.StatusServiceUnavailable, status: sandbox.ConnectionRefused, reason: reason}
	}
	return nil
}

// connectAndForward connects to the target and forwards the request or opens a tunnel. It returns a rejection only if
// no byte of a response was sent.
func (h *handler) connectAndForward(w http.ResponseWriter, r *http.Request, f *flow, to policy.Target) *rejection {
	if rejected := f.onRequest(to); rejected != nil {
		return rejected
	}
	c, at, rejected := h.connect(f.ctx, to)
	if rejected != nil {
		if cause := f.cutCause(); cause != nil {
			rejected.reason = to.String() + " " + cause.Error()
		}
		return rejected
	}
	upstream := f.wrap(c)
	defer upstream.Close()
	if rejected := f.onConnect(to, at); rejected != nil {
		return rejected
	}
	if r.Method == http.MethodConnect {
		tunnel(w, f, upstream)
		return nil
	}
	return h.forward(w, r, f, to, upstream)
}

// tunnel copies bytes in both directions until both sides are done. A side that has sent everything may still receive.
func tunnel(w http.ResponseWriter, f *flow, upstream *countedConn) {
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer client.Close()
	defer context.AfterFunc(f.ctx, func() { client.Close() })()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var upload sync.WaitGroup
	upload.Go(func() {
		early := io.LimitReader(buffered, int64(buffered.Reader.Buffered())) // sent before the client got the 200
		copyToEnd(f, upstream, io.MultiReader(early, client))
	})
	copyToEnd(f, client, upstream)
	upload.Wait()
}

// copyToEnd copies one direction and then closes it. If the connection breaks, copyToEnd ends the flow, which also ends
// the other direction.
func copyToEnd(f *flow, to net.Conn, from io.Reader) {
	buffer := buffers.Get()
	defer buffers.Put(buffer)
	// The wrappers hide ReadFrom and WriteTo, so that the copy uses this buffer.
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, buffer)
	if err != nil || closeWrite(to) != nil {
		f.cancel(nil)
	}
}

// forward forwards one request over its own connection.
func (h *handler) forward(
	w http.ResponseWriter, r *http.Request, f *flow, to policy.Target, upstream net.Conn,
) (rejected *rejection) {
	client := clientConn(r)
	// Without full duplex, the response would wait for the end of the request.
	if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
		panic(http.ErrAbortHandler)
	}
	defer context.AfterFunc(f.ctx, func() { client.SetDeadline(time.Now().Add(drainTimeout)) })()
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { rewrite(p, to) },
		ModifyResponse: func(response *http.Response) error {
			response.Header.Add("Via", via)
			return nil
		},
		Transport: &http.Transport{
			DialContext:       dialOnce(upstream),
			DisableKeepAlives: true, DisableCompression: true,
			MaxResponseHeaderBytes: int64(h.Limits.MaxHeaderBytes), ExpectContinueTimeout: time.Second,
		},
		FlushInterval: -1, BufferPool: buffers, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			cause := f.cutCause()
			if cause == nil && errors.Is(context.Cause(f.ctx), context.Canceled) {
				cause = errClientLeft
			}
			if cause != nil {
				rejected = failed(http.StatusGatewayTimeout, to.String()+" sent no response; "+cause.Error())
			} else {
				rejected = failed(http.StatusBadGateway, to.String()+" sent no valid HTTP response")
			}
		},
	}
	proxy.ServeHTTP(w, r.WithContext(f.ctx))
	return rejected
}

// rewrite undoes the changes of ReverseProxy to the client's request, except that hop-by-hop headers stay removed, and
// sets the Host header to the host of the URL.
func rewrite(p *httputil.ProxyRequest, to policy.Target) {
	p.Out.URL.RawQuery = p.In.URL.RawQuery // also a query that cannot be parsed: the host decides what to do with it
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := p.In.Header[name]; ok {
			p.Out.Header[name] = values
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

// dialOnce returns a dialer that returns c, once.
func dialOnce(c net.Conn) func(context.Context, string, string) (net.Conn, error) {
	var once sync.Once
	return func(context.Context, string, string) (conn net.Conn, err error) {
		err = errors.New("the connection of this request was used already")
		once.Do(func() { conn, err = c, nil })
		return conn, err
	}
}

// writeRejection answers a request with a rejection and closes the connection.
func writeRejection(w http.ResponseWriter, r *http.Request, rejected *rejection) {
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer client.Close()
	defer context.AfterFunc(r.Context(), func() { client.Close() })()
	body := "Glasshouse: " + rejected.reason + ".\n" + rejected.advice
	var text strings.Builder
	fmt.Fprintf(&text, "HTTP/1.1 %d %s\r\nVia: %s\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n", rejected.code, rejected.reason, via, len(body))
	if rejected.code == http.StatusServiceUnavailable {
		text.WriteString("Retry-After: 1\r\n")
	}
	text.WriteString("\r\n")
	if r.Method != http.MethodHead {
		text.WriteString(body)
	}
	client.SetDeadline(time.Now().Add(drainTimeout))
	if _, err := io.WriteString(client, text.String()); err != nil || closeWrite(client) != nil {
		return
	}
	// Reading the rest prevents a TCP reset, with which the client would lose the response.
	io.Copy(io.Discard, io.LimitReader(client, maxDrainBytes))
}

// buffers holds the buffers of copies, one for each concurrent copy.
var buffers = &bufferPool{sync.Pool{New: func() any { return new([32 << 10]byte) }}}

type bufferPool struct{ sync.Pool }

func (p *bufferPool) Get() []byte  { return p.Pool.Get().(*[32 << 10]byte)[:] }
func (p *bufferPool) Put(b []byte) { p.Pool.Put((*[32 << 10]byte)(b)) }
