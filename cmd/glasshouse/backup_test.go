package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"glasshouse/dbaccess/embedded"
)

// command runs the binary on a data folder, and returns what it printed.
func command(t *testing.T, dir string, arguments ...string) (string, error) {
	t.Helper()
	out, err := exec.Command(binary(t), append(arguments, "--data-dir", dir)...).CombinedOutput()
	return string(out), err
}

// wantCommand requires that a command succeeds and prints a text.
func wantCommand(t *testing.T, want, dir string, arguments ...string) {
	t.Helper()
	if out, err := command(t, dir, arguments...); err != nil || !strings.Contains(out, want) {
		t.Fatalf("%s: got %s %v, want %q", arguments, out, err, want)
	}
}

// wantFailure requires that a command fails and prints a text.
func wantFailure(t *testing.T, want, dir string, arguments ...string) {
	t.Helper()
	var exit *exec.ExitError
	out, err := command(t, dir, arguments...)
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(out, want) {
		t.Fatalf("%s: got %s %v, want exit code %d and %q", arguments, out, err, exitFailed, want)
	}
}

// leaveFile runs code that leaves a file and is recorded, and returns the execution and the artifact.
func leaveFile(t *testing.T, c *client, content string) (execution, artifact string) {
	t.Helper()
	path := "/sandbox/" + c.newSandbox(t, nil) + "/execute"
	e := c.must(t, "POST", path, map[string]any{"record": true, "code": fmt.Sprintf(
		"total = 0\nfor n in range(3):\n    total += n\nrows = await db_query('SELECT 1 AS n')\n"+
			"open('/session/artifacts/kept.txt', 'w').write(%q)", content)})
	list, _ := e["artifacts"].([]any)
	if e["status"] != "completed" || len(list) != 1 {
		t.Fatalf("got execution %v, want it completed with one artifact", e)
	}
	return fmt.Sprint(e["execution_id"]), fmt.Sprint(list[0].(map[string]any)["artifact_id"])
}

// wantFile requires that an execution has its file, its statement and its recording.
func wantFile(t *testing.T, c *client, execution, artifact, content string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", c.address+"/artifacts/"+artifact, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err != nil || string(got) != content {
		t.Errorf("the artifact: got %.200s, %v; want %q", got, err, content)
	}
	steps, _ := c.must(t, "GET", "/executions/"+execution+"/steps", nil)["steps"].([]any)
	if len(steps) < 5 {
		t.Errorf("the recording: got %d steps, want those of the loop", len(steps))
	}
	statements, _ := c.must(t, "GET", "/statements?execution_id="+execution, nil)["statements"].([]any)
	if len(statements) != 1 {
		t.Errorf("statements of the execution: got %v, want 1", statements)
	}
}

// TestBackupUnderLoadIsComplete takes a backup while code runs, kills the service, and restores. Everything that was
// answered before the backup is there, and the old keys sign in.
func TestBackupUnderLoadIsComplete(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	dir, target, restored := dataDir(t), filepath.Join(t.TempDir(), "backup"), filepath.Join(emptyDataDir(t), "data")
	cmd, c := start(t, binary(t), dir)
	anna := c.newUser(t, "anna")
	execution, artifact := leaveFile(t, anna, "of anna")
	l := &load{statuses: map[string]string{}, errors: map[string]int{}}
	l.service.Store(c)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(l.run)
	}
	endLoad := sync.OnceFunc(func() { l.over.Store(true); workers.Wait() })
	defer endLoad()
	l.waitForAnswers(t)
	l.mu.Lock()
	answered := maps.Clone(l.statuses)
	l.mu.Unlock()
	wantCommand(t, "backup complete", dir, "backup", target)
	l.waitForAnswers(t) // the service goes on
	kill(cmd)
	endLoad()
	wantFailure(t, "is not empty", dir, "backup", target)

	wantCommand(t, "restored the backup", restored, "restore", target)
	wantFailure(t, "is not empty", restored, "restore", target)
	_, again := start(t, binary(t), restored)
	if again.key != c.key {
		t.Error("the admin key differs from that of the backup")
	}
	l.statuses = answered
	checkAnswers(t, again, l, nil)
	anna = &client{again.address, anna.key}
	anna.must(t, "GET", "/executions/"+execution, nil)
	wantFile(t, again, execution, artifact, "of anna")
	if _, err := os.Stat(filepath.Join(restored, "sessions")); err != nil {
		t.Error(err)
	}
	leaveFile(t, anna, "after the restore")
	wantCommand(t, "recordings and", restored, "history", "verify")
}

