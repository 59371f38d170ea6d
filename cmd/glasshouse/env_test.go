package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"glasshouse/policy/polltest"
	"glasshouse/sandbox"
	"glasshouse/sandbox/environment/environmenttest"
	"glasshouse/sandbox/isolate"
)

// operator runs `glasshouse env` on a data folder.
type operator struct {
	path, dir string
	environ   []string // of the commands; nil: the test's own
}

// try runs a command and returns its output.
func (o operator) try(args ...string) (out string, err error) {
	cmd := exec.Command(o.path, append([]string{"env", args[0], "--data-dir", o.dir}, args[1:]...)...)
	cmd.Env = o.environ
	printed, err := cmd.CombinedOutput()
	return string(printed), err
}

func (o operator) env(t *testing.T, args ...string) string {
	t.Helper()
	out, err := o.try(args...)
	if err != nil {
		t.Fatalf("env %q: %v: %s", args, err, out)
	}
	return out
}

// environmentRun has the fields of an execution that the tests of environments compare.
type environmentRun struct {
	Status, ID  string
	Result      any
	Environment sandbox.EnvironmentVersion
	Exception   *sandbox.Exception
}

// executeIn runs code in a sandbox, or with id "" in a fresh one of an environment.
func (c *client) executeIn(t *testing.T, id, code, environment string) (e environmentRun) {
	t.Helper()
	path, body := "/sandbox/"+id+"/execute?include=environment", map[string]any{"code": code}
	if id == "" {
		path = "/sandbox/agent/quick-execute?include=environment"
		body["config"] = map[string]any{"environment": environment}
	}
	raw := c.must(t, "POST", path, body)
	text, _ := json.Marshal(raw)
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	e.ID = fmt.Sprint(raw["execution_id"])
	return e
}

// newSandboxIn creates a sandbox with an environment and returns its id.
func (c *client) newSandboxIn(t *testing.T, environment string) string {
	t.Helper()
	return c.newSandbox(t, map[string]any{"environment": environment})
}

// zygoteCount returns how many zygotes a service has.
func zygoteCount(pid int) int { return len(zygotesOf(pid, "/glasshouse/zygote.py")) }

// waitUntil polls for a state that has no event.
var waitUntil = polltest.Eventually

const versionOf = "import tinypack\ntinypack.version"

