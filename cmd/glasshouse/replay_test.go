package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
	"glasshouse/sandbox/environment/environmenttest"
)

// clockCode is code whose rows differ each time that PostgreSQL is asked.
const clockCode = `import random, time
at = db_query("SELECT clock_timestamp()::text AS at")[0]["at"]
print(at, random.random(), time.time_ns())`

// quickRun runs code in a sandbox of its own and returns the execution's id.
func (c *client) quickRun(t *testing.T, code string) string {
	t.Helper()
	return fmt.Sprint(c.must(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code})["execution_id"])
}

// wantReplay requires that a replay is identical with its original.
func wantReplay(t *testing.T, c *client, id string) {
	t.Helper()
	e := c.must(t, "POST", "/executions/"+id+"/replay", map[string]any{})
	if replay, _ := e["replay"].(map[string]any); replay["grade"] != "identical" || replay["of"] != id {
		t.Errorf("got %v, want a replay of %s that is identical", e["replay"], id)
	}
}

// exitCode returns the exit code of a command that has ended.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return exitOK
	}
	ended, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	return ended.ExitCode()
}

// TestReplayCommand replays executions from the shell, whose scripts read the exit code.
func TestReplayCommand(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	_, c := start(t, path, dir)
	id := c.quickRun(t, clockCode)
	session := c.newSandbox(t, nil)
	c.must(t, "POST", "/sandbox/"+session+"/execute", map[string]any{"code": "n = 20"})
	later := fmt.Sprint(c.must(t, "POST", "/sandbox/"+session+"/execute",
		map[string]any{"code": "n + 1"})["execution_id"])
	diverging := c.quickRun(t, "import pathlib\nn = pathlib.Path('.').stat().st_uid\ndb_query(f'SELECT {n} AS n')")
	other := filepath.Join(t.TempDir(), "other.py")
	if err := os.WriteFile(other, []byte(clockCode+"\nprint('other')"), 0o644); err != nil {
		t.Fatal(err)
	}
	asking := filepath.Join(t.TempDir(), "asking.py")
	if err := os.WriteFile(asking, []byte(clockCode+"\ndb_query('SELECT 2 AS n')\nNone"), 0o644); err != nil {
		t.Fatal(err)
	}
	failing := c.quickRun(t, "1 + 'a'")
	environ := []string{"GLASSHOUSE_URL=" + c.address, "GLASSHOUSE_KEY=" + c.key}
	for _, test := range []struct {
		arguments []string
		code      int
		out, err  []string // in this order
	}{
		{[]string{id}, 0, []string{"identical: ", "The replay is execution "}, nil},
		{[]string{later}, 0, []string{"identical: ", "Before it ran 1 earlier execution of the session ("}, nil},
		{[]string{"--rows", "now", id}, exitDiffers, []string{"differs: ", "  stdout, line 1\n    original  20",
			"    replay    20", "  database    rows as they are"}, nil},
		{[]string{"--code", other, id}, exitDiffers, []string{"differs: ", "(with other code or rows)",
			"  stdout, line 2\n    original  (empty)\n    replay    other\n"}, nil},
		{[]string{"--code", asking, id}, exitDiffers, []string{"differs: ",
			"(with other code or rows, and some rows of now: statement 2)", "  database    rows as they are"}, nil},
		{[]string{failing}, 0, []string{"identical: ", "(both failed: TypeError: unsupported"}, nil},
		{[]string{diverging}, exitTrouble, []string{"diverged: ", "request 1 of the code\n    original  SELECT ",
			"\n    replay    SELECT ", "  unknown     something that"}, nil},
		{[]string{"0123456789abcdef"}, exitTrouble, nil, []string{"glasshouse: 404 "}},
		{[]string{"../keys"}, exitTrouble, nil, []string{"glasshouse: 404 "}},
		{[]string{"--rows", "then", id}, exitTrouble, nil, []string{"glasshouse: 422 "}},
		{[]string{"--code", other + ".missing", id}, exitTrouble, nil, []string{"the file cannot be read"}},
		{nil, exitTrouble, nil, []string{"wrong number of arguments (0)"}},
		{[]string{"--cod", other, id}, exitTrouble, nil, []string{"did you mean --code"}},
	} {
		stdout, stderr, err := runCommand(t, environ, "", append([]string{"replay"}, test.arguments...)...)
		if got := exitCode(t, err); got != test.code {
			t.Errorf("%q: got the exit code %d, want %d: %s%s", test.arguments, got, test.code, stdout, stderr)
		}
		if test.err == nil && stderr != "" {
			t.Errorf("%q: got stderr %q, want none", test.arguments, stderr)
		}
		for text, all := range map[string][]string{stdout: test.out, stderr: test.err} {
			rest, ok := text, true
			for _, want := range all {
				if _, rest, ok = strings.Cut(rest, want); !ok {
					t.Errorf("%q: got %q, want %q in this order", test.arguments, text, all)
					break
				}
			}
		}
	}
	_, stderr, err := runCommand(t, nil, "", "replay", "--data-dir", t.TempDir(), id)
	if exitCode(t, err) != exitTrouble {
		t.Errorf("without a service: got %v, %s; want exit code %d", err, stderr, exitTrouble)
	}
}

