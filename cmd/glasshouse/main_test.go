package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"glasshouse/policy/polltest"
)

// shared has what the tests of this package make once: the binary, a data folder whose databases exist, which spares
// the other tests initdb and the demo data, and a Python without packages. A service that starts with it takes 0.4 s of
// CPU time. With the packages of requirements.txt it takes 3 s, because the zygotes import them.
var shared struct {
	dir      string
	binary   func() (string, error)
	template func() (string, error)
	python   func() (string, error)
}

// testCommit is the commit in the version of the binary that the tests run.
const testCommit = "0123456789ab"

// parallelTests is more than two CPUs suggest, because most tests also wait: for a service to start, or to end.
const parallelTests = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(parallelTests) // a valid number
	}
	for _, name := range []string{"GLASSHOUSE_URL", keyVariable} { // a developer's service is not part of a test
		_ = os.Unsetenv(name)
	}
	dir, err := os.MkdirTemp("", "gh-shared")
	if err == nil {
		err = os.Chmod(dir, 0o755) // the database's account must be able to enter
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared.dir = dir
	shared.binary = sync.OnceValues(func() (string, error) {
		path := filepath.Join(dir, "glasshouse")
		out, err := exec.Command("go", "build", "-trimpath",
			"-ldflags=-w -X main.commit="+testCommit+" -X main.queueTimeout=2m", "-o", path, ".").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("build: %w: %s", err, out)
		}
		return path, err
	})
	shared.template = sync.OnceValues(makeTemplate)
	shared.python = sync.OnceValues(makePython)
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// binary returns the path of the program, which the first test builds.
func binary(t *testing.T) string {
	t.Helper()
	path, err := shared.binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// makeTemplate returns a data folder in which `glasshouse prove` has created the databases.
func makeTemplate() (string, error) {
	path, err := shared.binary()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(shared.dir, "template")
	if out, err := exec.Command(path, "prove", "--data-dir", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("create the databases of the tests: %w: %s", err, out)
	}
	for _, name := range []string{"lock", "postgres.lock", "postgres.log"} {
		_ = os.Remove(filepath.Join(dir, name))
	}
	return dir, os.WriteFile(filepath.Join(dir, samplesMarker), nil, 0o600) // most tests need an empty history
}

// makePython returns the path of a Python with the C extensions of the guest and no other packages.
func makePython() (string, error) {
	full := os.Getenv("GLASSHOUSE_PYTHON")
	if full == "" {
		return "", errors.New("GLASSHOUSE_PYTHON must name the Python of the sandboxes; scripts/test sets it")
	}
	dir := filepath.Join(shared.dir, "python")
	if out, err := exec.Command(full, "-m", "venv", "--without-pip", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("make a Python without packages: %w: %s", err, out)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "lib/python3*/site-packages"))
	if err != nil || len(packages) != 1 {
		return "", fmt.Errorf("got the folders of packages %q in %s, want one: %w", packages, dir, err)
	}
	for _, name := range []string{"recorder_fast", "syscall_batch"} { // each is missing where no compiler was
		built, _ := filepath.Glob(filepath.Join(filepath.Dir(full), "../lib/python3*/site-packages", name+".*.so"))
		for _, path := range built {
			if err := os.Symlink(path, filepath.Join(packages[0], filepath.Base(path))); err != nil {
				return "", err
			}
		}
	}
	return filepath.Join(dir, "bin", "python"), nil
}

// withPackages is an argument of start: the Python of the sandboxes has the packages of requirements.txt.
func withPackages() string { return "GLASSHOUSE_PYTHON=" + os.Getenv("GLASSHOUSE_PYTHON") }

// dataDir returns a data folder whose databases exist.
func dataDir(t *testing.T) string {
	t.Helper()
	template, err := shared.template()
	if err != nil {
		t.Fatal(err)
	}
	dir := emptyDataDir(t)
	if out, err := exec.Command("cp", "-a", template+"/.", dir).CombinedOutput(); err != nil {
		t.Fatalf("copy the template: %v: %s", err, out)
	}
	return dir
}

