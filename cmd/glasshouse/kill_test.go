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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// load runs code on the service, and keeps the answers. The service may be replaced while load runs.
type load struct {
	service  atomic.Pointer[client]
	over     atomic.Bool
	answered atomic.Int64

	mu       sync.Mutex
	statuses map[string]string // of each answered execution
	errors   map[string]int    // how often each error was answered instead
}

// run makes requests until over is set.
func (l *load) run() {
	codes := []string{
		"6 * 7", "print('x' * 10000)", "import time\ntime.sleep(0.03)", "1 / 0", "rows = await db_query('SELECT 1 AS n')\nrows[0]['n']",
	}
	for n := 0; !l.over.Load(); n++ {
		var e struct {
			ID     string `json:"execution_id"`
			Status string
		}
		body := map[string]any{"code": codes[n%len(codes)]}
		err := l.service.Load().call(context.Background(), "POST", "/sandbox/agent/quick-execute", body, &e)
		var noAnswer *url.Error
		l.mu.Lock()
		if err == nil {
			l.statuses[e.ID] = e.Status
		} else if errors.As(err, &noAnswer) {
			l.errors["no answer"]++
		} else {
			l.errors[err.Error()]++
		}
		l.mu.Unlock()
		if err == nil {
			l.answered.Add(1)
		} else {
			time.Sleep(20 * time.Millisecond) // do not take the CPU of the service that starts
		}
	}
}

// waitForAnswers waits until three more requests are answered.
func (l *load) waitForAnswers(t *testing.T) {
	t.Helper()
	before := l.answered.Load()
	eventually(t, func() error {
		if l.answered.Load() < before+3 {
			return fmt.Errorf("the service answers no more after %d answers", before)
		}
		return nil
	})
}

