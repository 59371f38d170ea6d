package isolatetest

import "testing"

func TestMain(m *testing.M) { Main(m) }

// It runs alone, because it comes before the parallel tests.
func TestEveryLevel(t *testing.T) { RunOnOtherLevels(t) }
