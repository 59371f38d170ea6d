package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckCodeListsProblems(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	file := filepath.Join(dir, "x.py")
	for code, want := range map[string]string{
		"print(await db_tables())":               "",
		"import os\neval('1')\nprint(1)\n":       file + ":1:1: policy: line 1: import of os is not allowed",
		"x = 1\nif x:\nprint(x)\n":               file + ":3:1: syntax: expected an indented block",
		"raise SystemExit('check must not run')": "",
	} {
		if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		cmd := exec.Command(path, "check", "code", "--data-dir", dir, file)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if (err != nil) != (want != "") || !strings.HasPrefix(string(out), want) || want == "" && len(out) > 0 {
			t.Errorf("%q: got %q, %v, %s, want %q", code, out, err, stderr.String(), want)
		}
	}
}

func TestCheckSQLSaysWhyAStatementIsRefused(t *testing.T) {
	t.Parallel()
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
			t.Errorf("%s: got %s, %v, want %s", sql, out, err, want)
		}
	}
}
