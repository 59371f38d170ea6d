package main

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"

	"glasshouse/sandbox"
)

// samples are executions that a service with the demo data makes at its first start, so that a newcomer finds something
// to look at. The names of their files say what they show.
var samples = []struct {
	code, config string
	record       bool
}{
	{code: sampleRevenue},
	{code: sampleFailed},
	{code: sampleRecorded, record: true},
	{code: sampleWrite, config: `{"write_policy": "capture"}`},
}

//go:embed samples/revenue.py
var sampleRevenue string

//go:embed samples/failed.py
var sampleFailed string

//go:embed samples/recorded.py
var sampleRecorded string

//go:embed samples/write.py
var sampleWrite string

// samplesMarker is the file in the data folder that says that the sample executions are made. Without it they would
// come back whenever history has become empty.
const samplesMarker = "samples.made"

// runSamples makes the sample executions of a data folder, with the first admin key, once and if history is empty. It
// logs errors: the service works without samples.
func (a *app) runSamples(ctx context.Context, dataDir string) {
	marker := filepath.Join(dataDir, samplesMarker)
	if _, err := os.Stat(marker); err == nil {
		return
	}
	caller, err := a.access.Authenticate(ctx, a.adminKey)
	if err != nil {
		a.log.WithError(err).Warn("could not make the sample executions")
		return
	}
	statistics, err := a.history.Statistics(ctx, "")
	if err == nil {
		err = os.WriteFile(marker, nil, 0o600)
	}
	if err == nil && statistics.TotalExecutions > 0 {
		return
	}
	for _, sample := range samples {
		if err == nil {
			request := sandbox.Request{Code: sample.code, Kind: sandbox.KindQuick, Record: sample.record}
			_, err = a.runs.QuickExecute(ctx, caller, request, []byte(sample.config))
		}
	}
	if err != nil && ctx.Err() == nil {
		a.log.WithError(err).Warn("could not make all sample executions")
	}
}
