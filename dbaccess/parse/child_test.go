package parse

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A child whose statement never ends is ended by itself, from beside the parser.
func TestFuse(t *testing.T) {
	if os.Getenv("GLASSHOUSE_TEST_FUSE") != "" {
		put := startCPUWatchdog(Request{})
		for range 10 {
			startCPUWatchdog(Request{})() // one that was put out ends nothing
		}
		list := "SELECT " + strings.Repeat("1,", 50_000) + "1"
		for began := time.Now(); time.Since(began) < 60*time.Second; {
			ParseInProcess(Request{SQL: list})
		}
		put()
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestFuse$")
	cmd.Env = append(os.Environ(), "GLASSHOUSE_TEST_FUSE=1")
	err := cmd.Run()
	var left *exec.ExitError
	if !errors.As(err, &left) || left.ExitCode() != 3 {
		t.Errorf("it ended with %v", err)
	}
}
