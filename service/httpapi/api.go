// Package httpapi is the HTTP face: gin routes, huma describes and checks. It
// turns requests into calls of service and errors into problems (RFC 9457), and
// holds no rule of its own.
//
// A request goes through: request id and access log, panic guard, the key, size
// cap, huma's check against the schema, the handler. Every route is served at its
// path and under /api/v1.
package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"
	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service"
	"glasshouse/web"
)

// Config of the face.
type Config struct {
	Service *service.Service
	Log     logrus.FieldLogger
	Version string
	Access  bool // log every request

	StallTimeout time.Duration // of requests and responses; 0 is limit.DefaultStallTimeout
}

type api struct {
	service  *service.Service
	log      logrus.FieldLogger
	access   bool
	requests atomic.Int64
	failures atomic.Int64
	limits   limits
	started  time.Time
}

// maxBody is what a request's body may hold, in bytes; an upload is held to its
// sandbox's own bounds instead, below maxUpload.
const (
	maxBody   = 4 << 20
	maxUpload = 2 << 30
)

// New returns the handler of the whole API.
func New(c Config) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.HandleMethodNotAllowed = true
	a := &api{service: c.Service, log: unlessGone{c.Log}, access: c.Access, limits: newLimits(), started: time.Now()}
	router.Use(a.frame, a.authenticate)
	router.NoRoute(func(g *gin.Context) {
		a.problem(g, sandbox.Errorf(sandbox.FaultNotFound, "there is no %s here; GET /docs shows what there is", g.Request.URL.Path))
	})
	router.NoMethod(func(g *gin.Context) {
		a.problem(g, sandbox.Errorf(sandbox.FaultMethod, "%s is not a method of %s; GET /docs shows what is", g.Request.Method, g.Request.URL.Path))
	})
	huma.NewErrorWithContext = newProblem
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return newProblem(nil, status, message, errs...)
	}
	config := huma.DefaultConfig("Glasshouse", c.Version)
	config.DocsPath, config.SchemasPath = "", ""
	config.CreateHooks = nil // no $schema in answers
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: decode}
	config.Formats = map[string]huma.Format{"application/json": format, "json": format}
	config.RejectUnknownQueryParameters = true // a filter that is misspelt would let everything through
	huma.ValidateStrictCasing = true           // Go's reader of JSON takes ROLE for role, past all that is asked of role
	config.Info.Description = "Runs Python that agents write, next to PostgreSQL, and shows everything that happened."
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer"}}
	config.Security = []map[string][]string{{"key": {}}}
	full := humagin.New(router, config)
	for _, prefix := range []string{"", "/api/v1"} {
		group := place{full, prefix}
		a.sandboxes(group)
		a.executions(group)
		a.recordings(group)
		a.writes(group)
		a.agents(group)
		a.helps(group)
		a.looks(group)
		a.environments(group)
		a.files(router, group)
		a.artifacts(router, group)
		a.keys(group)
		a.debug(router, group)
		a.sessions(router, group)
		a.editors(router, group)
	}
	router.GET("/", func(g *gin.Context) { g.Redirect(http.StatusFound, "/docs") })
	router.GET("/docs", func(g *gin.Context) { g.Data(http.StatusOK, "text/html; charset=utf-8", web.Docs) })
	router.GET("/healthz", func(g *gin.Context) { g.JSON(http.StatusOK, gin.H{"status": "ok"}) })
	router.GET("/readyz", func(g *gin.Context) {
		ctx, cancel := context.WithTimeout(g.Request.Context(), 2*time.Second)
		defer cancel()
		if err := a.service.Ready(ctx); err != nil {
			a.problem(g, err)
			return
		}
		g.JSON(http.StatusOK, gin.H{"status": "ready"})
	})
	router.GET("/metrics", a.metrics)
	return limit.StallTimeout(router, cmp.Or(c.StallTimeout, limit.DefaultStallTimeout))
}

// frame is around every request: an id, the size cap, the guard, the log.
func (a *api) frame(g *gin.Context) {
	began := time.Now()
	id := newRequestID(g.GetHeader("X-Request-ID"))
	g.Set(requestIDKey, id)
	g.Header("X-Request-ID", id)
	g.Request = g.Request.WithContext(context.WithValue(g.Request.Context(), ctxRequestID{}, id))
	most := int64(maxBody)
	if uploads[strings.TrimPrefix(g.FullPath(), "/api/v1")] {
		most = maxUpload
	}
	g.Request.Body = http.MaxBytesReader(g.Writer, g.Request.Body, most)
	defer func() {
		a.requests.Add(1)
		if p := recover(); p != nil {
			a.log.WithFields(logrus.Fields{"request_id": id, "panic": p}).Error("a request panicked")
			if !g.Writer.Written() {
				a.problem(g, fmt.Errorf("panic"))
			}
		}
		if g.Writer.Status() >= 500 && g.Request.Context().Err() == nil { // a client that has left reads no status
			a.failures.Add(1)
		}
		if a.access {
			a.log.WithFields(logrus.Fields{"request_id": id, "method": g.Request.Method, "path": g.Request.URL.Path, "status": g.Writer.Status(), "ms": float64(time.Since(began).Microseconds()) / 1000}).Info("request")
		}
	}()
	if err := readable(g.Request.URL.RawQuery); err != nil {
		a.problem(g, err)
		return
	}
	g.Next()
}

