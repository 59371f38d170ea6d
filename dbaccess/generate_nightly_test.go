//go:build nightly

package dbaccess_test

import (
	"math"
	"testing"
	"time"

	"glasshouse/dbaccess/dbtest"
)

// TestGeneratedStatementsForAnHour has another seed each time; the report names it.
func TestGeneratedStatementsForAnHour(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().Unix())
	testGenerated(t, dbtest.Start(t), seed, math.MaxInt, time.Now().Add(time.Hour))
}
