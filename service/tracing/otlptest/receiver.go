// Package otlptest has a receiver of traces for tests: what a collector is for a service, in memory.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is an exported span. Its ids are hex.
type Span struct {
	Trace, ID, Parent string
	Name              string
	Start, End        time.Time
	Attributes        map[string]string
	IsError           bool
	Resource          map[string]string
}

// Receiver accepts OTLP over HTTP.
type Receiver struct {
	URL string // the value of OTEL_EXPORTER_OTLP_ENDPOINT

	mu    sync.Mutex
	spans []Span
}

// New starts a Receiver, which ends with the test.
func New(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if err := r.receive(request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			t.Errorf("receive spans: %v", err)
		}
	}))
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

func (r *Receiver) receive(request *http.Request) error {
	if got := request.URL.Path; got != "/v1/traces" {
		return fmt.Errorf("got the path %s, want /v1/traces", got)
	}
	body := io.Reader(request.Body)
	if request.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			return err
		}
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var data tracepb.TracesData // the request of an export has the same fields
	if err := proto.Unmarshal(text, &data); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range data.GetResourceSpans() {
		about := map[string]string{}
		for _, a := range resource.GetResource().GetAttributes() {
			about[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				r.spans = append(r.spans, newSpan(s, about))
			}
		}
	}
	return nil
}

func newSpan(s *tracepb.Span, resource map[string]string) Span {
	span := Span{
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
		Parent: hex.EncodeToString(s.GetParentSpanId()), Name: s.GetName(),
		Start: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())),
		IsError: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR, Attributes: map[string]string{},
		Resource: resource,
	}
	for _, a := range s.GetAttributes() {
		span.Attributes[a.GetKey()] = a.GetValue().GetStringValue()
		if n := a.GetValue().GetIntValue(); n != 0 {
			span.Attributes[a.GetKey()] = fmt.Sprint(n)
		}
	}
	return span
}

// Spans returns the spans of a trace that have arrived; "" means all traces.
func (r *Receiver) Spans(trace string) (spans []Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if trace == "" || s.Trace == trace {
			spans = append(spans, s)
		}
	}
	return spans
}
