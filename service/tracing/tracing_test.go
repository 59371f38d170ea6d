package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/tracing"
	"glasshouse/service/tracing/otlptest"
)

const (
	parentTrace   = "0af7651916cd43dd8448eb211c80319c"
	parentSpan    = "b7ad6b7169203331"
	sampledParent = "00-" + parentTrace + "-" + parentSpan + "-01"
)

// open returns a tracer that exports to a receiver. Its tests are not parallel, because they set the environment.
func open(t *testing.T) (*tracing.Tracer, *otlptest.Receiver) {
	t.Helper()
	receiver := otlptest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	tracer, err := tracing.Open(t.Context(), tracing.Config{Version: "test",
		Log: func(err error) { t.Errorf("the export of traces: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	return tracer, receiver
}

// request returns the context of a request with a traceparent.
func request(tracer *tracing.Tracer, traceparent string) (ctx context.Context) {
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set("traceparent", traceparent)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ctx = r.Context() })
	tracer.Handler(handler).ServeHTTP(httptest.NewRecorder(), r)
	return ctx
}

func closeTracer(t *testing.T, tracer *tracing.Tracer) {
	t.Helper()
	if err := tracer.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// execution returns an execution with statements, and its timeline.
func execution(queries int) (*sandbox.Execution, tracing.Timeline) {
	began := time.Now()
	e := &sandbox.Execution{ID: "e1", Kind: sandbox.KindQuick, Status: sandbox.StatusCompleted}
	for n := range queries {
		e.Queries = append(e.Queries, sandbox.Query{SQL: fmt.Sprint("SELECT ", n, " AS \xff"), Status: "ok",
			Rows: n, StartedAt: began, DurationMS: 1})
	}
	return e, tracing.Timeline{Queued: began, Slot: began, Recorded: began, Began: began, Ended: began, Storing: began}
}

func TestTextsOfStatementsAreNotExported(t *testing.T) {
	tracer, receiver := open(t)
	e, line := execution(1)
	tracer.Begin(t.Context(), e).End(e, line)
	closeTracer(t, tracer)
	found := false
	for _, s := range receiver.Spans("") {
		found = found || s.Name == "query"
		for name, value := range s.Attributes {
			if strings.Contains(value, "SELECT") {
				t.Errorf("the span %s: got %s = %q, want no text of a statement", s.Name, name, value)
			}
		}
	}
	if !found {
		t.Error("got no span of the statement, want one")
	}
}

func TestManyStatementsAreCounted(t *testing.T) {
	tracer, receiver := open(t)
	e, line := execution(300)
	e.Truncated = map[string]int64{"queries": 7}
	tracer.Begin(t.Context(), e).End(e, line)
	closeTracer(t, tracer)
	queries := 0
	for _, s := range receiver.Spans("") {
		if s.Name == "query" {
			queries++
		}
		if got := s.Attributes["glasshouse.omitted.queries"]; s.Name == "execution quick-execute" && got != "51" {
			t.Errorf("got %q omitted statements, want 51", got)
		}
	}
	if queries != 256 {
		t.Errorf("got %d spans of statements, want 256", queries)
	}
}

func TestAnUnsampledParentIsKept(t *testing.T) {
	tracer, receiver := open(t)
	e, line := execution(1)
	trace := tracer.Begin(request(tracer, strings.TrimSuffix(sampledParent, "1")+"0"), e)
	if got := trace.ID(); got != parentTrace {
		t.Errorf("got the trace %s, want %s", got, parentTrace)
	}
	if got := trace.Traceparent(); !strings.HasPrefix(got, "00-"+parentTrace) || !strings.HasSuffix(got, "-00") {
		t.Errorf("got the traceparent %s, want the parent's trace, not sampled", got)
	}
	trace.End(e, line)
	closeTracer(t, tracer)
	if got := receiver.Spans(""); len(got) != 0 {
		t.Errorf("got %d spans, want none", len(got))
	}
}

func TestAMalformedParentBeginsATrace(t *testing.T) {
	tracer, receiver := open(t)
	e, line := execution(0)
	for _, header := range []string{"", "nonsense", "00-" + strings.Repeat("0", 32) + "-" + parentSpan + "-01",
		strings.Repeat("a", 100_000)} {
		trace := tracer.Begin(request(tracer, header), e)
		if id := trace.ID(); len(id) != 32 || strings.Trim(id, "0") == "" {
			t.Errorf("with the parent %.60q: got the trace %q, want a new one", header, id)
		}
		trace.End(e, line)
	}
	closeTracer(t, tracer)
	for _, s := range receiver.Spans("") {
		if strings.HasPrefix(s.Name, "execution") && s.Parent != "" {
			t.Errorf("got the parent %s, want none", s.Parent)
		}
	}
}

func TestAnExecutionThatDoesNotBeginIsAnError(t *testing.T) {
	tracer, receiver := open(t)
	e, line := execution(0)
	trace := tracer.Begin(t.Context(), e)
	trace.Abort(errors.New("too many executions"), tracing.Timeline{Queued: line.Queued, Slot: line.Slot})
	closeTracer(t, tracer)
	names := map[string]bool{}
	for _, s := range receiver.Spans(trace.ID()) {
		names[s.Name] = s.IsError
	}
	if len(names) != 2 || !names["execution quick-execute"] || names["queue"] {
		t.Errorf("got the spans %v (true: an error), want an execution with an error, and its queue", names)
	}
}

// withoutTraces does what the service does for an execution if there is no endpoint.
func withoutTraces(tracer *tracing.Tracer, e *sandbox.Execution, line tracing.Timeline) string {
	trace := tracer.Begin(context.Background(), e)
	id := trace.ID() + trace.Traceparent()
	trace.End(e, line)
	return id
}

func TestNoTracerCostsNothing(t *testing.T) {
	e, line := execution(10)
	if n := testing.AllocsPerRun(100, func() { _ = withoutTraces(nil, e, line) }); n != 0 {
		t.Errorf("got %v allocations without a tracer, want 0", n)
	}
	handler := http.NewServeMux()
	if got := (*tracing.Tracer)(nil).Handler(handler); got != http.Handler(handler) {
		t.Errorf("got the handler %T, want the given one", got)
	}
}

func BenchmarkOff(b *testing.B) {
	e, line := execution(10)
	b.ReportAllocs()
	for b.Loop() {
		_ = withoutTraces(nil, e, line)
	}
}
