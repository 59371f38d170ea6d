package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/embedded"
)

// startHistory starts a PostgreSQL for several services. It returns the flag that names its history database, and a
// function that kills the server, which then restarts.
func startHistory(t *testing.T) (flag string, kill func()) {
	t.Helper()
	dir := dataDir(t)
	log := logrus.New()
	log.SetOutput(io.Discard)
	server, err := embedded.Start(context.Background(), embedded.Config{Dir: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return "--database-url=" + server.URL(embedded.RoleHistory, embedded.DatabaseHistory), func() {
		text, err := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil { // all connections end at once
			t.Fatal(err)
		}
		eventually(t, func() error {
			if syscall.Kill(pid, 0) == nil {
				return errors.New("PostgreSQL has not ended")
			}
			return nil
		})
	}
}

// wantRefused requires that a service does not start, and that its error has all these texts.
func wantRefused(t *testing.T, dir, flag string, texts ...string) {
	t.Helper()
	out, err := exec.Command(binary(t), "serve", "--listen", "127.0.0.1:0", "--data-dir", dir, flag).CombinedOutput()
	if err == nil {
		t.Fatalf("a second service on the folder %s ended without an error", dir)
	}
	for _, text := range texts {
		if !strings.Contains(string(out), text) {
			t.Errorf("the second service: got %s, want an error with %q", out, text)
		}
	}
}

// TestOneServiceOwnsAHistoryDatabase starts services with different data folders and with the same one on one database.
func TestOneServiceOwnsAHistoryDatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	flag, killPostgres := startHistory(t)
	path, firstDir, secondDir := binary(t), dataDir(t), dataDir(t)
	first, c := start(t, path, firstDir, flag)
	id := c.newSandbox(t, nil)
	execute := func(code string) error {
		return c.call(t.Context(), "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code}, &map[string]any{})
	}
	if err := execute("x = 41"); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, secondDir, flag, "another service uses this database", firstDir, "--database-url")
	wantRefused(t, firstDir, flag, "another glasshouse uses "+firstDir)

	killPostgres()
	history := func() (list []any, err error) {
		answer := map[string]any{}
		err = c.call(t.Context(), "GET", "/sandbox/"+id+"/history", nil, &answer)
		list, _ = answer["history"].([]any)
		return list, err
	}
	eventually(t, func() error { // the server restarts
		_, err := history()
		return errors.Join(err, c.call(t.Context(), "GET", "/readyz", nil, &map[string]any{}))
	})
	if err := execute("x += 1"); err != nil {
		t.Errorf("an execution after a restart of PostgreSQL: %v", err)
	}
	wantRefused(t, secondDir, flag, "another service uses this database", firstDir)

	started := make(chan error, 1)
	go func() {
		started <- execute("print('begun', flush=True)\nimport time\ntime.sleep(1000)")
	}()
	var running string
	eventually(t, func() error {
		list, err := history()
		for _, each := range list {
			if e := each.(map[string]any); e["status"] == "running" {
				running = fmt.Sprint(e["execution_id"])
				return nil
			}
		}
		return fmt.Errorf("no execution runs: %v, %v", list, err)
	})
	kill(first)
	if err := <-started; err == nil {
		t.Error("an execution of a killed service was answered")
	}
	_, c = start(t, path, secondDir, flag) // it waits until the lease of the first has ended
	e := c.must(t, "GET", "/executions/"+running, nil)
	if e["status"] != "cancelled" || !strings.Contains(fmt.Sprint(e["error"]), "the service that ran this, node ") {
		t.Errorf("execution of the killed service: got %v: %v, want cancelled, with its node", e["status"], e["error"])
	}
	if err := execute("x"); err != nil {
		t.Errorf("the sandbox of the killed service: got %v, want it restored", err)
	}
	if list, err := history(); len(list) != 4 {
		t.Errorf("got %d executions of the sandbox, %v; want 4", len(list), err)
	}
	wantRefused(t, firstDir, flag, "another service uses this database", secondDir)
}
