package metrics_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/metrics"
)

// TestNilCountsNothing covers commands without a server, which pass no Metrics.
func TestNilCountsNothing(t *testing.T) {
	t.Parallel()
	var m *metrics.Metrics
	m.ExecutionEnded(&sandbox.Execution{Status: sandbox.StatusKilled})
	m.QueryEnded(&sandbox.Query{})
	m.QueryChecked(time.Second)
	m.ConnectionEnded(sandbox.Connection{})
	m.RecordingStored(1)
	m.GuestForked(time.Second)
	m.PoolMissed()
	m.RequestEnded("/metrics", "GET", 200, time.Second, false)
}

// TestRequestsThatTheClientLeftAreNoErrors also covers requests without a route.
func TestRequestsThatTheClientLeftAreNoErrors(t *testing.T) {
	t.Parallel()
	m := metrics.New("test")
	m.RequestEnded("/executions", "GET", 500, time.Millisecond, false)
	m.RequestEnded("/executions", "GET", 503, time.Millisecond, true)
	m.RequestEnded("", "BREW", 404, time.Millisecond, false)
	text := scrape(t, m)
	for _, want := range []string{
		"glasshouse_http_requests_total 3\n", "glasshouse_http_errors_total 1\n",
		`glasshouse_http_request_duration_seconds_count{code="499",method="GET",route="/executions"} 1`,
		`glasshouse_http_request_duration_seconds_count{code="404",method="other",route="none"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in %s", want, text)
		}
	}
}

func scrape(t testing.TB, m *metrics.Metrics) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.Code != 200 {
		t.Fatalf("got HTTP %d, %v; want 200", answer.Code, err)
	}
	return string(text)
}

// BenchmarkScrape scrapes after requests to 100 routes, each with two codes: about 1600 series.
func BenchmarkScrape(b *testing.B) {
	m := metrics.New("test")
	for route := range 100 {
		for _, code := range []int{200, 404} {
			m.RequestEnded(fmt.Sprint("/route/", route), "GET", code, time.Millisecond, false)
		}
	}
	for b.Loop() {
		scrape(b, m)
	}
}

// BenchmarkCount counts an execution with a statement, as it was answered.
func BenchmarkCount(b *testing.B) {
	m := metrics.New("test")
	e := &sandbox.Execution{Kind: sandbox.KindQuick, Status: sandbox.StatusCompleted}
	q := &sandbox.Query{Status: "ok"}
	b.ReportAllocs()
	for b.Loop() {
		m.QueryEnded(q)
		m.ExecutionEnded(e)
		m.RequestEnded("/sandbox/agent/quick-execute", "POST", 200, time.Millisecond, false)
	}
}
