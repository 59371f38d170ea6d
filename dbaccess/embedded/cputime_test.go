package embedded_test

import (
	"os"
	"testing"

	"glasshouse/dbaccess/embedded"
)

// CPUTime grows with what a process of the server computes, and knows no other process.
func TestCPUTimeIsOfTheServersProcesses(t *testing.T) {
	t.Parallel()
	s := startServer(t, newFolder(t))
	conn := connect(t, s.URL(embedded.RoleAdmin, "postgres"))
	pid := conn.PgConn().PID()
	before, isKnown := s.CPUTime(pid)
	if !isKnown || before <= 0 {
		t.Fatalf("got %s, %t; want a time", before, isKnown)
	}
	execute(t, conn, "SELECT count(*) FROM generate_series(1, 1000000)")
	after, _ := s.CPUTime(pid)
	if after <= before {
		t.Errorf("after a statement: got %s, want more than %s", after, before)
	}
	execute(t, conn, "SELECT pg_sleep(0.2)")
	if slept, _ := s.CPUTime(pid); slept-after > 100_000_000 {
		t.Errorf("after a sleep of 200 ms: got %s more, want less than 100 ms", slept-after)
	}
	if used, isKnown := s.CPUTime(uint32(os.Getpid())); isKnown {
		t.Errorf("another process: got %s, want that it is not known", used)
	}
}