// TestBackupBesideAnOuterDatabase takes a backup of a running service whose history is in another PostgreSQL, and
// restores both with the commands that are printed. Everything is there on another server and in another data folder.
func TestBackupBesideAnOuterDatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	from, _ := startHistory(t)
	to, _ := startHistory(t)
	dir, target, restored := dataDir(t), filepath.Join(t.TempDir(), "backup"), filepath.Join(emptyDataDir(t), "data")
	bin, err := embedded.FindPrograms(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd, c := start(t, binary(t), dir, from)
	execution, artifact := leaveFile(t, c, "before the backup")
	// runPrinted runs the line of a command's output that begins with a program, as the shell does.
	runPrinted := func(flag, program string, out string, err error) {
		t.Helper()
		_, line, found := strings.Cut(out, "  "+program+" ")
		line, _, _ = strings.Cut(line, "\n")
		if err != nil || !found {
			t.Fatalf("got %s, %v; want a line with %s", out, err, program)
		}
		shell := exec.Command("sh", "-c", filepath.Join(bin, program)+" "+line)
		shell.Env = append(os.Environ(), "GLASSHOUSE_DATABASE_URL="+strings.TrimPrefix(flag, "--database-url="))
		if out, err := shell.CombinedOutput(); err != nil {
			t.Fatalf("%s: got %v, %s", line, err, out)
		}
	}
	out, err := command(t, dir, "backup", target, from)
	runPrinted(from, "pg_dump", out, err)
	late, _ := leaveFile(t, c, "after the backup")
	kill(cmd)

	out, err = command(t, restored, "restore", target, to)
	runPrinted(to, "pg_restore", out, err)
	_, again := start(t, binary(t), restored, to)
	if again.key != c.key {
		t.Error("the admin key differs from that of the backup")
	}
	wantFile(t, again, execution, artifact, "before the backup")
	if err := again.call(t.Context(), "GET", "/executions/"+late, nil, &map[string]any{}); err == nil {
		t.Error("got the execution from after the backup, want none")
	}
	if names, err := filepath.Glob(filepath.Join(restored, "sessions", "*", "artifacts", "kept.txt")); len(names) != 1 {
		t.Errorf("the file of the session: got %q, %v; want it in the folder of the sessions", names, err)
	}
	leaveFile(t, again, "after the restore")
	wantCommand(t, "and 2 artifacts", restored, "history", "verify", to)
}

