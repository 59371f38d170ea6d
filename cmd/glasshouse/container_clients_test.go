//go:build clients

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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// maxImageBytes is the largest size of the image. The packages that code imports take 530 MB of it.
const maxImageBytes = 860_000_000

// The programs of Debian's package docker.io. Another client in PATH may speak to newer engines only.
const (
	engineProgram = "/usr/sbin/dockerd"
	engineClient  = "/usr/bin/docker"
)

// TestContainer builds the image of deploy/Dockerfile from the packages of scripts/package, and runs it in an engine of
// its own. The containers have no network: requests are sent inside.
func TestContainer(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	e.build(t)
	size, err := strconv.Atoi(e.must(t, "image", "inspect", "--format", "{{.Size}}", "glasshouse"))
	if err != nil || size > maxImageBytes {
		t.Errorf("size of the image: got %d, %v, want at most %d", size, err, maxImageBytes)
	}
	t.Run("stop and start", e.testStopAndStart)
	t.Run("levels", e.testLevels)
	t.Run("any user", e.testAnyUser)
	t.Run("no programs outside the image", e.testReadOnly)
	t.Run("compose", e.testCompose)
}

// testStopAndStart runs the image as it is, with a volume, and expects a second start to have the history of the first.
func (e *engine) testStopAndStart(t *testing.T) {
	c := e.start(t, "--volume", "kept:/var/lib/glasshouse", "--health-interval", "1s")
	eventually(t, func() error {
		if got := e.must(t, "inspect", "-f", "{{.State.Health.Status}}", c.id); got != "healthy" {
			return fmt.Errorf("got the container %s, want healthy", got)
		}
		return nil
	})
	if got := c.must(t, "id", "-u"); got != "10001" {
		t.Errorf("got the uid %s, want 10001", got)
	}
	id := c.checkRun(t, "landlock")
	e.must(t, "stop", "--time", "60", c.id)
	if got := e.must(t, "inspect", "-f", "{{.State.ExitCode}}", c.id); got != "0" {
		t.Errorf("after docker stop: got the exit code %s, want 0\n%s", got, e.log(c.id))
	}
	c = e.start(t, "--volume", "kept:/var/lib/glasshouse")
	var kept struct{ Status string }
	c.request(t, "GET", "/executions/"+id, "", &kept)
	if kept.Status != "completed" {
		t.Errorf("after a second start: got an execution %q, want completed", kept.Status)
	}
}