// TestPackagesChangeWhileTheServiceRuns adds a new version of a package under load. Running code continues, a
// session keeps its version even if its process is killed, and new sessions have the new version.
func TestPackagesChangeWhileTheServiceRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	wheels, offline := environmenttest.Environ(t)
	for _, v := range []string{"1.0", "2.0"} {
		environmenttest.Wheel(
			t,
			wheels,
			"tinypack",
			v,
			map[string]string{"tinypack/__init__.py": "version = '" + v + "'\n"},
			"tinypack-core",
		)
	}
	environmenttest.Wheel(t, wheels, "tinypack-core", "1.5", map[string]string{"tinypack_core.py": ""})
	o := operator{binary(t), dataDir(t), offline}
	clients, setting := reserveCompat(t)
	cmd, c := start(t, o.path, o.dir, setting)
	if e := c.executeIn(t, "", versionOf, "default"); e.Status != "failed" ||
		e.Exception.Type != "ModuleNotFoundError" ||
		!strings.Contains(e.Exception.Hint, "`glasshouse env add tinypack`") {
		t.Fatalf("before the package is installed: got %+v, want a hint how to add it", e)
	}
	before := c.executeIn(t, "", "1", "default").Environment
	o.env(t, "add", "tinypack==1.0")
	old := c.newSandboxIn(t, "default")
	first := c.executeIn(t, old, "kept = 41\n"+versionOf, "")
	if first.Result != "1.0" || first.Environment.Name != "default" || first.Environment.Digest == before.Digest {
		t.Fatalf("after the package is installed: got %+v, want version 1.0 in a new environment version", first)
	}
	zygotes := zygoteCount(cmd.Process.Pid)
	if a := postCompat(t, clients, compatRequest("import tinypack\nopen('kept', 'w').write('k')\nprint(tinypack.version)", 20)); a.Stdout != "1.0\n" {
		t.Errorf("the compatibility API: got %+v, want version 1.0", a)
	}

	// Fresh sandboxes run while the packages change.
	var failure atomic.Value
	var runs, newVersions atomic.Int64
	stop, workers := make(chan struct{}), sync.WaitGroup{}
	for range 3 {
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var e struct {
					Status string
					Result any
				}
				if err := c.call(t.Context(), "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "import time\ntime.sleep(0.05)\n" + versionOf}, &e); err != nil ||
					e.Status != "completed" {
					failure.Store(fmt.Sprintf("%+v, %v", e, err))
				}
				runs.Add(1)
				if e.Result == "2.0" {
					newVersions.Add(1)
				}
			}
		})
	}
	slow := make(chan environmentRun, 1)
	busy := fmt.Sprint(c.must(t, "POST", "/sandbox/create", map[string]any{"max_execution_time": 200})["sandbox_id"])
	go func() {
		slow <- c.executeIn(t, busy, "import pathlib, time\nwhile not pathlib.Path('/data/go').exists():\n    time.sleep(0.05)\n"+versionOf, "")
	}()
	o.env(t, "add", "tinypack==2.0")
	waitUntil(t, "runs have the new package", func() bool { return newVersions.Load() > 3 })
	close(stop)
	workers.Wait()
	if f := failure.Load(); f != nil {
		t.Errorf("a run while the packages changed: got %v, want it completed", f)
	}
	c.must(t, "PUT", "/sandbox/"+busy+"/files/go", "on")
	if e := <-slow; e.Status != "completed" || e.Result != "1.0" || e.Environment != first.Environment {
		t.Errorf("a run during the change: got %+v, want version 1.0", e)
	}
	t.Logf("%d runs, %d of them with the new package", runs.Load(), newVersions.Load())

	if a := postCompat(t, clients, compatRequest("import tinypack\nprint(open('kept').read(), tinypack.version)", 20)); a.Stdout != "k 2.0\n" {
		t.Errorf("the compatibility API: got %+v, want the kept file and version 2.0", a)
	}
	fresh := c.newSandboxIn(t, "default")
	if e := c.executeIn(t, fresh, versionOf, ""); e.Result != "2.0" || e.Environment == first.Environment {
		t.Errorf("a new session: got %+v, want version 2.0", e)
	}
	if e := c.executeIn(t, old, "import tinypack\nkept, tinypack.version", ""); fmt.Sprint(e.Result) != "[41 1.0]" ||
		e.Environment != first.Environment {
		t.Errorf("the old session: got %+v, want its variable and version 1.0", e)
	}
	if e := c.executeIn(t, old, "x = []\nwhile True: x.append(' ' * 10_000_000)", ""); e.Status != "killed" {
		t.Fatalf("a run that exceeds its memory: got %+v, want killed", e)
	}
	if e := c.executeIn(t, old, versionOf, ""); e.Result != "1.0" || e.Environment != first.Environment {
		t.Errorf("the old session after a kill: got %+v, want version 1.0", e)
	}
	var status struct {
		Data struct {
			Metadata struct{ Environment sandbox.EnvironmentVersion } `json:"sandbox_metadata"`
		}
	}
	text, _ := json.Marshal(c.must(t, "GET", "/sandbox/"+old+"/status", nil))
	if err := json.Unmarshal(text, &status); err != nil || status.Data.Metadata.Environment != first.Environment {
		t.Errorf("the status of the old session: got %s, want the environment %+v", text, first.Environment)
	}
	record := c.must(t, "GET", "/executions/"+first.ID, nil)
	if got, _ := json.Marshal(record["environment"]); string(
		got,
	) != fmt.Sprintf(
		`{"digest":%q,"name":"default"}`,
		first.Environment.Digest,
	) {
		t.Errorf("in history: got %s, want the digest %s", got, first.Environment.Digest)
	}

	// Deleting the last sandbox with an environment version deletes its processes and its folder.
	folder := filepath.Join(o.dir, "environments", "default", first.Environment.Digest)
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("the folder of a version in use: got %v, want it there", err)
	}
	for _, id := range []string{old, busy} {
		c.must(t, "DELETE", "/sandbox/"+id, nil)
	}
	waitUntil(t, "the old folder is deleted", func() bool { _, err := os.Stat(folder); return os.IsNotExist(err) })
	waitUntil(t, "the old zygotes have ended", func() bool { return zygoteCount(cmd.Process.Pid) == zygotes })
}

