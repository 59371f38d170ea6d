package isolatetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/environment"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/supervisor"
)

// below are the living processes that pid has started.
func below(pid int) (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		body, _ := os.ReadFile(task)
		for _, word := range strings.Fields(string(body)) {
			var child int
			if _, err := fmt.Sscan(word, &child); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// zygotes are those of this process.
func zygotes() (pids []int) {
	for _, pid := range below(os.Getpid()) {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(line), "zygote.py") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(after, "Z")
}

// eventually waits for what has no event to wait for.
func eventually(t *testing.T, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !true(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func raiseSet(t *testing.T, set isolate.WarmSet, recycle isolate.RecyclePolicy) *isolate.Isolator {
	t.Helper()
	closeShared() // zygotes finds this one's only
	i, err := isolate.Open(isolate.Config{Python: os.Getenv("GLASSHOUSE_PYTHON"), WarmSets: []isolate.WarmSet{set}, DefaultPolicy: policy.Default(), Level: os.Getenv(levelKey), Recycle: recycle, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return i
}

// A worn zygote is replaced by one that was warmed beside it: nobody waits for that,
// and its children live on until they are done with; then it goes.
func TestWornZygotesAreReplaced(t *testing.T) {
	worn := map[string]isolate.RecyclePolicy{"by count": {MaxForks: 12}}
	if os.Getenv(levelKey) == "" { // on one level is enough
		worn["by age"] = isolate.RecyclePolicy{MaxAge: 2 * time.Second}
	}
	for name, recycle := range worn {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			i := raiseSet(t, isolate.WarmSet{Name: "pandas", Modules: []string{"numpy", "pandas"}, Pool: 4}, recycle)
			warm := time.Since(began)
			first := zygotes()[0]
			old := open(t, i, nil)
			run(t, old, "x = 42")
			var slowest time.Duration
			eventually(t, "another zygote", func() bool {
				began := time.Now()
				if err := open(t, i, nil).Close(); err != nil {
					t.Error(err)
				}
				slowest = max(slowest, time.Since(began))
				now := zygotes()
				return len(now) == 2 && i.Ready() == nil || len(now) == 1 && now[0] != first
			})
			if slowest > warm/2 {
				t.Errorf("a request waited %s; to warm a zygote takes %s", slowest, warm)
			}
			if e := run(t, old, "x"); string(e.Result) != "42" || !lives(first) {
				t.Errorf("a session of the old zygote: %s %s", e.Status, e.Result)
			}
			if err := old.Close(); err != nil {
				t.Error(err)
			}
			eventually(t, "the old zygote goes", func() bool { return !lives(first) })
		})
	}
}

// A zygote's death takes its children with it, and no more: another comes at once,
// without being asked for, and a session goes on with its files.
func TestADeadZygoteIsReplaced(t *testing.T) {
	i := raiseSet(t, isolate.WarmSet{Name: "bare", Pool: 4}, isolate.RecyclePolicy{})
	s := open(t, i, nil)
	run(t, s, "open('kept', 'w').write('k')")
	first := zygotes()[0]
	eventually(t, "a full pool", func() bool { return len(below(first)) >= 4 })
	children := below(first)
	if err := unix.Kill(first, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, pid := range children {
		eventually(t, "a child ends with its zygote", func() bool { return !lives(pid) })
	}
	eventually(t, "another zygote with a full pool", func() bool {
		now := zygotes()
		return i.Ready() == nil && len(now) == 1 && now[0] != first && len(below(now[0])) >= 4
	})
	if e := run(t, s, "open('kept').read()"); string(e.Result) != `"k"` {
		t.Errorf("after its zygote's death: %s %s %v", e.Status, e.Result, e.Error)
	}
}

// A burst beyond the pool waits, and is told after its deadline to come again. One that
// none of the pool is fit for gets the child that is forked beside it.
func TestABurstQueues(t *testing.T) {
	i := raiseSet(t, isolate.WarmSet{Name: "bare", Pool: 3}, isolate.RecyclePolicy{})
	zygote := zygotes()[0]
	eventually(t, "a full pool and one more", func() bool { return len(below(zygote)) >= 4 })
	if err := unix.Kill(zygote, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p := policy.Default()
	short := supervisor.New(i, 200*time.Millisecond)
	var err error
	for n := 0; n < 10 && err == nil; n++ { // the pool is empty after some
		var s *supervisor.Session
		if s, err = short.Open(context.Background(), sandbox.Sandbox{ID: "b", Policy: p}, ""); err == nil {
			defer s.Close()
		}
	}
	var known *sandbox.Error
	if !errors.As(err, &known) || known.Fault != sandbox.FaultFull || known.RetryAfter < 1 {
		t.Errorf("beyond the pool: %v", err)
	}
	p.WorkspaceMaxBytes /= 2                            // which none of the waiting has
	if strings.HasPrefix(i.Isolation().Level, "full") { // elsewhere each of the pool is fit for any size
		spare, err := supervisor.New(i, 30*time.Second).Open(context.Background(), sandbox.Sandbox{ID: "b", Policy: p}, "")
		if err != nil {
			t.Fatalf("the one that is forked already: %v", err)
		}
		defer spare.Close()
		if e := run(t, spare, "6 * 7"); string(e.Result) != "42" {
			t.Errorf("in it: %s %s %v", e.Status, e.Result, e.Error)
		}
	}
	began := time.Now()
	if _, err = short.Open(context.Background(), sandbox.Sandbox{ID: "b", Policy: p}, ""); !errors.As(err, &known) || known.Fault != sandbox.FaultFull || time.Since(began) > 5*time.Second {
		t.Errorf("one that is made to measure: %v after %s", err, time.Since(began))
	}
	queued := make(chan error)
	go func() {
		s, err := supervisor.New(i, 30*time.Second).Open(context.Background(), sandbox.Sandbox{ID: "b", Policy: p}, "")
		if err == nil {
			err = s.Close()
		}
		queued <- err
	}()
	if err := unix.Kill(zygote, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-queued; err != nil {
		t.Errorf("one that waited: %v", err)
	}
}

// The extension is in a zygote before its Python, which asks it for its first memory; and
// what loaded it is not in the environment of children.
func TestTheExtensionComesBeforePython(t *testing.T) {
	i := raiseSet(t, isolate.WarmSet{Name: "bare", Pool: 1}, isolate.RecyclePolicy{})
	py, err := environment.Inspect(os.Getenv("GLASSHOUSE_PYTHON"))
	if err != nil {
		t.Fatal(err)
	}
	var built []string
	for _, folder := range py.Packages {
		found, _ := filepath.Glob(filepath.Join(folder, "syscall_batch.*.so"))
		built = append(built, found...)
	}
	for _, pid := range zygotes() {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if loaded := strings.Contains(string(environ), "/syscall_batch."); err != nil || loaded != (len(built) > 0) {
			t.Errorf("loaded: %v; built: %v; %v", loaded, built, err)
		}
	}
	if e := run(t, open(t, i, nil), "import os\n[name for name in os.environ if name.startswith('LD_')]"); string(e.Result) != "[]" {
		t.Errorf("%s %s %v", e.Status, e.Result, e.Error)
	}
}
