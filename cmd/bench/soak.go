package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// hostile are programs that attack the limits. They run without import rules. The answer to each must be an
// execution, with any status.
var hostile = []string{
	"import os\nos._exit(3)",
	"import os\nwhile True: os.fork()",
	"import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
	"x = []\nwhile True: x.append(bytearray(1 << 20))",
	"while True: pass",
	"print('x' * (30 << 20))",
	"import os\nheld = []\nwhile True: held.append(os.open('/dev/null', os.O_RDONLY))",
	"import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
	"f = open('/session/full', 'wb')\nwhile True: f.write(bytes(1 << 20))",
	"import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'\\xff' * 4096)\n    except OSError: pass",
	"import sys\nsys.setrecursionlimit(10 ** 8)\ndef f(): f()\nf()",
	"import os\nfor n in range(10 ** 6): open(f'/tmp/{n}', 'w').close()",
}

// resources are the machine's resources that the service and its children use.
type resources struct {
	megabytes                               float64 // resident, of the service alone
	descriptors, processes, cgroups, mounts int
}

func (g *glasshouse) resources() (r resources) {
	pid := g.cmd.Process.Pid
	for line := range strings.Lines(readText(fmt.Sprintf("/proc/%d/status", pid))) {
		var kb int
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			r.megabytes = float64(kb) / 1024
		}
	}
	descriptors, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	r.descriptors, r.processes = len(descriptors), g.processCount()
	r.mounts = strings.Count(readText(fmt.Sprintf("/proc/%d/mounts", pid)), "\n")
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, fmt.Sprintf("glasshouse-%d", pid)) {
			r.cgroups++
		}
		return nil
	})
	return r
}

func readText(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// restingResources returns the resources once the number of processes has not changed for a second: then the
// pool is full.
func (g *glasshouse) restingResources() resources {
	last, unchanged := g.processCount(), 0
	for end := time.Now().Add(20 * time.Second); unchanged < 10 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		now := g.processCount()
		unchanged++
		if now != last {
			last, unchanged = now, 0
		}
	}
	return g.resources()
}

// soak makes many short executions, one in fifty of them hostile, and compares the resources of the service
// after a tenth of them with those at the end. A wrong answer or growth is an error.
func soak(ctx context.Context, o options) error {
	g, err := startGlasshouse(ctx, o.binary, o.python)
	if err != nil {
		return err
	}
	defer g.Close()
	paths, end, err := openSessions(ctx, g, 8)
	if err != nil {
		return err
	}
	defer end()
	wrong := g.soakRuns(ctx, 0, o.soakRuns/10, paths)
	before := g.restingResources()
	progress("after a tenth of the runs: %+v", before)
	wrong += g.soakRuns(ctx, o.soakRuns/10, o.soakRuns, paths)
	after := g.restingResources()
	if err := ctx.Err(); err != nil {
		return err
	}
	failed := wrong > 0
	fmt.Printf("wrong answers: %d of %d\n", wrong, o.soakRuns)
	for _, r := range []struct {
		name               string
		before, after, may float64 // may: the growth that does not count as a leak
	}{
		{"memory of the service, MB", before.megabytes, after.megabytes, max(16, before.megabytes/4)},
		{"descriptors of the service", float64(before.descriptors), float64(after.descriptors), 16},
		{"processes", float64(before.processes), float64(after.processes), 16}, // of PostgreSQL's connections
		{"cgroups", float64(before.cgroups), float64(after.cgroups), 36},       // up to eight triples are kept for the next children
		{"mounts", float64(before.mounts), float64(after.mounts), 0},
	} {
		verdict := "flat"
		if r.after > r.before+r.may {
			verdict, failed = "GREW", true
		}
		fmt.Printf("%s: %.0f after a tenth, %.0f at the end: %s\n", r.name, r.before, r.after, verdict)
	}
	if failed {
		return errors.New("the soak found wrong answers or growth")
	}
	return nil
}

// soakRuns makes the runs from first to last, with a client for each path, and returns how many were wrong.
func (c *client) soakRuns(ctx context.Context, first, last int, paths []string) int {
	return countWrong(ctx, first, last, len(paths), func(i, client int) error {
		if i%10_000 == 0 {
			progress("soak: run %d", i)
		}
		return c.soakRun(ctx, i, client, paths[client])
	})
}

func (c *client) soakRun(ctx context.Context, i, client int, path string) error {
	if i%50 == 49 {
		code := hostile[i/50%len(hostile)]
		body := map[string]any{"code": code, "config": map[string]any{"profile": "unrestricted", "max_execution_time": 1}}
		var e execution
		err := c.call(ctx, "POST", quickPath, body, &e)
		if err == nil && e.Status == "running" {
			err = fmt.Errorf("a hostile run is answered as running: %.60q", code)
		}
		return err
	}
	label := fmt.Sprintf("run-%d-client-%d", i, client)
	code, want := "print(label)\n1 / 0", expectation{status: "failed", stdout: label + "\n", errorText: "ZeroDivisionError"}
	switch i % 3 {
	case 0:
		path, code, want = quickPath, "print(label)", expectation{status: "completed", stdout: label + "\n"}
	case 1:
		code, want = "label", expectation{status: "completed", result: fmt.Sprintf("%q", label)}
	}
	e, err := c.run(ctx, path, code, map[string]any{"label": label})
	if err != nil {
		return err
	}
	return want.check(e)
}
