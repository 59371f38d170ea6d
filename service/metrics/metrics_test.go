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

// Each database of the service has series from the start. The name that a caller invented is not a label.
func TestStatementsAreCountedByDatabase(t *testing.T) {
	t.Parallel()
	m := metrics.New("test")
	m.Watch(metrics.Sources{
		Sandboxes: func() map[string]int { return nil }, PoolReady: func() map[string]int { return nil },
		History:       func() sandbox.HistoryStatus { return sandbox.HistoryStatus{} },
		PendingWrites: func() int { return 0 }, LateCleanups: func() map[string]int { return nil },
		Databases: []string{"sales", "hr"},
	})
	m.QueryEnded(&sandbox.Query{Database: "sales", Status: "ok", DurationMS: 1500})
	m.QueryEnded(&sandbox.Query{Database: "invented", Status: "refused", Reason: sandbox.UnknownDatabase})
	text := scrape(t, m)
	for _, want := range []string{
		`glasshouse_queries_total{database="sales",reason="",status="ok"} 1`,
		`glasshouse_queries_total{database="sales",reason="unavailable",status="failed"} 0`,
		`glasshouse_queries_total{database="hr",reason="",status="ok"} 0`,
		`glasshouse_queries_total{database="",reason="unknown-database",status="refused"} 1`,
		`glasshouse_query_duration_seconds_sum{database="sales"} 1.5`,
		`glasshouse_query_duration_seconds_count{database="hr"} 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("want %q in %s", want, text)
		}
	}
	if strings.Contains(text, "invented") {
		t.Errorf("got a label with a text of the caller in %s", text)
	}
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
