// Package metrics counts in memory what the service does, for Prometheus.
//
//	m := metrics.New(version)
//	m.Watch(metrics.Sources{...})  // gauges that are read at a scrape
//	m.ExecutionEnded(execution)    // the parts of the service report what they have done
//	m.Handler()                    // answers a scrape
//
// A scrape reads this memory only: it sends no statement to PostgreSQL, so it costs the same however long history is.
// Counters begin at 0 with the process, as Prometheus expects. No label has an id, a user or any text from outside the
// program, so the number of series has a bound.
//
// A Metrics is safe for concurrent use. A nil *Metrics counts nothing.
package metrics

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"glasshouse/sandbox"
)

// Metrics are the metrics of one service. Each has a registry of its own, so services in one process do not share
// counters.
type Metrics struct {
	requests *prometheus.Registry // the metrics that every key may see
	all      *prometheus.Registry // the other metrics

	executions        *prometheus.CounterVec
	executionDuration prometheus.Histogram
	executionQueue    prometheus.Histogram
	failed, timeouts  prometheus.Counter
	kills             *prometheus.CounterVec
	fork              prometheus.Histogram
	poolMisses        prometheus.Counter
	queries           *prometheus.CounterVec
	queryDuration     *prometheus.HistogramVec
	check             prometheus.Histogram
	recordingBytes    prometheus.Counter
	connections       *prometheus.CounterVec
	httpRequests      prometheus.Counter
	httpErrors        prometheus.Counter
	httpDuration      *prometheus.HistogramVec
}

// Sources return the values of gauges. They are called at each scrape and must answer from memory.
type Sources struct {
	Sandboxes     func() map[string]int        // number of live sandboxes by state
	PoolReady     func() map[string]int        // number of waiting guests by zygote
	History       func() sandbox.HistoryStatus // what waits for PostgreSQL
	PendingWrites func() int                   // captured statements that wait for a decision
	LateCleanups  func() map[string]int        // what ended sandboxes have left behind by kind
	Databases     []string                     // their names; no other is the value of a label
}

// The upper bounds of the histograms, in seconds. An execution may take from a millisecond to five minutes.
var (
	executionBounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	queueBounds     = []float64{.0001, .001, .01, .05, .1, .25, .5, 1, 2.5, 5, 10}
	forkBounds      = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	queryBounds     = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	checkBounds     = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, .5, 1}
	// Each bound costs a series for each route, method and code, so there are few.
	httpBounds = []float64{.005, .05, .5, 5}
)

// New returns the metrics of a service of this version.
func New(version string) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, bounds []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds})
	}
	m := &Metrics{
		requests: prometheus.NewRegistry(), all: prometheus.NewRegistry(),
		executions: counters("glasshouse_executions_total", "Executions that have ended.", "kind", "status"),
		executionDuration: histogram("glasshouse_execution_duration_seconds",
			"Time that the code of an execution ran.", executionBounds),
		executionQueue: histogram("glasshouse_execution_queue_seconds",
			"Time that an execution waited for a slot (--parallel).", queueBounds),
		failed: counter("glasshouse_executions_failed_total", "Executions that failed or were killed."),
		timeouts: counter("glasshouse_executions_timeout_total",
			"Executions that reached their time limit."),
		kills: counters("glasshouse_kills_total",
			"Executions that a limit, the kernel, a caller or the service ended, by usage.ended_by.", "reason"),
		fork: histogram("glasshouse_fork_seconds",
			"Time to fork a guest from its zygote and lock it down.", forkBounds),
		poolMisses: counter("glasshouse_pool_misses_total",
			"Starts that found no waiting guest they could take, and waited for a fork."),
		queries: counters("glasshouse_queries_total",
			"SQL statements of executions, by the reason for which they were refused or failed.",
			"database", "status", "reason"),
		queryDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "glasshouse_query_duration_seconds",
			Help: "Time from a SQL statement to its last row, without refused ones.", Buckets: queryBounds,
		}, []string{"database"}),
		check:          histogram("glasshouse_check_seconds", "Time to parse and check a SQL statement.", checkBounds),
		recordingBytes: counter("glasshouse_recording_bytes_total", "Bytes of recordings that history has stored."),
		connections: counters("glasshouse_egress_connections_total",
			"Connections that executions requested and that have ended.", "outcome"),
		httpRequests: counter("glasshouse_http_requests_total", "HTTP requests answered."),
		httpErrors: counter("glasshouse_http_errors_total",
			"HTTP requests answered with a status of 500 or more."),
		httpDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "glasshouse_http_request_duration_seconds",
			Help:    "Time to answer a HTTP request, streams included. The code is 499 if the client had left.",
			Buckets: httpBounds,
		}, []string{"route", "method", "code"}),
	}
	start := time.Now()
	m.requests.MustRegister(m.httpRequests, m.httpErrors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "glasshouse_uptime_seconds", Help: "Seconds since the start.",
	}, func() float64 { return time.Since(start).Seconds() }))
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "glasshouse_build_info", Help: "Always 1; the labels describe the program.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.all.MustRegister(m.executions, m.executionDuration, m.executionQueue, m.failed, m.timeouts, m.kills, m.fork,
		m.poolMisses, m.queries, m.queryDuration, m.check, m.recordingBytes, m.connections, m.httpDuration, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// A series that appears with the value 1 has no rate, so the usual ones exist from the start.
	for _, status := range []sandbox.Status{sandbox.StatusCompleted, sandbox.StatusFailed, sandbox.StatusTimeout,
		sandbox.StatusCancelled, sandbox.StatusKilled} {
		for _, kind := range kinds {
			m.executions.WithLabelValues(string(kind), string(status))
		}
	}
	for _, status := range []sandbox.ConnectionStatus{sandbox.ConnectionAllowed, sandbox.ConnectionRefused,
		sandbox.ConnectionFailed} {
		m.connections.WithLabelValues(string(status))
	}
	for _, reason := range []string{"max_memory_mb", "max_execution_time", "machine_memory", "protocol"} {
		m.kills.WithLabelValues(reason)
	}
	return m
}

