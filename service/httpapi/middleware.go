package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
	"github.com/sirupsen/logrus"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// requestInfo has the data that middlewares share about a request. identifyRequest puts it into the context.
type requestInfo struct {
	id     string
	prefix string        // "" or versionPrefix
	caller access.Caller // set by admit

	isDecoded bool   // by huma, before the handler of the route
	endTurn   func() // of the decoding of a large body; nil: there is none
}

// decoded ends the turn of the decoding of the body.
func (i *requestInfo) decoded() {
	if i.endTurn != nil {
		i.endTurn()
	}
}

type requestInfoKey struct{}

// infoFrom returns the requestInfo of a request's context.
func infoFrom(ctx context.Context) *requestInfo {
	if info, ok := ctx.Value(requestInfoKey{}).(*requestInfo); ok {
		return info
	}
	return &requestInfo{}
}

func callerFrom(ctx context.Context) sandbox.Key { return infoFrom(ctx).caller.Key }

// identifyRequest gives the request an id, which the response, problems and the log carry. It also tells browsers not
// to guess another type of the response than it has.
func identifyRequest(g *gin.Context) {
	info := &requestInfo{id: requestID(g.GetHeader("X-Request-ID"))}
	if strings.HasPrefix(g.FullPath(), versionPrefix+"/") {
		info.prefix = versionPrefix
	}
	g.Header("X-Request-ID", info.id)
	g.Header("X-Content-Type-Options", "nosniff")
	g.Request = g.Request.WithContext(context.WithValue(g.Request.Context(), requestInfoKey{}, info))
}

// requestID returns the client's id if it is short and printable ASCII, or else a new one.
func requestID(given string) string {
	notPrintable := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(given) > 0 && len(given) <= 64 && strings.IndexFunc(given, notPrintable) < 0 {
		return given
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

// logAccess logs every request, if the operator wants that.
func (a *api) logAccess(g *gin.Context) {
	if !a.logsRequests {
		return
	}
	start := time.Now()
	g.Next()
	a.log.WithFields(logrus.Fields{
		"request_id": infoFrom(g.Request.Context()).id, "method": g.Request.Method, "path": g.Request.URL.Path,
		"status": g.Writer.Status(), "ms": float64(time.Since(start).Microseconds()) / 1000,
	}).Info("request")
}

// recoverPanics answers 500 for a handler that panicked, and logs the panic.
func (a *api) recoverPanics() gin.HandlerFunc {
	return gin.CustomRecoveryWithWriter(nil, func(g *gin.Context, panicked any) {
		info := infoFrom(g.Request.Context())
		a.log.WithFields(logrus.Fields{"request_id": info.id, "panic": panicked}).Error("a request handler panicked")
		g.Abort()
		if !g.Writer.Written() {
			p, _ := toProblem(fmt.Errorf("panic: %v", panicked), info.id)
			writeProblem(g, p)
		}
	})
}

// limitBody ends the reading of a request's body after maxBytes.
func limitBody(maxBytes int64) gin.HandlerFunc {
	return func(g *gin.Context) {
		g.Request.Body = requestBody{http.MaxBytesReader(g.Writer, g.Request.Body, maxBytes)}
	}
}

// requestBody turns the errors of reading a body into those of the client. net/http has many for wrong framing.
type requestBody struct{ io.ReadCloser }

// Read returns FaultTooLarge after the last byte that is allowed, FaultMalformed for wrong framing and a body that is
// incomplete, and os.ErrDeadlineExceeded for one that stalls.
func (b requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	tooLarge, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil, err == io.EOF, errors.Is(err, os.ErrDeadlineExceeded): //nolint:errorlint // EOF is not wrapped
		return n, err
	case isTooLarge:
		return n, bodyTooLarge(tooLarge.Limit)
	}
	return n, sandbox.Errorf(sandbox.FaultMalformed, "the body cannot be read: %s", err)
}

// rejectAmbiguousQuery rejects a query string that can't be parsed, has a name without a value, or repeats a name that
// the operation does not declare as a list. If a filter was ignored, the answer would contain items that the client
// wants to exclude.
func (a *api) rejectAmbiguousQuery(g *gin.Context) {
	path := strings.TrimPrefix(g.FullPath(), versionPrefix)
	if err := checkQuery(g.Request.URL.RawQuery, a.repeatable[path]); err != nil {
		a.fail(g, err)
	}
}

func checkQuery(query string, repeatable []string) error {
	if query == "" {
		return nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return sandbox.Errorf(sandbox.FaultInvalid,
			"the query string can't be parsed: %s; write ; as %%3B and %% as %%25", err)
	}
	for name, given := range values {
		switch {
		case len(given) > 1 && !slices.Contains(repeatable, name):
			return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: name,
				Detail: "the query has it more than once; give it once"}
		case slices.Contains(given, ""):
			return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: name,
				Detail: "the query has it without a value; give it a value or leave it out"}
		}
	}
	return nil
}