// An incomplete or damaged backup is refused, and so is a data folder whose restore was interrupted.
func TestBadBackupsAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	dir, target, empty := dataDir(t), filepath.Join(t.TempDir(), "backup"), filepath.Join(emptyDataDir(t), "data")
	wantCommand(t, "backup complete", dir, "backup", target) // of a service that is stopped
	key := filepath.Join(target, "admin.key")
	if err := os.Symlink("/etc/passwd", key); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, "admin.key is neither a file nor a folder", empty, "restore", target)
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(target, manifestFile)
	good, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	// pg_restore takes such a name for the address of a server.
	const address = "host=127.0.0.1 port=1 dbname=x"
	bad := strings.ReplaceAll(string(good), `"`+embedded.DatabaseKnowledge+`"`, `"`+address+`"`)
	if err := errors.Join(os.WriteFile(manifest, []byte(bad), 0o600),
		os.Link(dumpPath(target, embedded.DatabaseKnowledge), dumpPath(target, address))); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, "which is not an embedded database", empty, "restore", target)
	if err := os.WriteFile(manifest, good, 0o600); err != nil {
		t.Fatal(err)
	}
	kept := dumpPath(target, embedded.DatabaseKnowledge)
	if err := os.Rename(kept, filepath.Join(dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dumpPath(target, address)); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, "the backup is not complete: it has", empty, "restore", target)
	if err := os.Rename(filepath.Join(dir, "elsewhere"), kept); err != nil {
		t.Fatal(err)
	}
	dump := dumpPath(target, embedded.DatabaseHistory)
	text, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2]++
	if err := os.WriteFile(dump, text, 0o600); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, "the backup is damaged", empty, "restore", target)
	if err := os.Remove(filepath.Join(target, manifestFile)); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, "the backup did not finish", empty, "restore", target)
	if _, err := os.Stat(empty); !os.IsNotExist(err) {
		t.Errorf("a data folder after refused restores: got %v, want none", err)
	}
	if err := os.WriteFile(filepath.Join(dir, restoreFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, "did not finish: remove the folder", dir, "serve", "--listen", "127.0.0.1:0")
}

// TestRestoreReadsRegularFilesOnly shows that a pipe, a device or a link in place of a file of a backup is an error. A
// pipe without a writer would let restore wait for ever, and /dev/zero would fill the memory.
func TestRestoreReadsRegularFilesOnly(t *testing.T) {
	t.Parallel()
	pipe := func(path string) error { return unix.Mkfifo(path, 0o600) }
	zero := func(path string) error { return os.Symlink("/dev/zero", path) }
	restored := filepath.Join(emptyDataDir(t), "data")
	for _, c := range []struct {
		file string
		put  func(path string) error
		want string
	}{
		{manifestFile, pipe, "is neither a file nor a folder"},
		{manifestFile, zero, "is neither a file nor a folder"},
		{manifestFile, func(path string) error { return os.Mkdir(path, 0o700) }, "is not a regular file"},
		{"history/1.wal", pipe, "is neither a file nor a folder"},
		{"artifacts/00/0011", zero, "is neither a file nor a folder"},
		{"knowledge.dump", pipe, "is neither a file nor a folder"},
		{"admin.key", pipe, "is neither a file nor a folder"},
	} {
		top := t.TempDir()
		folder, link := filepath.Join(top, "backup"), filepath.Join(top, "latest")
		file := filepath.Join(folder, c.file)
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.Symlink(folder, link), c.put(file))
		if c.file != manifestFile {
			err = errors.Join(err, os.WriteFile(filepath.Join(folder, manifestFile), []byte(`{"format": 1}`), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		wantFailure(t, filepath.Base(file)+" "+c.want, restored, "restore", folder)
		wantFailure(t, filepath.Base(file)+" "+c.want, restored, "restore", link)
		if _, err := os.Stat(restored); !os.IsNotExist(err) {
			t.Errorf("%s: got a data folder (%v), want none", c.file, err)
		}
	}
	export := filepath.Join(t.TempDir(), "all.jsonl.zst")
	if err := pipe(export); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, "is not a regular file", restored, "history", "import", export)
}

// TestHistoryMovesToAnotherService exports the history of a service that runs, and imports it on another data folder.
func TestHistoryMovesToAnotherService(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	from, to, file := dataDir(t), dataDir(t), filepath.Join(t.TempDir(), "all.jsonl.zst")
	_, c := start(t, binary(t), from)
	execution, artifact := leaveFile(t, c, "it moves")
	eventually(t, func() error { // an export has what is in PostgreSQL, which follows the answer within 50 ms
		_ = os.Remove(file)
		out, err := command(t, from, "history", "export", "--since", "1h", file)
		if err == nil && !strings.Contains(out, "exported 1 executions with 1 artifacts") {
			err = errors.New(out)
		}
		return err
	})
	wantFailure(t, "exists", from, "history", "export", file)
	wantFailure(t, "stop it first", from, "history", "import", file)
	wantCommand(t, "imported 1 executions with 1 artifacts; skipped 0", to, "history", "import", file)
	wantCommand(t, "imported 0 executions with 0 artifacts; skipped 1", to, "history", "import", file)
	wantCommand(t, "read 1 executions, 1 recordings and 1 artifacts", to, "history", "verify")
	cmd, c := start(t, binary(t), to)
	wantFile(t, c, execution, artifact, "it moves")
	list, _ := c.must(t, "GET", "/executions", nil)["executions"].([]any)
	statistics, _ := c.must(t, "GET", "/sandbox/statistics", nil)["statistics"].(map[string]any)
	if len(list) != 1 || statistics["total_executions"] != 1.0 {
		t.Errorf("got %d executions in the list and %v in the statistics, want 1", len(list),
			statistics["total_executions"])
	}
	stop(t, cmd)
	blobs, err := filepath.Glob(filepath.Join(to, "artifacts", "*", "*"))
	if err != nil || len(blobs) != 1 {
		t.Fatalf("got contents %q, %v; want one", blobs, err)
	}
	if err := os.Remove(blobs[0]); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, "artifact "+artifact, to, "history", "verify")
}

