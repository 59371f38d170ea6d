package parse

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestCPUWatchdog expects a child with an endless statement to exit by itself.
func TestCPUWatchdog(t *testing.T) {
	if os.Getenv("GLASSHOUSE_TEST_FUSE") != "" {
		put := startCPUWatchdog(Request{})
		for range 10 {
			startCPUWatchdog(Request{})() // a stopped watchdog has no effect
		}
		list := "SELECT " + strings.Repeat("1,", 50_000) + "1"
		for began := time.Now(); time.Since(began) < 5*time.Minute; {
			ParseInProcess(Request{SQL: list})
		}
		put()
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestCPUWatchdog$")
	cmd.Env = append(os.Environ(), "GLASSHOUSE_TEST_FUSE=1")
	err := cmd.Run()
	var left *exec.ExitError
	if !errors.As(err, &left) || left.ExitCode() != 3 {
		t.Errorf("child exited with %v, want status 3", err)
	}
}
