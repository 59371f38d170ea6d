package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestProveAttacksTheEmbeddedDatabase runs prove on a new data folder, next to a running service, and on a database
// that does not exist.
func TestProveAttacksTheEmbeddedDatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	path, dir := binary(t), emptyDataDir(t)
	prove := func() {
		t.Helper()
		const want = "No attack succeeded, and the login can only read."
		if out, err := exec.Command(path, "prove", "--data-dir", dir).CombinedOutput(); err != nil ||
			!strings.Contains(string(out), want) {
			t.Errorf("got %v and %s, want %q", err, out, want)
		}
	}
	prove()
	cmd, _ := start(t, path, dir)
	prove()
	kill(cmd)
	out, err := exec.Command(path, "prove", "--dsn", "postgres:///nowhere?host="+dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "does not answer") {
		t.Errorf("without a database: got %v and %s, want an error that says so", err, out)
	}
}

func TestRoleSQLGrantsToTheNamedRole(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(binary(t), "role-sql", "agents", "shop").Output()
	if want := `GRANT CONNECT ON DATABASE "shop" TO "agents"`; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("got %v and %s, want it to contain %s", err, out, want)
	}
	if strings.Contains(string(out), "REVOKE EXECUTE") || strings.Contains(string(out), "log_min_messages") {
		t.Errorf("got %s, want nothing that takes functions from other logins or errors from the server's log", out)
	}
	out, err = exec.Command(binary(t), "role-sql", "--server-check", "agents", "shop").Output()
	if want := `ALTER ROLE "agents" SET log_min_messages = fatal`; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("got %v and %s, want it to contain %s", err, out, want)
	}
	out, err = exec.Command(binary(t), "role-sql", "--revoke-from-public", "agents", "shop").Output()
	if err != nil || !strings.Contains(string(out), "REVOKE EXECUTE") ||
		!strings.Contains(string(out), "--   take locks: ") {
		t.Errorf("got %v and %s, want the SQL that revokes functions, and what other logins lose", err, out)
	}
}
