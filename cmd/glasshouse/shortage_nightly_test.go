//go:build nightly

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// shortageTest is a service that lacks something.
type shortageTest struct {
	script string        // limits the service
	reason string        // in the answer to a request for a sandbox too many
	code   string        // of the runs in live sandboxes
	dir    string        // data folder
	least  time.Duration // of the load; it also lasts until some requests are answered
}

// stands requires that a service that lacks something refuses further sandboxes with the reason, answers /healthz and
// runs in live sandboxes under load, loses no answered execution, and is as before when the load has ended.
func (s shortageTest) stands(t *testing.T) {
	t.Helper()
	cmd, c := start(t, limited(t, s.script), s.dir, withPackages(),
		"--max-sandboxes", "400", "--max-sandboxes-per-user", "1000")
	ids := fillWithSandboxes(t, c, s.reason)
	l := &load{statuses: map[string]string{}, errors: map[string]int{}}
	l.service.Store(c)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(l.run)
	}
	workers.Go(func() { s.runInLiveSandboxes(t, c, ids, l) })
	healthy := 0
	workers.Go(func() {
		for ; !l.over.Load(); healthy++ {
			if err := c.call(context.Background(), "GET", "/healthz", nil, &map[string]any{}); err != nil {
				t.Errorf("/healthz: %v", err)
				return
			}
		}
	})
	endLoad := sync.OnceFunc(func() { l.over.Store(true); workers.Wait() })
	defer endLoad()
	time.Sleep(s.least) // the load goes on
	eventually(t, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if answered := len(l.statuses); answered < 20 {
			return fmt.Errorf("%d runs are answered under load, want 20; the errors are %v", answered, l.errors)
		}
		return nil
	})
	endLoad()
	c.must(t, "POST", "/sandbox/cleanup-all", nil)
	eventually(t, func() error {
		var answer map[string]any
		return errors.Join(c.call(context.Background(), "POST", "/sandbox/create", map[string]any{}, &answer),
			c.call(context.Background(), "GET", "/readyz", nil, &answer))
	})
	checkAnswers(t, c, l, nil)
	if healthy == 0 {
		t.Error("/healthz was never answered under load")
	}
	if l.errors["no answer"] > 0 {
		t.Errorf("%d requests got no answer", l.errors["no answer"])
	}
	stop(t, cmd)
}

// fillWithSandboxes creates sandboxes until the service refuses one, and returns their ids.
func fillWithSandboxes(t *testing.T, c *client, reason string) (ids []string) {
	t.Helper()
	for {
		req, err := http.NewRequest("POST", c.address+"/sandbox/create", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.key)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			ID     string `json:"sandbox_id"`
			Detail string
		}
		err = json.NewDecoder(res.Body).Decode(&answer)
		_ = res.Body.Close()
		switch {
		case err != nil:
			t.Fatal(err)
		case res.StatusCode < 300:
			ids = append(ids, answer.ID)
			continue
		case strings.Contains(answer.Detail, "no sandbox became free"): // the machine is busy
			continue
		case res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" ||
			!strings.Contains(answer.Detail, reason):
			t.Errorf("sandbox %d: got %d, Retry-After %q, %q; want 503 with %q",
				len(ids)+1, res.StatusCode, res.Header.Get("Retry-After"), answer.Detail, reason)
		}
		if len(ids) == 0 {
			t.Fatal("the service has no room for one sandbox")
		}
		return ids
	}
}

// runInLiveSandboxes runs code in one sandbox after the other until the load is over.
func (s shortageTest) runInLiveSandboxes(t *testing.T, c *client, ids []string, l *load) {
	for n := 0; !l.over.Load(); n++ {
		var e struct {
			ID     string `json:"execution_id"`
			Status string
		}
		path := "/sandbox/" + ids[n%len(ids)] + "/execute"
		err := c.call(context.Background(), "POST", path, map[string]any{"code": s.code}, &e)
		switch {
		case err == nil:
			l.mu.Lock()
			l.statuses[e.ID] = e.Status
			l.mu.Unlock()
		case !strings.Contains(err.Error(), "503"):
			t.Errorf("a run in a live sandbox: %v", err)
			return
		}
	}
}

// nightlyLoad is how long a service that lacks something is under load.
const nightlyLoad = time.Minute