// TestNamedEnvironments covers that environments are independent, and have zygotes only if they are used.
func TestNamedEnvironments(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	wheels, offline := environmenttest.Environ(t)
	environmenttest.Wheel(t, wheels, "tinypack", "1.0", map[string]string{"tinypack/__init__.py": "version = '1.0'\n"})
	o := operator{binary(t), dataDir(t), offline}
	o.env(t, "create", "tiny")
	o.env(t, "add", "--env", "tiny", "tinypack")
	cmd, c := start(t, o.path, o.dir, withPackages())
	zygotes := len(isolate.WarmSets(1))
	waitUntil(
		t,
		"the default environment has its zygotes",
		func() bool { return zygoteCount(cmd.Process.Pid) == zygotes },
	)
	for n := range 9 {
		o.env(t, "create", "--from", "tiny", fmt.Sprintf("more-%d", n))
	}
	var list struct{ Environments []sandbox.Environment }
	text, _ := json.Marshal(c.must(t, "GET", "/environments", nil))
	if err := json.Unmarshal(text, &list); err != nil || len(list.Environments) != 11 ||
		list.Environments[0].Name != "default" ||
		!slices.Equal(list.Environments[10].Modules, []string{"tinypack"}) {
		t.Errorf("GET /environments: got %s, %v, want default first and ten more", text, err)
	}
	if now := zygoteCount(cmd.Process.Pid); now != zygotes {
		t.Errorf("ten unused environments: got %d zygotes, want none", now-zygotes)
	}
	if e := c.executeIn(t, "", versionOf, "tiny"); e.Result != "1.0" || e.Environment.Name != "tiny" {
		t.Errorf("got %+v, want version 1.0 in tiny", e)
	}
	id := c.newSandboxIn(t, "tiny")
	if e := c.executeIn(t, id, "try:\n    import pandas\nexcept ImportError as error:\n    found = error.name\nfound", ""); e.Result != "pandas" {
		t.Errorf("got %+v, want no pandas in tiny", e)
	}
	if now := zygoteCount(cmd.Process.Pid); now != zygotes+1 {
		t.Errorf("one environment in use: got %d zygotes, want 1", now-zygotes)
	}
	var packages struct{ Packages []sandbox.Package }
	text, _ = json.Marshal(c.must(t, "GET", "/environments/tiny/packages", nil))
	want := sandbox.Package{
		Name:    "tinypack",
		Version: "1.0",
		Summary: "tinypack, for a test",
		Modules: []string{"tinypack"},
	}
	if err := json.Unmarshal(text, &packages); err != nil || len(packages.Packages) != 1 ||
		fmt.Sprint(packages.Packages[0]) != fmt.Sprint(want) {
		t.Errorf("GET /environments/tiny/packages: got %s, %v, want %+v", text, err, want)
	}
	if err := c.call(t.Context(), "POST", "/sandbox/create", map[string]any{"environment": "tinny"}, &struct{}{}); err == nil ||
		!strings.Contains(err.Error(), "422") ||
		!strings.Contains(err.Error(), "default, more-0") {
		t.Errorf("an unknown environment: got %v, want 422 and the known ones", err)
	}
	// allowed_modules accepts modules of the environment only.
	for module, status := range map[string]string{"tinypack": "completed", "psycopg2": "403"} {
		var e struct{ Status string }
		err := c.call(
			t.Context(),
			"POST",
			"/sandbox/agent/quick-execute",
			map[string]any{
				"code":   versionOf,
				"config": map[string]any{"environment": "tiny", "allowed_modules": []string{module}},
			},
			&e,
		)
		if got := fmt.Sprint(e.Status, err); !strings.Contains(got, status) {
			t.Errorf("allowed_modules %s: got %s, want %s", module, got, status)
		}
	}
	agent := c.newUser(t, "agent")
	agent.must(t, "GET", "/environments", nil)
	if err := agent.call(t.Context(), "POST", "/environments/refresh", nil, &struct{}{}); err == nil ||
		!strings.Contains(err.Error(), "403") {
		t.Errorf("an agent refreshes environments: got %v, want 403", err)
	}
	// A deleted environment stays for its sandboxes, and has no new ones.
	o.env(t, "delete", "tiny")
	if e := c.executeIn(t, id, versionOf, ""); e.Result != "1.0" {
		t.Errorf("a session of a deleted environment: got %+v, want version 1.0", e)
	}
	if err := c.call(context.Background(), "POST", "/sandbox/create", map[string]any{"environment": "tiny"}, &struct{}{}); err == nil ||
		!strings.Contains(err.Error(), "422") {
		t.Errorf("a new sandbox of a deleted environment: got %v, want 422", err)
	}
	c.must(t, "DELETE", "/sandbox/"+id, nil)
	waitUntil(t, "the folder is deleted", func() bool {
		_, err := os.Stat(filepath.Join(o.dir, "environments", "tiny"))
		return os.IsNotExist(err)
	})
}

