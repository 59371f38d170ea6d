// Package tracing exports one OpenTelemetry trace for each execution, by OTLP over HTTP.
//
//	tracer, err := tracing.Open(ctx, tracing.Config{...})
//	handler = tracer.Handler(handler)     // takes the parent from the header traceparent
//	trace := tracer.Begin(ctx, execution) // trace.Traceparent() is for the code
//	trace.End(execution, timeline)        // makes all spans, from the execution's record
//
// The span of the execution begins with Begin, because the code and its record need its ids. All other spans are made
// at the end from times that are known then, so nothing else of the service knows of traces. The SDK exports spans in
// a goroutine of its own; Close ends it.
//
// A nil *Tracer makes nil traces, whose methods do nothing and allocate nothing.
package tracing

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"glasshouse/sandbox"
)

const (
	maxSpans        = 256 // of statements, and of connections, of one execution; the others are counted
	maxMessageRunes = 200
	instrumentation = "glasshouse"
)

// Config configures a Tracer. OpenTelemetry's SDK reads the other settings from the standard variables OTEL_*.
type Config struct {
	Version string      // of the service
	Log     func(error) // gets the errors of the export
}

// Tracer makes the traces of executions. It is safe for concurrent use.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// Open returns a Tracer that exports to the endpoint of the variables OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT. The caller closes it.
func Open(ctx context.Context, c Config) (*Tracer, error) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(c.Log))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the export of traces: %w; check the variables OTEL_EXPORTER_OTLP_*", err)
	}
	// A variable overrides the attributes before it.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithAttributes(
		keyServiceName.String("glasshouse"), keyServiceVersion.String(c.Version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe the service for traces: %w; check OTEL_RESOURCE_ATTRIBUTES", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return &Tracer{provider, provider.Tracer(instrumentation, trace.WithInstrumentationVersion(c.Version))}, nil
}

// Close exports the spans that wait, until ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Handler returns a handler that passes the trace of a request's header traceparent to next in the context.
func (t *Tracer) Handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Trace is the trace of one execution.
type Trace struct {
	tracer *Tracer
	ctx    context.Context // with the span
	span   trace.Span
}

// Begin begins the trace of an execution, in that of ctx if it has one.
func (t *Tracer) Begin(ctx context.Context, e *sandbox.Execution) *Trace {
	if t == nil {
		return nil
	}
	ctx, span := t.tracer.Start(context.WithoutCancel(ctx), spanExecution+string(e.Kind),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			keyExecution.String(e.ID), keySandbox.String(e.SandboxID), keyUser.String(e.User),
			keyKind.String(string(e.Kind))))
	return &Trace{t, ctx, span}
}

// ID returns the trace id, in hex; "" for a nil trace.
func (t *Trace) ID() string {
	if t == nil {
		return ""
	}
	return t.span.SpanContext().TraceID().String()
}

