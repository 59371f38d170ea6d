// Package timing has the tests of package isolate that measure time, CPU or memory, or
// that count what this process holds. They do not run in parallel, and no other package's
// tests should run in parallel with them (go test -p 1).
package timing

import (
	"testing"

	"glasshouse/sandbox/isolate/isolatetest"
)

func TestMain(m *testing.M) { isolatetest.Main(m) }

func TestEveryLevel(t *testing.T) { isolatetest.RunOnOtherLevels(t) }