// checkParameters rejects query parameters that an operation does not describe, and parameters that are too long. huma
// does this for its own operations.
func (a *api) checkParameters(op huma.Operation) gin.HandlerFunc {
	known := map[string]bool{}
	for _, p := range op.Parameters {
		known[p.Name] = known[p.Name] || p.In == "query"
	}
	return func(g *gin.Context) {
		for name := range g.Request.URL.Query() {
			if !known[name] {
				a.fail(g, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "query." + name,
					Detail: "unknown query parameter"})
				return
			}
		}
		for _, p := range op.Parameters {
			given := map[string]string{
				"query": g.Query(p.Name), "header": g.GetHeader(p.Name),
				"path": strings.TrimPrefix(g.Param(p.Name), "/"), // gin's rest of a path begins with it
			}[p.In]
			if n := utf8.RuneCountInString(given); p.Schema.MaxLength != nil && n > *p.Schema.MaxLength {
				a.fail(g, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: p.In + "." + p.Name,
					Detail: fmt.Sprintf("it has %d characters, and may have %d", n, *p.Schema.MaxLength)})
				return
			}
		}
	}
}

// joinHeaderLines makes one line of the headers that choose the form of a response. A client may send such a list in
// several lines.
func joinHeaderLines(g *gin.Context) {
	for _, name := range []string{"Accept", "Prefer"} {
		if lines := g.Request.Header[name]; len(lines) > 1 {
			g.Request.Header.Set(name, strings.Join(lines, ", "))
		}
	}
}

// admit finds the caller, or answers 401, and counts the request against the limits of the caller's user and key, or
// answers 429 if they are used up.
func (a *api) admit(g *gin.Context) {
	caller, err := a.identify(g.Request)
	if err != nil {
		if sandbox.FaultOf(err) == sandbox.FaultUnauthorized {
			challenge := `Bearer realm="glasshouse"`
			if caller.Secret != "" {
				challenge += `, error="invalid_token"`
			}
			g.Header("WWW-Authenticate", challenge)
		}
		a.fail(g, err)
		return
	}
	ctx, caller, end, err := a.access.AdmitCaller(g.Request.Context(), caller)
	if rate := caller.Rate; rate.Limit > 0 {
		g.Header("RateLimit-Limit", strconv.Itoa(rate.Limit))
		g.Header("RateLimit-Remaining", strconv.Itoa(rate.Remaining))
		g.Header("RateLimit-Reset", strconv.Itoa(int(math.Ceil(rate.Reset.Seconds()))))
		g.Header("RateLimit-Policy", strconv.Itoa(rate.Limit)+";w=60")
	}
	if err != nil {
		a.fail(g, err)
		return
	}
	defer end()
	infoFrom(ctx).caller = caller
	g.Request = g.Request.WithContext(ctx)
	g.Next()
}

// identify returns the caller of a request with the secret that the request has: that of a key or a token of the
// identity provider, in the header Authorization or the cookie of the pages. Without that header, a person whom the
// trusted proxy names is the caller, and the secret is empty.
func (a *api) identify(r *http.Request) (access.Caller, error) {
	if r.Header.Get("Authorization") == "" {
		var caller access.Caller
		person, ok, err := a.proxy.Person(r)
		if err == nil && ok {
			if err = checkOrigin(r); err == nil { // a browser sends the proxy's cookie with every request
				caller.Key, err = access.KeyOfPerson(person)
			}
		}
		if err != nil || ok {
			return caller, err
		}
	}
	secret, err := secretOf(r)
	if err != nil {
		return access.Caller{Secret: secret}, err
	}
	return a.access.Identify(r.Context(), secret)
}

// admitUnlessSigned lets a request with a signed URL pass without a key. The handler checks the signature, and admits
// the request for the user whose artifact it is.
func (a *api) admitUnlessSigned(g *gin.Context) {
	if !isSigned(g) {
		a.admit(g)
	}
}

// holdLargeBody makes a large body of a request wait while too many of the user's arrive or wait for their turn. huma
// reads the JSON of a body several times and copies it. For a large body, this work is done in the caller's turn
// (limit.CPU). The turn begins when the whole body has arrived. It ends when the route's handler begins.
func (a *api) holdLargeBody(g *gin.Context) {
	info := infoFrom(g.Request.Context())
	defer info.decoded()
	body := &largeBody{Closer: g.Request.Body, end: func(bytes int) {
		if info.isDecoded && info.endTurn == nil {
			info.endTurn = a.cpu.Begin(info.caller.Key.User, bytes)
		}
	}}
	body.Reader = access.BodyReader(g.Request.Context(), g.Request.Body)
	g.Request.Body = body
	g.Next()
}

// largeBody calls end with the size of a body when all of it was read.
type largeBody struct {
	io.Reader
	io.Closer
	bytes int
	end   func(bytes int)
}

func (b *largeBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.bytes += n; errors.Is(err, io.EOF) {
		b.end(b.bytes)
	}
	return n, err
}

// decodesBody notes that huma decodes the body of a request.
func decodesBody(ctx huma.Context, next func(huma.Context)) {
	infoFrom(ctx.Context()).isDecoded = true
	next(ctx)
}

func (a *api) notFound(g *gin.Context) {
	a.fail(g, sandbox.Errorf(sandbox.FaultNotFound, "there is no route %s; GET /docs lists the routes",
		g.Request.URL.Path))
}

func (a *api) methodNotAllowed(g *gin.Context) {
	path := g.Request.URL.Path
	if strings.HasPrefix(path, versionPrefix+"/") {
		path = strings.TrimPrefix(path, versionPrefix)
	}
	g.Header("Allow", strings.Join(a.methodsOf(path), ", "))
	a.fail(g, sandbox.Errorf(sandbox.FaultMethod, "%s does not accept %s; GET /docs lists the methods",
		g.Request.URL.Path, g.Request.Method))
}
