package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"glasshouse/service/tracing"
)

// traceExportTimeout is how long a command waits at its end for the export of its last traces.
const traceExportTimeout = 5 * time.Second

// openTracer returns a tracer, or nil if the standard variables name no endpoint for traces.
func (a *app) openTracer(ctx context.Context) (*tracing.Tracer, error) {
	endpoint := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	exporter := cmp.Or(os.Getenv("OTEL_TRACES_EXPORTER"), "otlp")
	switch {
	case endpoint == "", exporter == "none", strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true"):
		return nil, nil
	case exporter != "otlp":
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER=%s: traces are exported by OTLP; set it to otlp or none", exporter)
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"),
		"http/protobuf")
	if protocol != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL=%s: traces are exported by HTTP; set it to http/protobuf, "+
			"and the endpoint to the collector's port for HTTP, usually 4318", protocol)
	}
	return tracing.Open(ctx, tracing.Config{
		Version: version,
		Log:     func(err error) { a.log.WithError(err).Warn("the export of traces") },
	})
}
