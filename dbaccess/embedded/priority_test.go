package embedded_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"glasshouse/dbaccess/embedded"
)

// SetNice of a service that runs as root changes the server's own processes, and no other.
func TestSetNiceChangesTheServersProcessesOnly(t *testing.T) {
	t.Parallel()
	s := startServer(t, newFolder(t))
	pid := connect(t, s.URL(embedded.RoleAdmin, "postgres")).PgConn().PID()
	want := func(pid, nice int) {
		t.Helper()
		if raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, pid); err != nil || 20-raw != nice {
			t.Errorf("process %d: got the nice value %d, %v; want %d", pid, 20-raw, err, nice)
		}
		// A kernel without autogroups has no such file.
		group, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid))
		if err == nil && pid != os.Getpid() && !strings.HasSuffix(string(group), fmt.Sprintf(" nice %d\n", nice)) {
			t.Errorf("process %d: got the autogroup %q, want it to end with nice %d", pid, group, nice)
		}
	}
	for _, nice := range []int{7, 0} {
		s.SetNice(pid, nice)
		if os.Geteuid() != 0 {
			nice = 0 // an ordinary user could not lower the value again
		}
		want(int(pid), nice)
	}
	own, err := syscall.Getpriority(syscall.PRIO_PROCESS, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	s.SetNice(uint32(os.Getpid()), 1)
	want(os.Getpid(), 20-own)
}