// TestWarmPackagesAreShown adds bottleneck, which pandas imports if it is there.
func TestWarmPackagesAreShown(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	wheels, offline := environmenttest.Environ(t)
	environmenttest.Wheel(t, wheels, "bottleneck", "9.0",
		map[string]string{"bottleneck/__init__.py": "__version__ = '9.0'\n", "unused.py": ""})
	environmenttest.Wheel(t, wheels, "unwanted", "1.0", map[string]string{"unwanted.py": ""})
	o := operator{binary(t), dataDir(t), offline}
	o.env(t, "add", "bottleneck", "unwanted")
	o.env(t, "create", "empty")
	shown := func(environment, line string) string {
		_, rest, _ := strings.Cut(o.env(t, "show", environment), line+": ")
		packages, _, _ := strings.Cut(rest, "\n")
		return " " + packages + " "
	}
	const imported, besides = "imported by warm interpreters", "imported besides, because it is there"
	if got := shown("default", besides); !strings.Contains(got, "start the service") {
		t.Errorf("without a service: got %q, want that it is unknown", got)
	}
	start(t, o.path, o.dir, withPackages())
	if got := shown("default", imported); !strings.Contains(got, " matplotlib ") ||
		!strings.Contains(got, " pandas ") || !strings.Contains(got, " python-dateutil ") ||
		strings.Contains(got, " bottleneck ") {
		t.Errorf("needed packages: got %q, want those of pandas and matplotlib", got)
	}
	if got := shown("default", besides); !strings.Contains(got, " bottleneck ") ||
		strings.Contains(got, " unwanted ") || strings.Contains(got, " pandas ") {
		t.Errorf("other packages: got %q, want bottleneck among them", got)
	}
	if got := shown("empty", imported); strings.TrimSpace(got) != "" {
		t.Errorf("an empty environment: got %q, want no line", got)
	}
}

// stoppingUV returns a variable PATH with a uv that stops after it has installed packages into a new environment
// version, and a function that reports whether it has stopped.
func stoppingUV(t *testing.T) (variable string, isStopped func() bool) {
	t.Helper()
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe")
	script := `#!/bin/sh
PATH=${PATH#*:}
uv "$@" || exit
case "$*" in
  *--dry-run*) ;;
  */.new-*) read -r _ <` + pipe + ` ;;
esac
`
	err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(filepath.Join(folder, "uv"), []byte(script), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	return "PATH=" + folder + ":" + environmenttest.Path(t), func() bool {
		// A writer can open the pipe when the script has begun to open it. The script then waits for a line.
		file, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			t.Cleanup(func() { _ = file.Close() })
		}
		return err == nil
	}
}

