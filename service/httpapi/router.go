// Package httpapi serves the service over HTTP.
//
// gin routes requests; its groups carry the prefixes ("" and /api/v1), the body limit and the authentication.
// huma decodes and validates JSON requests and describes every route in OpenAPI, including those that gin
// handles alone: streams, uploads, downloads and the WebSocket. Handlers call the services and turn their
// errors into problems (RFC 9457); they hold no rules of their own.
//
// A request passes the middlewares in middleware.go in the order that newRouter lists them.
//
//	router.go       New, the groups, the list of routes
//	middleware.go   one function for each concern
//	openapi.go      the description of a route, and its registration
//	errors.go       problems and their statuses
//	sse.go          the writer of server-sent events
//	json.go         decoding of JSON bodies
//	…               one file for each noun, with its routes, inputs and outputs
package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/chat"
	"glasshouse/service/database"
	"glasshouse/service/debug"
	"glasshouse/service/live"
	"glasshouse/service/metrics"
	"glasshouse/service/records"
	"glasshouse/service/run"
	"glasshouse/service/signin"
	"glasshouse/service/write"
)

// Config configures the API.
type Config struct {
	Access    *access.Service // admits requests
	Records   *records.Service
	Live      *live.Service
	Databases *database.Service
	Runs      *run.Service
	Writes    *write.Service
	Debug     *debug.Service
	Log       logrus.FieldLogger
	Version   string           // of the service, for OpenAPI
	Metrics   *metrics.Metrics // nil: those of the requests only
	MCP       MCP              // serves POST /mcp
	Chat      *chat.Chat       // serves /chat

	CPU         *limit.CPU // shares the encoding of large records; nil: unlimited
	LogRequests bool       // also those that succeed

	Results *limit.Results // bounds the memory of answers with rows; nil: nothing does

	Proxy     *signin.Proxy // nil: no proxy names persons
	PublicURL string        // at which browsers reach the service, without a slash at the end; "": each request's

	StallTimeout time.Duration // of requests and responses; 0 is limit.DefaultStallTimeout
}

// MCP serves a request of the Model Context Protocol for a caller who is authenticated.
type MCP interface {
	ServeHTTP(w http.ResponseWriter, r *http.Request, caller sandbox.Key)
}

// api is the state that handlers and middlewares share.
type api struct {
	access       *access.Service
	records      *records.Service
	live         *live.Service
	databases    *database.Service
	runs         *run.Service
	writes       *write.Service
	debug        *debug.Service
	chat         *chat.Chat
	log          logrus.FieldLogger
	logsRequests bool
	version      string
	proxy        *signin.Proxy
	metrics      *metrics.Metrics
	cpu          *limit.CPU
	results      *limit.Results
	publicURL    string
	methods      []pathMethod // of all paths, without the prefix; for 405

	repeatable map[string][]string // the query parameters that are lists, by gin's path without the prefix
}

// The maximum body sizes of requests, in bytes. An upload is also bounded by its sandbox's policy.
const (
	maxLogin  = 16 << 10
	maxBody   = 4 << 20
	maxUpload = 2 << 30
)

// versionPrefix is the prefix under which every route with a key is served a second time.
const versionPrefix = "/api/v1"

func init() {
	// gin and huma keep these settings in globals only. They are set once, before any router exists.
	gin.SetMode(gin.ReleaseMode)
	huma.NewErrorWithContext = newProblem
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return newProblem(nil, status, message, errs...)
	}
	// encoding/json takes ROLE for role. Without strict casing, such a name would escape validation.
	huma.ValidateStrictCasing = true
}

// New returns the handler of the whole API.
func New(c Config) http.Handler {
	router, _ := newRouter(c)
	return limit.StallTimeout(router, cmp.Or(c.StallTimeout, limit.DefaultStallTimeout))
}

// newRouter returns the router and the description of its routes.
func newRouter(c Config) (*gin.Engine, *huma.OpenAPI) {
	a := &api{
		access: c.Access, records: c.Records, live: c.Live, databases: c.Databases, runs: c.Runs, writes: c.Writes,
		debug: c.Debug, chat: c.Chat, log: c.Log, version: c.Version, logsRequests: c.LogRequests, metrics: c.Metrics,
		cpu: c.CPU, proxy: c.Proxy, publicURL: c.PublicURL, results: c.Results,
		repeatable: map[string][]string{},
	}
	if a.metrics == nil {
		a.metrics = metrics.New(c.Version)
	}
	router := gin.New()
	router.HandleMethodNotAllowed = true
	router.Use(identifyRequest, a.logAccess, a.countRequest, a.recoverPanics(), joinHeaderLines)
	router.NoRoute(a.admit, a.notFound)
	router.NoMethod(a.admit, a.methodNotAllowed)

	var groups groups
	group := func(prefix string, maxBytes int64, admit ...gin.HandlerFunc) *gin.RouterGroup {
		// Without a key, a client learns nothing else about its request.
		return router.Group(prefix, slices.Concat(
			[]gin.HandlerFunc{limitBody(maxBytes)}, admit, []gin.HandlerFunc{a.rejectAmbiguousQuery})...)
	}
	groups.public = []*gin.RouterGroup{group("", maxBody)}
	groups.pages = []*gin.RouterGroup{router.Group("", limitBody(maxBody))}
	for _, prefix := range []string{"", versionPrefix} {
		groups.login = append(groups.login, group(prefix, maxLogin))
		groups.keyed = append(groups.keyed, group(prefix, maxBody, a.admit, a.holdLargeBody))
		groups.signed = append(groups.signed, group(prefix, maxBody, a.admitUnlessSigned))
		groups.upload = append(groups.upload, group(prefix, maxUpload, a.admit))
	}
	r := a.newRoutes(router, groups, c.Version)
	a.routeService(r)
	a.routeSandboxes(r)
	a.routeExecute(r)
	a.routeExecutions(r)
	a.routeQueries(r)
	a.routeStages(r)
	a.routeWhySQL(r)
	a.routeInspect(r)
	a.routeTables(r)
	a.routeFiles(r)
	a.routeArtifacts(r)
	a.routeRecordings(r)
	a.routeDebug(r)
	a.routeDebugSessions(r)
	a.routeDAP(r)
	a.routePendingWrites(r)
	a.routeEnvironments(r)
	a.routeHelp(r)
	a.routeKeys(r)
	a.routeLogin(r)
	a.routeReview(r)
	a.routeMCP(r, c.MCP)
	a.routeChat(r)
	r.finish(a)
	return router, r.api.OpenAPI()
}