// testLevels compares the levels with the table in docs/operate.md.
func (e *engine) testLevels(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(--security-opt [^`|]*)` \\| `([a-z-]+)`").FindSubmatch(page)
	if row == nil {
		t.Fatal("docs/operate.md has no row of settings with a level")
	}
	c := e.start(t, strings.Fields(string(row[1]))...)
	c.checkRun(t, string(row[2]))
}

// testAnyUser runs the image with a number that has no name in it, as OpenShift does.
func (e *engine) testAnyUser(t *testing.T) {
	c := e.start(t, "--user", "12345")
	if got := c.must(t, "id"); got != "uid=12345 gid=0(root) groups=0(root)" {
		t.Errorf("got the account %s, want 12345 of the group 0", got)
	}
	c.checkRun(t, "landlock")
}

// testReadOnly runs the image with a root that nobody can write to. The engine mounts the other folders noexec.
func (e *engine) testReadOnly(t *testing.T) {
	c := e.start(t, "--read-only", "--tmpfs", "/tmp", "--tmpfs", "/var/lib/glasshouse:mode=700,uid=10001")
	if got := c.must(t, "grep", " /var/lib/glasshouse ", "/proc/mounts"); !strings.Contains(got, "noexec") {
		t.Fatalf("got the mount %s, want noexec", got)
	}
	c.checkRun(t, "landlock")
	if log := e.log(c.id); strings.Contains(log, "preloaded") {
		t.Errorf("the loader cannot load an extension: %s", log)
	}
}

// testCompose runs deploy/compose.yaml with the image, without a network: the engine of the test has none for ports.
func (e *engine) testCompose(t *testing.T) {
	compose, err := exec.LookPath("docker-compose")
	if err != nil {
		t.Skip("there is no docker-compose in PATH; install Debian's package docker-compose")
	}
	override := filepath.Join(t.TempDir(), "override.yaml")
	// This machine may not give the engine the descriptors that the file asks for.
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("services: {glasshouse: {image: glasshouse, network_mode: none, ulimits: {nofile: %d}}}\n",
		min(files.Max, 65536))
	if err := os.WriteFile(override, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(arguments ...string) string {
		t.Helper()
		options := []string{"-p", "glasshouse", "-f", "../../deploy/compose.yaml", "-f", override}
		cmd := exec.Command(compose, append(options, arguments...)...)
		cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+e.socket)
		return output(t, cmd)
	}
	run("up", "--detach", "--no-build")
	c := &container{engine: e, id: run("ps", "-q", "glasshouse")}
	c.waitUntilReady(t)
	c.checkRun(t, "landlock")
	if got := run("exec", "-T", "glasshouse", "glasshouse", "login-link"); !strings.Contains(got, "/login?token=") {
		t.Errorf("login-link: got %q, want a link", got)
	}
	run("stop")
	if got := e.must(t, "inspect", "-f", "{{.State.ExitCode}}", c.id); got != "0" {
		t.Errorf("after docker-compose stop: got the exit code %s, want 0\n%s", got, e.log(c.id))
	}
	run("down", "--volumes")
}

// engine is an engine of containers that belongs to a test.
type engine struct{ socket string }

// startEngine starts Debian's engine with folders of its own, without a bridge and rules of a firewall, and stops it at
// the end of the test. The test is not run where there is no engine, or where it does not start.
func startEngine(t *testing.T) *engine {
	t.Helper()
	for _, program := range []string{engineProgram, engineClient} {
		if _, err := os.Stat(program); err != nil {
			t.Skipf("there is no %s; install Debian's package docker.io", program)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("an engine of containers needs root")
	}
	dir, err := os.MkdirTemp("", "gh") // short: the path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	e := &engine{filepath.Join(dir, "socket")}
	cmd := exec.Command(engineProgram, "--bridge=none", "--iptables=false", "--ip6tables=false",
		"--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"),
		"--pidfile", filepath.Join(dir, "pid"), "--host", "unix://"+e.socket)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		if all, err := e.command("ps", "-aq").Output(); err == nil && len(all) > 0 {
			_ = e.command(append([]string{"rm", "--force", "--volumes"}, strings.Fields(string(all))...)...).Run()
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	for e.command("version").Run() != nil {
		select {
		case <-ended:
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			t.Skipf("Debian's engine does not start: %s", lines[len(lines)-1])
		case <-time.After(50 * time.Millisecond):
		}
	}
	return e
}

// build builds the image "glasshouse". The base comes from scripts/container-base in place of a registry, and
// the packages from scripts/package in place of the first stage, which would fetch Go and all modules again.
func (e *engine) build(t *testing.T) {
	t.Helper()
	var reason bytes.Buffer
	cmd := exec.Command("../../scripts/container-base")
	cmd.Stderr = &reason
	base, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.ExitCode() == 3 {
		_, text, _ := strings.Cut(reason.String(), "not run: ")
		t.Skip(strings.TrimSpace(text))
	} else if err != nil {
		t.Fatalf("scripts/container-base: %v: %s", err, reason.String())
	}
	e.must(t, "import", strings.TrimSpace(string(base)), "debian:bookworm-slim")

	folder := t.TempDir()
	cmd = exec.Command("../../scripts/package", "--trial", folder)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GLASSHOUSE_PYTHON=") })
	output(t, cmd)
	dockerfile, err := os.ReadFile("../../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	first, last, found := strings.Cut(string(dockerfile), "\nFROM debian:bookworm-slim\n")
	if !found || !strings.Contains(first, "\nFROM debian:bookworm AS build\n") {
		t.Fatal("deploy/Dockerfile: want a stage build, and a last stage from debian:bookworm-slim")
	}
	file := "FROM scratch AS build\nCOPY *.deb /packages/\nFROM debian:bookworm-slim\n" + last
	if err := os.WriteFile(filepath.Join(folder, "Dockerfile"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd = e.command("build", "--network=host", "--tag", "glasshouse", folder)
	cmd.Env = append(os.Environ(), "DOCKER_BUILDKIT=1")
	output(t, cmd)
}

// command returns a command of the engine's client.
func (e *engine) command(arguments ...string) *exec.Cmd {
	return exec.Command(engineClient, append([]string{"--host", "unix://" + e.socket}, arguments...)...)
}

// must runs a command of the engine's client and returns its output.
func (e *engine) must(t *testing.T, arguments ...string) string {
	t.Helper()
	return output(t, e.command(arguments...))
}

// log returns what a container has printed.
func (e *engine) log(id string) string {
	text, _ := e.command("logs", id).CombinedOutput()
	return string(text)
}

// output runs a command, which must succeed, and returns what it prints.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		text := messages.String()
		t.Fatalf("%s: %v: %s", cmd, err, text[max(0, len(text)-4000):])
	}
	return strings.TrimSpace(string(out))
}

// container is a container of the image, which is ready.
type container struct {
	engine *engine
	id     string
}

// start starts a container with further settings and waits until it is ready. The end of the test removes it.
func (e *engine) start(t *testing.T, settings ...string) *container {
	t.Helper()
	arguments := append([]string{"run", "--detach", "--network", "none"}, settings...)
	c := &container{engine: e, id: e.must(t, append(arguments, "glasshouse")...)}
	t.Cleanup(func() { _ = e.command("rm", "--force", "--volumes", c.id).Run() })
	c.waitUntilReady(t)
	return c
}

// waitUntilReady waits for the line that names the address. The service prints it when it is ready.
func (c *container) waitUntilReady(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	logs := exec.CommandContext(ctx, engineClient, "--host", "unix://"+c.engine.socket, "logs", "--follow", c.id)
	out, err := logs.StdoutPipe()
	if err == nil {
		err = logs.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	text, buffer := "", make([]byte, 4096)
	for !strings.Contains(text, "Listening on ") {
		n, err := out.Read(buffer)
		text += string(buffer[:n])
		if err != nil {
			t.Fatalf("the container did not become ready: %s", c.engine.log(c.id))
		}
	}
	cancel()
	_ = logs.Wait()
}

// must runs a command in the container and returns its output.
func (c *container) must(t *testing.T, command ...string) string {
	t.Helper()
	return c.engine.must(t, append([]string{"exec", c.id}, command...)...)
}

// sendRequest is a program in Python that sends a request to the service in its container, as the administrator.
const sendRequest = `
import sys, urllib.request
address, key = (open("/var/lib/glasshouse/" + name).read().strip() for name in ("address", "admin.key"))
method, path, body = sys.argv[1:]
request = urllib.request.Request(address + path, body.encode() or None, method=method,
                                 headers={"Authorization": "Bearer " + key, "Content-Type": "application/json"})
print(urllib.request.urlopen(request, timeout=120).read().decode())
`

// request sends a request to the service and decodes its answer.
func (c *container) request(t *testing.T, method, path, body string, answer any) {
	t.Helper()
	text := c.must(t, "python3", "-c", sendRequest, method, path, body)
	if err := json.Unmarshal([]byte(text), answer); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// checkRun runs code with pandas, a figure and a statement, and expects its result and the level. It returns the id of
// the execution.
func (c *container) checkRun(t *testing.T, level string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"code": `
import matplotlib.pyplot as plt
import pandas as pd
plt.plot([1, 2])
rows = await db_query("SELECT n, n * n AS square FROM generate_series(1, 4) AS n")
int(pd.DataFrame(list(rows))["square"].sum())`})
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		ID        string `json:"execution_id"`
		Status    string
		Result    any
		Error     any
		Isolation string
	}
	c.request(t, "POST", "/sandbox/agent/quick-execute", string(body), &answer)
	if answer.Status != "completed" || answer.Result != 30.0 {
		t.Fatalf("got %+v, want completed with 30\n%s", answer, c.engine.log(c.id))
	}
	if answer.Isolation != level {
		t.Errorf("got the level %s, want %s", answer.Isolation, level)
	}
	return answer.ID
}