// Traceparent returns the header traceparent of requests that belong to the execution; "" for a nil trace.
func (t *Trace) Traceparent() string {
	if t == nil {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(t.ctx, carrier)
	return carrier.Get("traceparent")
}

// Timeline has the times of an execution that its record has not. A zero time means that the step was not reached.
type Timeline struct {
	Queued   time.Time // it began to wait for a slot
	Slot     time.Time // it had the slot
	Recorded time.Time // its beginning was on record
	Start    *sandbox.GuestStart
	Began    time.Time // the guest had the code
	Compile  time.Duration
	Ended    time.Time // the code had ended
	Storing  time.Time // history began to store its end
}

// Abort ends the trace of an execution that did not begin, because of err.
func (t *Trace) Abort(err error, line Timeline) {
	if t == nil {
		return
	}
	t.step(spanQueue, line.Queued, line.Slot)
	t.span.SetStatus(codes.Error, shorten(err.Error(), maxMessageRunes))
	t.span.End()
}

// End makes the spans of an execution that has ended, and ends its own span.
func (t *Trace) End(e *sandbox.Execution, line Timeline) {
	if t == nil {
		return
	}
	defer t.span.End()
	if !t.span.IsRecording() { // the sampler, or the caller, has not chosen it
		return
	}
	t.step(spanQueue, line.Queued, line.Slot)
	t.step(spanBegin, line.Slot, line.Recorded)
	if s := line.Start; s != nil && !s.At.Before(line.Queued) { // not a start by an earlier request
		pool := "miss"
		if s.FromPool {
			pool = "hit"
		}
		t.step(spanFork, s.At, s.At.Add(s.Took), keyPool.String(pool))
	}
	run := line.Began
	if line.Compile > 0 {
		run = line.Began.Add(line.Compile)
		t.step(spanCompile, line.Began, run)
	}
	if e.Kind != sandbox.KindQuery { // which is its statement
		t.step(spanRun, run, line.Ended)
	}
	for _, q := range e.Queries[:min(len(e.Queries), maxSpans)] {
		t.query(q)
	}
	for _, c := range e.Connections[:min(len(e.Connections), maxSpans)] {
		t.connection(c)
	}
	t.omitted(keyOmittedQueries, len(e.Queries), e.Truncated["queries"])
	t.omitted(keyOmittedConnections, len(e.Connections), e.Truncated["connections"])
	t.step(spanFinish, line.Storing, time.Now())
	t.span.SetAttributes(keyStatus.String(string(e.Status)))
	if e.Usage.EndedBy != "" {
		t.span.SetAttributes(keyEndedBy.String(e.Usage.EndedBy))
	}
	if e.Status != sandbox.StatusCompleted {
		if e.Exception != nil {
			t.span.SetAttributes(keyErrorType.String(shorten(e.Exception.Type, maxMessageRunes)))
		}
		t.span.SetStatus(codes.Error, string(e.Status)) // the message may have data of users
	}
}

// omitted notes how many of n items, and of others that the record has not, have no span.
func (t *Trace) omitted(key attribute.Key, n int, unrecorded int64) {
	if missing := int64(max(n-maxSpans, 0)) + unrecorded; missing > 0 {
		t.span.SetAttributes(key.Int64(missing))
	}
}

// step makes the span of a step, if it was reached.
func (t *Trace) step(name string, from, to time.Time, attributes ...attribute.KeyValue) {
	if from.IsZero() || to.IsZero() {
		return
	}
	_, span := t.tracer.tracer.Start(t.ctx, name, trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(to))
}

// query makes the span of a statement, without the text of the statement, which may have data of users.
func (t *Trace) query(q sandbox.Query) {
	attributes := []attribute.KeyValue{
		keyDatabaseSystem.String("postgresql"), keyReturnedRows.Int(q.Rows), keyStatus.String(q.Status),
	}
	if database := q.KnownDatabase(); database != "" {
		attributes = append(attributes, keyDatabase.String(database))
	}
	span := t.call(spanQuery, q.StartedAt, attributes)
	if q.Status == "refused" || q.Status == "failed" || q.Status == "cancelled" {
		span.SetAttributes(keyErrorType.String(q.Reason))
		span.SetStatus(codes.Error, q.Reason)
	}
	span.End(trace.WithTimestamp(q.StartedAt.Add(milliseconds(q.DurationMS))))
}

func (t *Trace) connection(c sandbox.Connection) {
	span := t.call(spanConnection, c.StartedAt, []attribute.KeyValue{
		keyServerAddress.String(c.Host), keyServerPort.Int(c.Port), keyStatus.String(string(c.Status)),
		keySent.Int64(c.BytesSent), keyReceived.Int64(c.BytesReceived),
	})
	if c.Status != sandbox.ConnectionAllowed {
		span.SetStatus(codes.Error, shorten(c.Reason, maxMessageRunes))
	}
	span.End(trace.WithTimestamp(c.StartedAt.Add(milliseconds(c.DurationMS))))
}

func (t *Trace) call(name string, from time.Time, attributes []attribute.KeyValue) trace.Span {
	_, span := t.tracer.tracer.Start(t.ctx, name, trace.WithTimestamp(from), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attributes...))
	return span
}

// shorten returns a text that OTLP can carry: one character that is not valid would refuse all spans of an export.
func shorten(text string, maxRunes int) string {
	return strings.ToValidUTF8(sandbox.Shorten(text, maxRunes), "\uFFFD")
}

func milliseconds(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
