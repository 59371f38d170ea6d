package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// process is a running process, told from a later one of the same number by the
// time of its start.
type process struct {
	pid   int
	start string
}

// processes are all that run now, with their parents.
func processes() map[process]int {
	parents := map[process]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, _ := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		end := strings.LastIndex(string(text), ") ")
		if end < 0 {
			continue
		}
		fields := strings.Fields(string(text)[end+2:])
		if fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		parents[process{pid, fields[19]}], _ = strconv.Atoi(fields[1])
	}
	return parents
}

// below are all descendants of a process.
func below(pid int) (all []process) {
	parents := processes()
	known := map[int]bool{pid: true}
	for grown := true; grown; {
		grown = false
		for p, parent := range parents {
			if known[parent] && !known[p.pid] {
				known[p.pid], grown = true, true
				all = append(all, p)
			}
		}
	}
	return all
}

// alive are those of a list that still run.
func alive(list []process) []process {
	parents := processes()
	return slices.DeleteFunc(slices.Clone(list), func(p process) bool { _, there := parents[p]; return !there })
}

// childrenOf are a process's children with such a command line.
func childrenOf(pid int, part string) (pids []int) {
	for p, parent := range processes() {
		if parent != pid {
			continue
		}
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid)); strings.Contains(string(line), part) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// groupsOf are the cgroup folders that a service of this number has made, with
// those in them.
func groupsOf(pid int) (dirs []string) {
	own, _ := os.ReadFile("/proc/self/cgroup")
	for _, line := range strings.Split(string(own), "\n") {
		part := strings.SplitN(line, ":", 3)
		if len(part) < 3 {
			continue
		}
		for _, root := range []string{filepath.Join(part[1], part[2]), part[1], part[2]} {
			for _, pattern := range []string{"", "*"} {
				found, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", root, fmt.Sprintf("glasshouse-%d-*", pid), pattern))
				for _, dir := range found {
					if info, err := os.Stat(dir); err == nil && info.IsDir() {
						dirs = append(dirs, dir)
					}
				}
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func count(pattern string) int {
	found, _ := filepath.Glob(pattern)
	return len(found)
}

// eventually waits until what is true, for as long as a busy machine may need.
func eventually(t *testing.T, what func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err = what(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// load runs code on the service, whichever lives now, and keeps what was answered.
type load struct {
	service  atomic.Pointer[client]
	over     atomic.Bool
	answered atomic.Int64

	mu       sync.Mutex
	statuses map[string]string // of each execution that was answered
	errors   map[string]int    // and what came instead
}

func (l *load) run() {
	codes := []string{"6 * 7", "print('x' * 10000)", "import time\ntime.sleep(0.03)", "1 / 0", "rows = await db_query('SELECT 1 AS n')\nrows[0]['n']"}
	for n := 0; !l.over.Load(); n++ {
		var e struct {
			ID     string `json:"execution_id"`
			Status string
		}
		err := l.service.Load().call(context.Background(), "POST", "/sandbox/agent/quick-execute", map[string]any{"code": codes[n%len(codes)]}, &e)
		var failed *url.Error // no answer at all, as where the service is down
		l.mu.Lock()
		if err == nil {
			l.statuses[e.ID] = e.Status
		} else if errors.As(err, &failed) {
			l.errors["no answer"]++
		} else {
			l.errors[err.Error()]++
		}
		l.mu.Unlock()
		if err == nil {
			l.answered.Add(1)
		} else {
			time.Sleep(20 * time.Millisecond) // it is down: not too hot
		}
	}
}

// errorsOf are the lines of error that a service has written; it must have ended.
func errorsOf(cmd *exec.Cmd) (lines []string) {
	said, _ := cmd.Stderr.(*bytes.Buffer)
	for _, line := range strings.Split(said.String(), "\n") {
		if strings.Contains(line, "level=error") {
			lines = append(lines, line)
		}
	}
	return lines
}

// Whatever is killed under load, and however often, no execution that was answered
// is lost, and nothing is left: no process, cgroup, mount, descriptor or file.
// GLASSHOUSE_TEST_KILLS sets how many kills; a night takes some thousand.
func TestKillsLoseAndLeakNothing(t *testing.T) {
	kills := 50
	if text := os.Getenv("GLASSHOUSE_TEST_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	path, dir := binary(t), dataDir(t)
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	cmd, r := start(t, path, dir, "--pool", "2")
	services := []int{cmd.Process.Pid}
	kept := count(dir + "/*")
	l := &load{statuses: map[string]string{}, errors: map[string]int{}}
	l.service.Store(r)
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(l.run)
	}
	stop := sync.OnceFunc(func() { l.over.Store(true); workers.Wait() })
	defer stop()
	progress := func() {
		before := l.answered.Load()
		eventually(t, func() error {
			if l.answered.Load() < before+3 {
				return fmt.Errorf("after %d answers the service answers no more", before)
			}
			return nil
		})
	}
	killed := map[string]int{}
	var logged []string
	for n := range kills {
		progress()
		pid := cmd.Process.Pid
		if n%15 == 14 {
			_ = syscall.Kill(pid, syscall.SIGSTOP) // or it could start more while they are counted
			had := below(pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_ = cmd.Wait()
			logged = append(logged, errorsOf(cmd)...)
			killed["service"]++
			eventually(t, func() error {
				if left := alive(had); len(left) > 0 {
					return fmt.Errorf("the service was killed, and %d of its %d processes live", len(left), len(had))
				}
				return nil
			})
			// Whether an answer waits for the disk or not: what a kill leaves is the kernel's to write.
			cmd, r = start(t, path, dir, "--pool", "2", fmt.Sprintf("--synchronous-commit=%t", len(services)%2 == 0))
			services = append(services, cmd.Process.Pid)
			l.service.Store(r)
			continue
		}
		var zygotes []int
		eventually(t, func() error {
			set := `"warm":[]` // the one that the load uses
			if n%6 == 0 {
				set = "/glasshouse/zygote.py" // any
			}
			if zygotes = childrenOf(pid, set); len(zygotes) == 0 {
				return fmt.Errorf("no zygote")
			}
			return nil
		})
		_ = syscall.Kill(zygotes[rand.IntN(len(zygotes))], syscall.SIGKILL)
		killed["zygote"]++
		if n%10 == 3 || n%10 == 6 { // and the stage of the next one, which lives for some milliseconds
			var stages []int
			for end := time.Now().Add(5 * time.Second); len(stages) == 0 && time.Now().Before(end); {
				stages = childrenOf(pid, "glasshouse-launcher")
				time.Sleep(time.Millisecond)
			}
			for _, stage := range stages {
				if syscall.Kill(stage, syscall.SIGKILL) == nil {
					killed["stage"]++
				}
			}
		}
	}
	progress()
	stop()

	lost := 0
	for id, status := range l.statuses {
		var e struct{ Status string }
		if err := r.call(context.Background(), "GET", "/executions/"+id, nil, &e); err != nil || e.Status != status {
			lost++
			t.Errorf("execution %s was answered as %s; history has %q, %v", id, status, e.Status, err)
		}
	}
	ended := map[string]int{}
	for _, status := range l.statuses {
		ended[status]++
	}
	t.Logf("report: killed %v; %d executions answered %v, %d lost; meanwhile %v", killed, len(l.statuses), ended, lost, l.errors)
	// At rest the service has what it had: zygotes, those that wait, and no more.
	pid := cmd.Process.Pid
	eventually(t, func() error {
		// A group that was busy goes with the next one.
		r.must(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1"})
		waiting := 0
		for _, zygote := range childrenOf(pid, "/glasshouse/zygote.py") {
			waiting += len(below(zygote))
		}
		groups := 0
		for _, d := range groupsOf(pid) {
			if n, err := strconv.Atoi(filepath.Base(d)); err == nil && n > 0 {
				groups++
			}
		}
		if groups > 3*(waiting+8) || waiting > 16 { // 8 are kept for the next children
			return fmt.Errorf("%d processes wait, and there are %d cgroups", waiting, groups)
		}
		return nil
	})
	had := below(pid)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if logged = append(logged, errorsOf(cmd)...); len(logged) > 0 {
		t.Errorf("kills became errors of the service:\n%s", strings.Join(logged, "\n"))
	}
	eventually(t, func() error {
		if left := alive(had); len(left) > 0 {
			return fmt.Errorf("%d of %d processes live", len(left), len(had))
		}
		return nil
	})
	for _, pid := range services {
		if left := groupsOf(pid); len(left) > 0 {
			t.Errorf("cgroups are left of %d: %v", pid, left)
		}
	}
	if now, _ := os.ReadFile("/proc/self/mountinfo"); len(now) != len(mounts) {
		t.Errorf("the machine's mounts have changed")
	}
	if now := count(dir + "/*"); now > kept {
		t.Errorf("%d files in the data folder, and there were %d", now, kept)
	}
}