// errorLines returns the errors in the log of a service that has ended.
func errorLines(cmd *exec.Cmd) (lines []string) {
	log, _ := cmd.Stderr.(*bytes.Buffer)
	for _, line := range strings.Split(log.String(), "\n") {
		if strings.Contains(line, "level=error") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestKillsLoseNoRecordAndLeakNoResource kills each kind of process; kill_nightly_test.go has the long loop.
func TestKillsLoseNoRecordAndLeakNoResource(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	killUnderLoad(t, 15)
}

// killUnderLoad kills zygotes, launchers and the service under load. No answered execution may be lost, and
// no process, cgroup, mount or file may be left. Each 15 kills have at least one of every kind.
func killUnderLoad(t *testing.T, kills int) {
	path, dir := binary(t), dataDir(t)
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	cmd, c := start(t, path, dir, withPackages(), "--pool", "2")
	services := []int{cmd.Process.Pid}
	filesBefore := countFiles(dir + "/*")
	l := &load{statuses: map[string]string{}, errors: map[string]int{}}
	l.service.Store(c)
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(l.run)
	}
	endLoad := sync.OnceFunc(func() { l.over.Store(true); workers.Wait() })
	defer endLoad()
	killed := map[string]int{}
	var logged []string
	for n := range kills {
		l.waitForAnswers(t)
		if n%15 == 14 {
			killService(t, cmd)
			logged = append(logged, errorLines(cmd)...)
			killed["service"]++
			// A kill loses nothing with either setting: the kernel writes the data that the service has passed to it.
			cmd, c = start(t, path, dir, withPackages(), "--pool", "2",
				fmt.Sprintf("--synchronous-commit=%t", len(services)%2 == 0))
			services = append(services, cmd.Process.Pid)
			l.service.Store(c)
			continue
		}
		kind := `"warm":[]` // the zygote that the load uses
		if n%6 == 0 {
			kind = "/glasshouse/zygote.py" // any zygote
		}
		killZygote(t, cmd.Process.Pid, kind)
		killed["zygote"]++
		if n%10 == 3 || n%10 == 6 {
			killed["launcher"] += killLaunchers(cmd.Process.Pid)
		}
	}
	l.waitForAnswers(t)
	endLoad()

	checkAnswers(t, c, l, killed)
	checkAtRest(t, c, cmd.Process.Pid)
	had := descendants(cmd.Process.Pid)
	stop(t, cmd)
	if logged = append(logged, errorLines(cmd)...); len(logged) > 0 {
		t.Errorf("got errors in the log of the service, want none:\n%s", strings.Join(logged, "\n"))
	}
	eventually(t, func() error {
		if left := alive(had); len(left) > 0 {
			return fmt.Errorf("%d of %d processes are alive after the service has ended", len(left), len(had))
		}
		return nil
	})
	for _, pid := range services {
		if left := cgroupsOf(pid); len(left) > 0 {
			t.Errorf("got cgroups of service %d: %v, want none", pid, left)
		}
	}
	if now, _ := os.ReadFile("/proc/self/mountinfo"); len(now) != len(mounts) {
		t.Errorf("got mounts:\n%s\nwant:\n%s", now, mounts)
	}
	if now := countFiles(dir + "/*"); now > filesBefore {
		t.Errorf("got %d files in the data folder, want at most %d", now, filesBefore)
	}
}

// killService kills the service and requires that its processes end, too.
func killService(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	_ = cmd.Process.Signal(syscall.SIGSTOP) // or it could start more processes while they are listed
	had := descendants(cmd.Process.Pid)
	kill(cmd)
	eventually(t, func() error {
		if left := alive(had); len(left) > 0 {
			return fmt.Errorf("%d of %d processes are alive after the service was killed", len(left), len(had))
		}
		return nil
	})
}

func killZygote(t *testing.T, service int, kind string) {
	t.Helper()
	var zygotes []int
	eventually(t, func() error {
		if zygotes = zygotesOf(service, kind); len(zygotes) == 0 {
			return fmt.Errorf("the service has no zygote with %s", kind)
		}
		return nil
	})
	_ = syscall.Kill(zygotes[rand.IntN(len(zygotes))], syscall.SIGKILL)
}

// killLaunchers kills the launchers, with which their zygotes end, and returns how many it killed: none if it saw none
// within 5 s.
func killLaunchers(service int) (killed int) {
	var launchers []int
	for end := time.Now().Add(5 * time.Second); len(launchers) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		launchers = childrenOf(service, "glasshouse-launcher")
	}
	for _, launcher := range launchers {
		if syscall.Kill(launcher, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// checkAnswers requires that history has every answered execution as it was answered.
func checkAnswers(t *testing.T, c *client, l *load, killed map[string]int) {
	t.Helper()
	lost, statuses := 0, map[string]int{}
	for id, status := range l.statuses {
		statuses[status]++
		var e struct{ Status string }
		if err := c.call(context.Background(), "GET", "/executions/"+id, nil, &e); err != nil || e.Status != status {
			lost++
			t.Errorf("execution %s: got %q in history, %v, want %s as it was answered", id, e.Status, err, status)
		}
	}
	t.Logf(
		"report: killed %v; %d executions answered %v, %d lost; errors meanwhile: %v",
		killed,
		len(l.statuses),
		statuses,
		lost,
		l.errors,
	)
}

// checkAtRest requires that the service has as many waiting processes and cgroups as the pool needs.
func checkAtRest(t *testing.T, c *client, pid int) {
	t.Helper()
	tries := 0
	eventually(t, func() error {
		// A cgroup that could not be removed is removed after a later run. Most tries have none before them: after a
		// run, the process for the next one starts, and is one too many until the pool has ended another.
		if tries++; tries%200 == 1 {
			c.must(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1"})
		}
		var system struct {
			Pools []struct{ Waiting struct{ Max int } } `json:"warm_pools"`
		}
		if err := c.call(context.Background(), "GET", "/system", nil, &system); err != nil {
			return err
		}
		most := 0
		for _, pool := range system.Pools {
			most += pool.Waiting.Max + 1 // and one that is forked, but not locked down
		}
		waiting := 0
		for _, zygote := range zygotesOf(pid, "/glasshouse/zygote.py") {
			waiting += len(descendants(zygote))
		}
		groups := 0
		for _, dir := range cgroupsOf(pid) {
			if n, err := strconv.Atoi(filepath.Base(dir)); err == nil && n > 0 {
				groups++
			}
		}
		const spare = 8 // cgroups that are kept for the next children; each child has three
		if groups > 3*(waiting+spare) || waiting > most {
			return fmt.Errorf("got %d waiting processes and %d cgroups, want at most %d and %d",
				waiting, groups, most, 3*(waiting+spare))
		}
		return nil
	})
}
