//go:build nightly

package dbaccess_test

import (
	"math"
	"os"
	"testing"
	"time"

	"glasshouse/dbaccess/dbtest"
)

// generateDuration returns how long the tests below run: GLASSHOUSE_TEST_GENERATE, or an hour. Each run has another seed,
// which the report names.
func generateDuration(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("GLASSHOUSE_TEST_GENERATE")
	if text == "" {
		return time.Hour
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestGeneratedStatementsForAnHour(t *testing.T) {
	t.Parallel()
	end := time.Now().Add(generateDuration(t))
	testGenerated(t, dbtest.Start(t), uint64(time.Now().Unix()), math.MaxInt, end)
}

func TestGeneratedStatementsOnOtherVersionsForAnHour(t *testing.T) {
	t.Parallel()
	for version, programs := range newerVersions(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server, end := startVersion(t, programs), time.Now().Add(generateDuration(t))
			testGenerated(t, server, uint64(time.Now().Unix()), math.MaxInt, end)
		})
	}
}
