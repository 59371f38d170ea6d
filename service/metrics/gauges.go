package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"glasshouse/sandbox"
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	activeSandboxes = describe("glasshouse_active_sandboxes", "Live sandboxes.")
	sandboxes       = describe("glasshouse_sandboxes", "Live sandboxes by state.", "state")
	poolReady       = describe("glasshouse_pool_ready",
		"Guests that wait for code, by the packages that their zygote has imported.", "zygote")
	lateCleanups = describe("glasshouse_late_cleanups",
		"Processes, folders and control groups of ended sandboxes that could not be removed in time.", "kind")
	historyWAL = describe("glasshouse_history_wal_bytes",
		"Records in the write-ahead log of history that are not yet in PostgreSQL.")
	historyLag = describe("glasshouse_history_lag_seconds",
		"Time since a record was inserted into PostgreSQL while others wait; 0 if none waits.")
	pendingWrites = describe("glasshouse_pending_writes", "Captured statements that wait for an admin's decision.")
)

// gauges reads Sources at a scrape.
type gauges Sources

// Describe implements prometheus.Collector.
func (gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		activeSandboxes, sandboxes, poolReady, lateCleanups, historyWAL, historyLag, pendingWrites,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	all := 0
	for state, n := range g.Sandboxes() {
		send(sandboxes, float64(n), state)
		all += n
	}
	send(activeSandboxes, float64(all))
	for zygote, n := range g.PoolReady() {
		send(poolReady, float64(n), zygote)
	}
	for kind, n := range g.LateCleanups() {
		send(lateCleanups, float64(n), kind)
	}
	history := g.History()
	send(historyWAL, float64(history.WaitingBytes))
	send(historyLag, history.WaitingSeconds)
	send(pendingWrites, float64(g.PendingWrites()))
}

// visibleStatistics are the metrics of the executions and sandboxes that a caller may see.
type visibleStatistics sandbox.Statistics

var visibleMetrics = []struct {
	*prometheus.Desc
	kind  prometheus.ValueType
	value func(visibleStatistics) int
}{
	{describe("glasshouse_active_sandboxes", "Live sandboxes that the caller may see."), prometheus.GaugeValue,
		func(s visibleStatistics) int { return s.ActiveSandboxes }},
	{describe("glasshouse_executions_total", "Executions in history that the caller may see."),
		prometheus.CounterValue,
		func(s visibleStatistics) int { return s.TotalExecutions }},
	{describe("glasshouse_executions_failed_total", "Executions that failed or were killed."),
		prometheus.CounterValue,
		func(s visibleStatistics) int { return s.FailedExecutions }},
	{describe("glasshouse_executions_timeout_total", "Executions that reached their time limit."),
		prometheus.CounterValue,
		func(s visibleStatistics) int { return s.TimeoutExecutions }},
}

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