// TestOlderServiceRefusesANewerDatabase starts a service on a database that has a migration of a later version.
func TestOlderServiceRefusesANewerDatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	flag, _ := startHistory(t)
	dir := dataDir(t)
	cmd, _ := start(t, binary(t), dir, flag)
	stop(t, cmd)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, strings.TrimPrefix(flag, "--database-url="))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `INSERT INTO schema_versions (name) VALUES ('9999_later.sql')`); err != nil {
		t.Fatal(err)
	}
	const want = "the database has migration 9999_later.sql, which this glasshouse does not know: " +
		"use a newer glasshouse"
	wantFailure(t, want, dir, "serve", "--listen", "127.0.0.1:0", flag)
	wantFailure(t, want, dir, "history", "verify", flag)
}

// A chunk of a recording that unpacks to far more than the service writes is not imported. A service whose history has
// it already says what is wrong.
func TestForgedRecordingIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	const want = "this recording is damaged or forged: a chunk of 126 bytes unpacks to more than the"
	flag, _ := startHistory(t)
	from, to, file := dataDir(t), dataDir(t), filepath.Join(t.TempDir(), "all.jsonl.zst")
	_, c := start(t, binary(t), from, flag)
	execution, _ := leaveFile(t, c, "it is forged")
	conn, err := pgx.Connect(t.Context(), strings.TrimPrefix(flag, "--database-url="))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	// A frame of zstd with 30 blocks that repeat a byte 128 Ki times.
	bomb := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0x38}, bytes.Repeat([]byte{2, 0, 0x10, 0}, 30)...)
	bomb[len(bomb)-4] |= 1       // the last block
	eventually(t, func() error { // PostgreSQL follows the answer
		done, err := conn.Exec(t.Context(), `UPDATE recording_chunks SET data = $1 WHERE execution_id = $2
			AND EXISTS (SELECT FROM executions WHERE id = $2)`, bomb, execution)
		if err == nil && done.RowsAffected() != 1 {
			err = fmt.Errorf("got %d chunks, want 1", done.RowsAffected())
		}
		return err
	})
	err = c.call(t.Context(), "GET", "/executions/"+execution+"/steps", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(err.Error(), want) {
		t.Errorf("steps: got %v, want 404 and %q", err, want)
	}
	wantCommand(t, "exported 1 executions", from, "history", "export", "--since", "1h", file, flag)
	wantFailure(t, want, to, "history", "import", file)
}
