package main

import (
	"os/exec"
	"strings"
	"testing"
)

func TestCheckSQL(t *testing.T) {
	path := binary(t)
	for sql, want := range map[string]string{
		"SELECT id, :x FROM users WHERE day = :day": "allowed\n",
		"SELECT 1,\n  pg_sleep(1)":                  "glasshouse: refused (function-not-allowed) at line 2, character 13: the function pg_sleep is not",
		"DELETE FROM users":                         "glasshouse: refused (read-only)",
		"SELECT FROM FROM":                          "glasshouse: refused (syntax-error)",
	} {
		cmd := exec.Command(path, "check", "sql", "-")
		cmd.Stdin = strings.NewReader(sql)
		out, err := cmd.CombinedOutput()
		if !strings.HasPrefix(string(out), want) || (err == nil) != (want == "allowed\n") {
			t.Errorf("%s: %s, %v", sql, out, err)
		}
	}
}

// The embedded database stands the attacks, with a service on it or without.
func TestProve(t *testing.T) {
	path, dir := binary(t), dataDir(t)
	prove := func() {
		t.Helper()
		out, err := exec.Command(path, "prove", "--data-dir", dir).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "No attack succeeded, and the login can only read.") {
			t.Errorf("%v: %s", err, out)
		}
	}
	prove()
	cmd, _ := start(t, path, dir)
	prove()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	out, err := exec.Command(path, "prove", "--dsn", "postgres:///nowhere?host="+dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "does not answer") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestRoleSQL(t *testing.T) {
	out, err := exec.Command(binary(t), "role-sql", "agents", "shop").Output()
	if err != nil || !strings.Contains(string(out), `GRANT CONNECT ON DATABASE "shop" TO "agents"`) {
		t.Errorf("%v: %s", err, out)
	}
}