// TestInterruptedChangeLeavesTheOldEnvironment kills a change, and lets another run out of file size. The old
// version stays, and no temporary file does.
func TestInterruptedChangeLeavesTheOldEnvironment(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	wheels, offline := environmenttest.Environ(t)
	environmenttest.Wheel(t, wheels, "tinypack", "1.0", map[string]string{"tinypack.py": ""})
	environmenttest.Wheel(t, wheels, "large", "1.0", map[string]string{"large.py": strings.Repeat("#", 8<<20)})
	o := operator{binary(t), dataDir(t), offline}
	o.env(t, "create", "lab")
	o.env(t, "add", "--env", "lab", "tinypack")
	top := filepath.Join(o.dir, "environments", "lab")
	lock, err := os.ReadFile(filepath.Join(top, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	requireSameLock := func() {
		t.Helper()
		if now, err := os.ReadFile(filepath.Join(top, "lock")); err != nil || !bytes.Equal(now, lock) {
			t.Errorf("got lock %s, %v, want %s", now, err, lock)
		}
	}
	cmd := exec.Command(o.path, "env", "add", "--data-dir", o.dir, "--env", "lab", "large")
	stopped, isStopped := stoppingUV(t)
	cmd.Env = append(slices.Clone(offline), stopped)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "uv has installed the package", isStopped)
	if n := countFiles(filepath.Join(top, ".new-*")); n != 1 {
		t.Errorf("got %d environments that are being built, want 1", n)
	}
	uv := childrenOf(cmd.Process.Pid, "")
	kill(cmd)
	requireSameLock()
	waitUntil(t, "uv has ended with its parent", func() bool {
		return !slices.ContainsFunc(uv, func(pid int) bool {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			return len(line) > 0
		})
	})
	limited := exec.Command(
		"sh",
		"-c",
		`ulimit -f 2000; exec "$0" env add --data-dir "$1" --env lab large`,
		o.path,
		o.dir,
	)
	limited.Env = append(slices.Clone(offline), "UV_CACHE_DIR="+t.TempDir()) // the killed uv has filled its own
	if out, err := limited.CombinedOutput(); err == nil || !strings.Contains(string(out), "file size limit exceeded") ||
		bytes.Count(out, []byte("\n")) > 10 {
		t.Errorf("with a limit of file size: got %v and %s, want a short error", err, out)
	}
	requireSameLock()
	if left := countFiles(filepath.Join(top, ".*")); left > 0 {
		t.Errorf("got %d temporary files, want none", left)
	}
	o.env(t, "add", "--env", "lab", "large")
}

// TestInvalidEnvironmentNamesAreRefused covers the command line and the API.
func TestInvalidEnvironmentNamesAreRefused(t *testing.T) {
	t.Parallel()
	o := operator{binary(t), dataDir(t), nil}
	_, c := start(t, o.path, o.dir)
	for _, name := range []string{"", "..", "../x", "/etc", ".pip", "Ä", "a b", strings.Repeat("a", 5000), "default\n"} {
		for _, args := range [][]string{{"create", "--", name}, {"delete", "--", name}, {"show", "--", name}, {"add", "--env", name, "x"}, {"create", "--from", name + "x", "lab"}} {
			if out, err := o.try(args...); err == nil || len(out) > 500 || !strings.Contains(out, "environment") {
				t.Errorf("env %.80q: got %v and %s, want a short error about the environment", args, err, out)
			}
		}
		err := c.call(t.Context(), "POST", "/sandbox/create", map[string]any{"environment": name}, &struct{}{})
		if err == nil || !strings.Contains(err.Error(), "422") {
			t.Errorf("a sandbox of the environment %.80q: got %v, want 422", name, err)
		}
	}
	for _, no := range []string{"../default", "%2e%2e", "nowhere"} {
		if err := c.call(t.Context(), "GET", "/environments/"+no+"/packages", nil, &struct{}{}); err == nil ||
			!strings.Contains(err.Error(), "404") {
			t.Errorf("packages of %s: got %v, want 404", no, err)
		}
	}
	if err := c.call(t.Context(), "POST", "/sandbox/create", map[string]any{"environment": 3}, &struct{}{}); err == nil ||
		!strings.Contains(err.Error(), "422") {
		t.Errorf("an environment that is a number: got %v, want 422", err)
	}
}