// readable refuses a query of which a part would be left out: of filters, it would let through
// what they keep back.
func readable(query string) error {
	if query == "" {
		return nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return sandbox.Errorf(sandbox.FaultInvalid, "the query can't be read: %s. Write ; as %%3B, and %% as %%25", err)
	}
	for name, given := range values {
		if len(given) > 1 {
			return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: name, Detail: "it is given more than once"}
		}
	}
	return nil
}

var open = map[string]bool{"/": true, "/healthz": true, "/readyz": true, "/docs": true, "/openapi.json": true, "/openapi.yaml": true}

// authenticate finds the caller's key.
func (a *api) authenticate(g *gin.Context) {
	if open[g.Request.URL.Path] || signed(g) {
		return
	}
	scheme, secret, _ := strings.Cut(g.GetHeader("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		g.Header("WWW-Authenticate", `Bearer realm="glasshouse"`)
		a.problem(g, sandbox.Errorf(sandbox.FaultUnauthorized, "send Authorization: Bearer KEY; `glasshouse keys create` makes a key"))
		return
	}
	caller, err := a.service.Authenticate(g.Request.Context(), strings.TrimSpace(secret))
	if err != nil {
		if fault(err) == sandbox.FaultUnauthorized {
			g.Header("WWW-Authenticate", `Bearer realm="glasshouse", error="invalid_token"`)
		}
		a.problem(g, err)
		return
	}
	if err := a.limits.admit(g.Request.Context(), caller.Account); err != nil {
		a.problem(g, err)
		return
	}
	left, err := a.service.Admit(caller)
	if left.Limit > 0 {
		for name, n := range map[string]int{"Limit": left.Limit, "Remaining": left.Remaining, "Reset": int(math.Ceil(left.Reset.Seconds()))} {
			g.Header("RateLimit-"+name, strconv.Itoa(n))
		}
		g.Header("RateLimit-Policy", strconv.Itoa(left.Limit)+";w=60")
	}
	if err != nil {
		a.problem(g, err)
		return
	}
	g.Request = g.Request.WithContext(context.WithValue(g.Request.Context(), ctxKey{}, caller))
}

type (
	ctxKey       struct{}
	ctxRequestID struct{}
)

// callerFrom is the key that authenticate found.
func callerFrom(ctx context.Context) sandbox.Key {
	caller, _ := ctx.Value(ctxKey{}).(sandbox.Key)
	return caller
}

func (a *api) metrics(g *gin.Context) {
	st, err := a.service.Statistics(g.Request.Context(), callerFrom(g.Request.Context()))
	if err != nil {
		a.problem(g, err)
		return
	}
	g.Header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	g.Status(http.StatusOK)
	for _, m := range []struct {
		name, kind, help string
		value            float64
	}{
		{"glasshouse_http_requests_total", "counter", "HTTP requests answered.", float64(a.requests.Load())},
		{"glasshouse_http_errors_total", "counter", "HTTP requests answered with a status from 500 on.", float64(a.failures.Load())},
		{"glasshouse_active_sandboxes", "gauge", "Live sandboxes that the caller may see.", float64(st.ActiveSandboxes)},
		{"glasshouse_executions_total", "counter", "Executions in history that the caller may see.", float64(st.TotalExecutions)},
		{"glasshouse_executions_failed_total", "counter", "Of those, failed or killed.", float64(st.FailedExecutions)},
		{"glasshouse_executions_timeout_total", "counter", "Of those, ended by the time limit.", float64(st.TimeoutExecutions)},
		{"glasshouse_uptime_seconds", "gauge", "Seconds since the start.", time.Since(a.started).Seconds()},
	} {
		fmt.Fprintf(g.Writer, "# HELP %s %s\n# TYPE %s %s\n%s %g\n", m.name, m.help, m.name, m.kind, m.name, m.value)
	}
}

// unlessGone logs nothing of what failed only because its client has left.
type unlessGone struct{ logrus.FieldLogger }

var nowhere = &logrus.Logger{Out: io.Discard, Formatter: &logrus.TextFormatter{}, Level: logrus.PanicLevel}

func (l unlessGone) WithError(err error) *logrus.Entry {
	if errors.Is(err, context.Canceled) {
		return logrus.NewEntry(nowhere)
	}
	return l.FieldLogger.WithError(err)
}