// inGroup returns a script that puts the service into a control group with a limit. The test needs root.
func inGroup(t *testing.T, controller, file1, file2, value string) string {
	t.Helper()
	name := fmt.Sprintf("glasshouse-test-%d-%s", os.Getpid(), controller)
	dir, file := filepath.Join("/sys/fs/cgroup", controller, name), file1
	if _, err := os.Stat("/sys/fs/cgroup/" + controller); err != nil { // version 2
		dir, file = filepath.Join("/sys/fs/cgroup", name), file2
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	return fmt.Sprintf("mkdir -p %[1]s\necho %[3]s > %[1]s/%[2]s\necho $$ > %[1]s/cgroup.procs", dir, file, value)
}

// withNamespaces returns a script that runs the service as root of a user namespace that may have few namespaces.
func withNamespaces(t *testing.T, limit int) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "limit.py")
	text := fmt.Sprintf(`import ctypes, os, sys
ready, done = os.pipe(), os.pipe()
parent = os.getpid()
if os.fork() == 0:
    os.read(ready[0], 1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{parent}/{name}", "w") as file:
            file.write("0 0 1879113729\n")
    os.write(done[1], b"x")
    os._exit(0)
if ctypes.CDLL(None).unshare(0x10000000) != 0:
    sys.exit("unshare: needs root")
os.write(ready[1], b"x")
os.read(done[0], 1)
os.wait()
for kind in ("pid", "mnt", "uts", "ipc"):
    with open(f"/proc/sys/user/max_{kind}_namespaces", "w") as file:
        file.write("%d")
os.execv(sys.argv[1], sys.argv[1:])
`, limit)
	if err := os.WriteFile(program, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("exec %s %s %s \"$@\"", os.Getenv("GLASSHOUSE_PYTHON"), program, binary(t))
}

func TestServiceStandsInEveryShortage(t *testing.T) {
	const threads = `import threading, time
for _ in range(9):
    try:
        threading.Thread(target=time.sleep, args=(1,)).start()
    except RuntimeError:
        break`
	const allocate = "import time\nx = bytearray(120 << 20)\ntime.sleep(0.2)\nlen(x)"
	for name, s := range map[string]shortageTest{
		"256 descriptors":  {script: "ulimit -n 256", reason: "its maximum", code: "print('x' * 1000)"},
		"1024 descriptors": {script: "ulimit -n 1024", reason: "its maximum", code: "print('x' * 1000)"},
		"4096 descriptors": {script: "ulimit -n 4096", reason: "its maximum", code: "print('x' * 1000)"},
		"processes": {
			script: inGroup(t, "pids", "pids.max", "pids.max", "250"), code: threads,
		},
		"memory": {
			script: inGroup(t, "memory", "memory.limit_in_bytes", "memory.max", "734003200"), code: allocate,
		},
		"namespaces": {script: withNamespaces(t, 100), code: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			s.dir, s.least = dataDir(t), nightlyLoad
			s.stands(t)
		})
	}
}

// TestServiceStandsWithAFullDisk fills the disk of the data folder under load.
func TestServiceStandsWithAFullDisk(t *testing.T) {
	disk := emptyDataDir(t)
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=900m,mode=755"); err != nil {
		t.Fatalf("mount a small disk: %v; the test needs root", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	dir := filepath.Join(disk, "data")
	if out, err := exec.Command("cp", "-a", dataDir(t), dir).CombinedOutput(); err != nil {
		t.Fatalf("copy the data folder: %v: %s", err, out)
	}
	cmd, c := start(t, binary(t), dir, withPackages())
	l := &load{statuses: map[string]string{}, errors: map[string]int{}}
	l.service.Store(c)
	for range 4 {
		go l.run()
	}
	l.waitForAnswers(t)
	filler := filepath.Join(disk, "filler")
	_ = exec.Command("dd", "if=/dev/zero", "of="+filler, "bs=1M").Run() // ends when the disk is full
	eventually(t, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for text := range l.errors {
			if strings.Contains(text, "503") && strings.Contains(text, "nearly full") {
				return nil
			}
		}
		return fmt.Errorf("no run was refused for the full disk: %v", l.errors)
	})
	time.Sleep(nightlyLoad)
	c.must(t, "GET", "/healthz", nil)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	l.waitForAnswers(t)
	l.over.Store(true)
	checkAnswers(t, c, l, nil)
	stop(t, cmd)
}