// TestReplayCommandPrintsJSON records a replay, and finds its steps by the id in the JSON.
func TestReplayCommandPrintsJSON(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	_, c := start(t, path, dir)
	id := c.quickRun(t, clockCode)
	stdout, stderr, err := runCommand(t, nil, "", "replay", "--data-dir", dir, "--record", "--json", id)
	var e sandbox.Execution
	if err != nil || json.Unmarshal([]byte(stdout), &e) != nil || e.Replay == nil {
		t.Fatalf("got %v, %s and %s, want an execution as JSON", err, stdout, stderr)
	}
	if e.Replay.Of != id || e.Replay.Grade != sandbox.ReplayIdentical {
		t.Errorf("got %+v, want a replay of %s that is identical", e.Replay, id)
	}
	if steps := c.must(t, "GET", "/executions/"+e.ID+"/steps", nil); steps["total_steps"] != 3.0 {
		t.Errorf("got %v, want the three steps of the code", steps)
	}
	stdout, _, err = runCommand(t, nil, "print('typed')", "replay", "--data-dir", dir, "--json", "--code", "-", id)
	if exitCode(t, err) != exitDiffers || json.Unmarshal([]byte(stdout), &e) != nil || e.Stdout != "typed\n" {
		t.Errorf("got %v and %s, want the output of the code on standard input", err, stdout)
	}
}

// varying are the parts of the output in docs/replay.md that differ from run to run.
var varying = regexp.MustCompile(`\b[0-9a-f]{32}\b|\bORIGINAL\b|\d{4}-\d\d-\d\d[T ][\d:.]+(\+00|Z)`)

// paste runs commands of a document with a service of their own, in a folder with bin/glasshouse.
func paste(t *testing.T, script string) (output string, err error) {
	t.Helper()
	path, dir, folder := binary(t), dataDir(t), t.TempDir()
	_, c := start(t, path, dir)
	if err := os.Symlink(filepath.Dir(path), filepath.Join(folder, "bin")); err != nil {
		t.Fatal(err)
	}
	const address = "http://127.0.0.1:8080"
	if !strings.Contains(script, address) {
		t.Fatalf("got the commands %q, want the address %s in them", script, address)
	}
	cmd := exec.Command("bash", "-c", strings.ReplaceAll(script, address, c.address))
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GLASSHOUSE_DATA_DIR="+dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestReplayDocument pastes the commands of docs/replay.md, and compares what they print.
func TestReplayDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "replay.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands, outputs := fencedBlocks(string(text), "sh"), fencedBlocks(string(text), "text")
	out, err := paste(t, strings.Join(commands, "\n"))
	got := varying.ReplaceAllString(out, "…")
	want := varying.ReplaceAllString(strings.Join(outputs, ""), "…")
	if err != nil || got != want {
		t.Errorf("got %v and\n%s\nwant\n%s", err, got, want)
	}
}

// replayable leaves an execution of its own and one of a session, which replays find identical. Their inputs are in the
// history database then.
func replayable(t *testing.T, c *client) (ids []string) {
	t.Helper()
	path := "/sandbox/" + c.newSandbox(t, nil) + "/execute"
	c.must(t, "POST", path, map[string]any{"code": clockCode})
	e := c.must(t, "POST", path, map[string]any{"code": "print(at)\n" + clockCode})
	ids = []string{c.quickRun(t, clockCode), fmt.Sprint(e["execution_id"])}
	for _, id := range ids {
		wantReplay(t, c, id)
	}
	return ids
}