// emptyDataDir returns a data folder for a first start.
func emptyDataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the database's account must be able to enter
		t.Fatal(err)
	}
	return dir
}

var variable = regexp.MustCompile(`^[A-Z_]+=`)

// start starts the service on a free port and returns when it listens. An argument NAME=value is a variable
// of the service's environment, any other is a flag. Requests wait for a sandbox as long as a busy machine needs. The
// Python of the sandboxes has no packages unless an argument is withPackages.
func start(t *testing.T, path, dir string, arguments ...string) (*exec.Cmd, *client) {
	t.Helper()
	flags := []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--drain", "1s"}
	python, err := shared.python()
	if err != nil {
		t.Fatal(err)
	}
	environ := append(os.Environ(), "GLASSHOUSE_PYTHON="+python)
	for _, argument := range arguments {
		if variable.MatchString(argument) {
			environ = append(environ, argument)
		} else {
			flags = append(flags, argument)
		}
	}
	cmd := exec.Command(path, flags...)
	cmd.Env = environ
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = cmd.Process.Kill()
			return
		}
		_ = cmd.Process.Signal(syscall.SIGQUIT) // Go prints the stacks of all goroutines
		defer time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() }).Stop()
		_ = cmd.Wait()
		text, stacks, _ := strings.Cut(log.String(), "SIGQUIT: quit")
		t.Logf("the end of the service's log:\n%s\nits goroutines:\n%s",
			text[max(0, len(text)-15_000):], stacks[max(0, len(stacks)-15_000):])
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "Listening on ")
		if !ok {
			continue
		}
		address, _, _ := strings.Cut(rest, " ")
		key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for lines.Scan() { // the service must not block on a full pipe
			}
		}()
		return cmd, &client{address, strings.TrimSpace(string(key))}
	}
	_ = cmd.Wait()
	t.Fatalf("the service did not start: %s", log.String())
	return nil, nil
}

// limited returns a program that runs the service after the commands of a shell script, which limit it.
func limited(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limited")
	text := fmt.Sprintf("#!/bin/sh\nset -e\n%s\nexec %s \"$@\"\n", script, binary(t))
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// must sends a request and returns the answer.
func (c *client) must(t *testing.T, method, path string, in any) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := c.call(context.Background(), method, path, in, &out); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return out
}

// newSandbox creates a sandbox and returns its id.
func (c *client) newSandbox(t *testing.T, config map[string]any) string {
	t.Helper()
	if config == nil {
		config = map[string]any{}
	}
	return fmt.Sprint(c.must(t, "POST", "/sandbox/create", config)["sandbox_id"])
}

// begin begins a run in a sandbox and returns the execution's id.
func (c *client) begin(t *testing.T, sandbox, code string) string {
	t.Helper()
	text, _ := json.Marshal(map[string]any{"code": code})
	req, err := http.NewRequest("POST", c.address+"/sandbox/"+sandbox+"/execute", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Prefer", "respond-async")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		t.Fatalf("got HTTP %d %s for a run, want 202", res.StatusCode, problemDetail(res.Body))
	}
	var answer struct {
		ID string `json:"execution_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.ID
}

// newUser creates a key for a user of that name and returns the user's client.
func (c *client) newUser(t *testing.T, name string) *client {
	t.Helper()
	body := map[string]any{"name": name, "user_id": name, "role": "agent"}
	return &client{c.address, fmt.Sprint(c.must(t, "POST", "/keys", body)["key"])}
}

// kill kills the service and waits for its end.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// stop asks the service to end and requires that it ends without an error.
func stop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
		t.Errorf("after SIGTERM: got %v, want exit code 0", err)
	}
}

// eventually calls a check until it returns nil.
var eventually = polltest.Succeeds