var kinds = []sandbox.Kind{sandbox.KindExecute, sandbox.KindQuick, sandbox.KindAnalyze, sandbox.KindDebug,
	sandbox.KindQuery, sandbox.KindNeMo}

// Watch adds the gauges that sources have, and the series of the databases. Call it once.
func (m *Metrics) Watch(sources Sources) {
	m.all.MustRegister(gauges(sources))
	for _, database := range sources.Databases {
		m.queries.WithLabelValues(database, "ok", "")
		m.queries.WithLabelValues(database, "failed", "unavailable")
		m.queryDuration.WithLabelValues(database)
	}
}

// Handler answers a scrape with all metrics.
func (m *Metrics) Handler() http.Handler { return handler(m.requests, m.all) }

// HandlerFor answers a scrape of a caller who may see only some executions and sandboxes. statistics are theirs.
func (m *Metrics) HandlerFor(statistics sandbox.Statistics) http.Handler {
	visible := prometheus.NewRegistry()
	visible.MustRegister(visibleStatistics(statistics))
	return handler(m.requests, visible)
}

func handler(registries ...prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(prometheus.Gatherers(registries), promhttp.HandlerOpts{})
}

// ExecutionEnded counts an execution. Its record is complete.
func (m *Metrics) ExecutionEnded(e *sandbox.Execution) {
	if m == nil {
		return
	}
	m.executions.WithLabelValues(string(e.Kind), string(e.Status)).Inc()
	m.executionDuration.Observe(e.ExecutionTime)
	m.executionQueue.Observe(e.Usage.QueueMS / 1000)
	switch e.Status {
	case sandbox.StatusFailed, sandbox.StatusKilled:
		m.failed.Inc()
	case sandbox.StatusTimeout:
		m.timeouts.Inc()
	}
	if e.Usage.EndedBy != "" {
		m.kills.WithLabelValues(e.Usage.EndedBy).Inc()
	}
}

// QueryEnded counts a SQL statement of an execution.
func (m *Metrics) QueryEnded(q *sandbox.Query) {
	if m == nil {
		return
	}
	database := q.KnownDatabase()
	m.queries.WithLabelValues(database, q.Status, q.Reason).Inc()
	if q.Status != "refused" {
		m.queryDuration.WithLabelValues(database).Observe(q.DurationMS / 1000)
	}
}

// QueryChecked counts the parse and the check of a SQL statement.
func (m *Metrics) QueryChecked(took time.Duration) {
	if m != nil {
		m.check.Observe(took.Seconds())
	}
}

// ConnectionEnded counts a connection that an execution requested.
func (m *Metrics) ConnectionEnded(c sandbox.Connection) {
	if m != nil {
		m.connections.WithLabelValues(string(c.Status)).Inc()
	}
}

// RecordingStored counts the bytes of a part of a recording.
func (m *Metrics) RecordingStored(bytes int) {
	if m != nil {
		m.recordingBytes.Add(float64(bytes))
	}
}

// GuestForked counts a fork of a guest, with the time until the guest was locked down.
func (m *Metrics) GuestForked(took time.Duration) {
	if m != nil {
		m.fork.Observe(took.Seconds())
	}
}

// PoolMissed counts a start that found no waiting guest.
func (m *Metrics) PoolMissed() {
	if m != nil {
		m.poolMisses.Inc()
	}
}

// statusClientLeft is the code of a request whose client left before its answer, as nginx has it.
const statusClientLeft = 499

// RequestEnded counts a HTTP request. route is the path with the names of its parameters, "" if there is no such route.
// clientLeft says that nobody reads the answer, which is then no failure of the service.
func (m *Metrics) RequestEnded(route, method string, code int, took time.Duration, clientLeft bool) {
	if m == nil {
		return
	}
	m.httpRequests.Inc()
	switch {
	case clientLeft:
		code = statusClientLeft
	case code >= http.StatusInternalServerError:
		m.httpErrors.Inc()
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
	default: // a client can invent any number of methods
		method = "other"
	}
	if route == "" {
		route = "none"
	}
	m.httpDuration.WithLabelValues(route, method, strconv.Itoa(code)).Observe(took.Seconds())
}
