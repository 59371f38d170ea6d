package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// The names and types of metrics are promises to dashboards.
func TestMetricsHaveTheirNamesAndTypes(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	c.run(t, c.create(t, nil), "1")
	a := c.do(t, "GET", "/metrics", nil)
	if got := a.header.Get("Content-Type"); a.status != http.StatusOK ||
		!strings.HasPrefix(got, "text/plain; version=0.0.4") {
		t.Errorf("got HTTP %d with %q, want 200 with Prometheus's text format", a.status, got)
	}
	for _, want := range []string{
		"# TYPE glasshouse_http_requests_total counter", "# TYPE glasshouse_http_errors_total counter",
		"# TYPE glasshouse_active_sandboxes gauge", "glasshouse_active_sandboxes 1\n",
		"# TYPE glasshouse_executions_total counter", "glasshouse_executions_total 1\n",
		"# TYPE glasshouse_executions_failed_total counter", "glasshouse_executions_failed_total 0\n",
		"# TYPE glasshouse_executions_timeout_total counter", "glasshouse_executions_timeout_total 0\n",
		"# TYPE glasshouse_uptime_seconds gauge",
	} {
		if !strings.Contains(string(a.text), want) {
			t.Errorf("want %q in %s", want, a.text)
		}
	}
	wantProblem(t, (client{}).do(t, "GET", "/metrics", nil), http.StatusUnauthorized, "unauthorized")
}