// TestReplayAfterAnImport exports history, and replays executions of it in another data folder with the same signing
// key.
func TestReplayAfterAnImport(t *testing.T) {
	t.Parallel()
	from, to, file := dataDir(t), dataDir(t), filepath.Join(t.TempDir(), "all.jsonl.zst")
	cmd, c := start(t, binary(t), from)
	ids := replayable(t, c)
	stop(t, cmd)
	wantCommand(t, "exported 5 executions", from, "history", "export", file)
	key, err := os.ReadFile(filepath.Join(from, "signing.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "signing.key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	wantCommand(t, "imported 5 executions", to, "history", "import", file)
	wantCommand(t, "read 5 executions", to, "history", "verify")
	_, c = start(t, binary(t), to)
	for _, id := range ids {
		wantReplay(t, c, id)
	}
}

// TestReplayAfterARestore takes a backup of a running service, and replays executions where it is restored.
func TestReplayAfterARestore(t *testing.T) {
	t.Parallel()
	dir, target, restored := dataDir(t), filepath.Join(t.TempDir(), "backup"), filepath.Join(emptyDataDir(t), "data")
	cmd, c := start(t, binary(t), dir)
	ids := replayable(t, c)
	wantCommand(t, "backup complete", dir, "backup", target)
	kill(cmd)
	wantCommand(t, "restored the backup", restored, "restore", target)
	_, c = start(t, binary(t), restored)
	for _, id := range ids {
		wantReplay(t, c, id)
	}
}

// TestReplayWithOtherPackages replays executions in another environment, as before an update.
func TestReplayWithOtherPackages(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	wheels, offline := environmenttest.Environ(t)
	o := operator{binary(t), dataDir(t), offline}
	for name, version := range map[string]string{"now": "1.0", "next": "2.0"} {
		environmenttest.Wheel(t, wheels, "tinypack", version,
			map[string]string{"tinypack/__init__.py": "version = '" + version + "'\n"})
		o.env(t, "create", name)
		o.env(t, "add", "--env", name, "tinypack=="+version)
	}
	_, c := start(t, o.path, o.dir)
	c.executeIn(t, "", "print('the same')", "now")
	id := c.executeIn(t, "", versionOf, "now").ID
	for _, test := range []struct {
		arguments []string
		code      int
		want      string
	}{
		{[]string{id}, 0, "identical: "},
		{[]string{"--environment", "now", id}, 0, "and statements (in the environment now)\n"},
		{[]string{"--environment", "next", id}, exitDiffers, ` (in the environment next)
  result
    original  1.0
    replay    2.0
What may differ although the code is the same:
  environment other packages, or another Python
`},
		{[]string{"--environment", "nxt", id}, exitTrouble, ""},
		{[]string{"--last", "1000", "--environment", "next"}, exitDiffers, "default -> next: tinypack (none) -> 2.0\n" +
			"differs    " + id + "  result: 1.0 -> 2.0\n2 executions: identical 1, differs 1\n"},
		{[]string{"--last", "1", "--environment", "next"}, exitDiffers, "1 execution: differs 1\n"},
		{[]string{"--last", "1"}, 0, "1 execution: identical 1\n"},
	} {
		arguments := append([]string{"replay", "--data-dir", o.dir}, test.arguments...)
		stdout, stderr, err := runCommand(t, nil, "", arguments...)
		if exitCode(t, err) != test.code || !strings.Contains(stdout, test.want) {
			t.Errorf("%q: got %v, %s%s\nwant the exit code %d and %q", test.arguments, err, stdout, stderr, test.code,
				test.want)
		}
		if test.code == exitTrouble && !strings.Contains(stderr, "choose one of: default, ne") {
			t.Errorf("%q: got %q, want the names of the environments", test.arguments, stderr)
		}
	}
}

// TestReplayShowsRowsOfDatabasesOfToday takes keys from the owner of an execution. A replay shows its rows only as long
// as the key that asks, and one of the owner's, may use the database that answered.
func TestReplayShowsRowsOfDatabasesOfToday(t *testing.T) {
	t.Parallel()
	server := startCluster(t, emptyDataDir(t))
	_, admin := start(t, binary(t), dataDir(t),
		"--database=sales="+server.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
	newKey := func(database string) (*client, string) {
		key := admin.must(t, "POST", "/keys", map[string]any{
			"name": database, "user_id": "ana", "role": "agent", "databases": []string{database},
		})
		return &client{admin.address, fmt.Sprint(key["key"])}, fmt.Sprint(key["id"])
	}
	sales, salesID := newKey("sales")
	const code = "print(db_query('SELECT email FROM orders'))" // of the key's default database
	id := sales.quickRun(t, code)
	columns := sales.quickRun(t, "print([c['column_name'] for c in db_schema('orders')])")
	knowledge, knowledgeID := newKey("knowledge")
	wantReplays := func(what string, c *client, want string, isShown bool) {
		t.Helper()
		for id, shown := range map[string]string{id: "a@example.com", columns: "email"} {
			e := c.must(t, "POST", "/executions/"+id+"/replay", map[string]any{})
			text, _ := json.Marshal(e)
			if strings.Contains(fmt.Sprint(e["stdout"]), shown) != isShown || !strings.Contains(string(text), want) ||
				!isShown && !strings.Contains(string(text), `"sources":["rights"]`) {
				t.Errorf("%s: got %s, want %q, and %s in its output: %v", what, text, want, shown, isShown)
			}
		}
	}
	const identical = `"grade":"identical"`
	wantReplays("the key that ran it", sales, identical, true)
	wantReplays("an admin", admin, identical, true)
	wantReplays("a key for another database", knowledge, `there is no database \"sales\" that you may use`, false)
	admin.must(t, "DELETE", "/keys/"+salesID, nil)
	wantReplays("an admin, after the owner lost the database", admin, "no key of the user ana, whose", false)
	admin.must(t, "DELETE", "/keys/"+knowledgeID, nil)
	wantReplays("an admin, after the owner left", admin, identical, true)
}
