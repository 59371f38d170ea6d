package httpapi

import (
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"glasshouse/sandbox"
)

// metrics are the counters of one API. Its registry belongs to the API, so that servers in one process
// do not share counters.
type metrics struct {
	registry *prometheus.Registry
	requests prometheus.Counter
	errors   prometheus.Counter
}

func newMetrics() *metrics {
	start := time.Now()
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "glasshouse_http_requests_total", Help: "HTTP requests answered.",
		}),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "glasshouse_http_errors_total", Help: "HTTP requests answered with a status of 500 or more.",
		}),
	}
	m.registry.MustRegister(m.requests, m.errors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "glasshouse_uptime_seconds", Help: "Seconds since the start.",
	}, func() float64 { return time.Since(start).Seconds() }))
	return m
}

// count counts requests and failures. A client that has left reads no status, so it counts as no failure.
func (m *metrics) count(g *gin.Context) {
	g.Next()
	m.requests.Inc()
	if g.Writer.Status() >= 500 && g.Request.Context().Err() == nil {
		m.errors.Inc()
	}
}

// visibleStatistics are the metrics of the executions and sandboxes that the caller may see.
type visibleStatistics sandbox.Statistics

var visibleMetrics = []struct {
	*prometheus.Desc
	kind  prometheus.ValueType
	value func(visibleStatistics) int
}{
	{description("glasshouse_active_sandboxes", "Live sandboxes that the caller may see."), prometheus.GaugeValue,
		func(s visibleStatistics) int { return s.ActiveSandboxes }},
	{description("glasshouse_executions_total", "Executions in history that the caller may see."),
		prometheus.CounterValue,
		func(s visibleStatistics) int { return s.TotalExecutions }},
	{description("glasshouse_executions_failed_total", "Executions that failed or were killed."),
		prometheus.CounterValue,
		func(s visibleStatistics) int { return s.FailedExecutions }},
	{description("glasshouse_executions_timeout_total", "Executions that reached their time limit."),
		prometheus.CounterValue,
		func(s visibleStatistics) int { return s.TimeoutExecutions }},
}

func description(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }

// Describe implements prometheus.Collector.
func (visibleStatistics) Describe(out chan<- *prometheus.Desc) {
	for _, m := range visibleMetrics {
		out <- m.Desc
	}
}

// Collect implements prometheus.Collector.
func (s visibleStatistics) Collect(out chan<- prometheus.Metric) {
	for _, m := range visibleMetrics {
		out <- prometheus.MustNewConstMetric(m.Desc, m.kind, float64(m.value(s)))
	}
}

// serveMetrics answers with the process's metrics, and those of the executions that the caller may see.
func (a *api) serveMetrics(g *gin.Context) {
	ctx := g.Request.Context()
	statistics, err := a.service.Statistics(ctx, callerFrom(ctx))
	if err != nil {
		a.fail(g, err)
		return
	}
	visible := prometheus.NewRegistry()
	visible.MustRegister(visibleStatistics(statistics))
	all := prometheus.Gatherers{a.metrics.registry, visible}
	promhttp.HandlerFor(all, promhttp.HandlerOpts{}).ServeHTTP(g.Writer, g.Request)
}
