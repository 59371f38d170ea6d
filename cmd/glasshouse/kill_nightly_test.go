//go:build nightly

package main

import (
	"os"
	"strconv"
	"testing"
)

// TestManyKillsLoseNoRecordAndLeakNoResource kills processes 2000 times; GLASSHOUSE_TEST_KILLS sets another number.
func TestManyKillsLoseNoRecordAndLeakNoResource(t *testing.T) {
	kills := 2000
	if text := os.Getenv("GLASSHOUSE_TEST_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	killUnderLoad(t, kills)
}
