package isolatetest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/environment"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/isolate/layer"
	"glasshouse/sandbox/supervisor"
)

// A worn zygote forks until its successor is warm, so that no start waits. It ends when the
// sessions of its children have ended.
func TestWornZygoteIsReplaced(t *testing.T) {
	t.Parallel()
	policies := map[string]isolate.RecyclePolicy{"by count": {MaxForks: 12}}
	if Level() == "" && !testing.Short() { // one level is enough
		policies["by age"] = isolate.RecyclePolicy{MaxAge: 2 * time.Second}
	}
	for name, recycle := range policies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := Open(t, isolate.Config{Recycle: recycle,
				WarmSets: []isolate.WarmSet{{Name: "numpy", Modules: []string{"numpy"}, Pool: 4}}})
			old := NewSession(t, i, nil)
			Run(t, old, "x = 42")
			first := zygoteOf(t, old)
			Eventually(t, "a session has another zygote", func() bool {
				if err := i.Ready(); err != nil {
					t.Errorf("Ready while the zygote is replaced: got %v, want a zygote at any time", err)
				}
				s := NewSession(t, i, nil)
				defer s.Close()
				return zygoteOf(t, s) != first
			})
			if e := Run(t, old, "x"); string(e.Result) != "42" || !Lives(first) {
				t.Errorf("a session of the old zygote: got %s %s, want 42", e.Status, e.Result)
			}
			old.Close()
			Eventually(t, "the old zygote ends", func() bool { return !Lives(first) })
		})
	}
}

// A session whose zygote dies keeps its files. The pool is filled again without a request.
func TestDeadZygoteIsReplaced(t *testing.T) {
	t.Parallel()
	i := Open(t, isolate.Config{WarmSets: []isolate.WarmSet{{Name: "bare", Pool: 4}}})
	s := NewSession(t, i, nil)
	Run(t, s, "open('kept', 'w').write('k')")
	first := zygoteOf(t, s)
	Eventually(t, "the pool is full", func() bool { return len(Children(first)) >= 4 })
	children := Children(first)
	Must(t, unix.Kill(first, unix.SIGKILL))
	for _, pid := range children {
		Eventually(t, "a child ends with its zygote", func() bool { return !Lives(pid) })
	}
	Eventually(t, "there is another zygote", func() bool { return i.Ready() == nil })
	other := NewSession(t, i, nil)
	second := zygoteOf(t, other)
	Eventually(t, "its pool is full", func() bool { return len(Children(second)) >= 4 })
	if second == first {
		t.Error("got the dead zygote, want another")
	}
	if e := Run(t, s, "open('kept').read()"); string(e.Result) != `"k"` {
		t.Errorf(`a file after the zygote's death: got %s %s %s, want "k"`, e.Status, e.Result, Why(e))
	}
}

// Invariant 13: the kernel ends the children of a dead zygote, by the pid namespace or by
// their parent-death signal. Each of the two is enough.
func TestChildrenDieWithTheirZygote(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		without  layer.Set
		survives bool
	}{
		{nil, false},
		{layer.Set{layer.PID}, false},
		{layer.Set{layer.Death}, !HasNamespaces()},
		{layer.Set{layer.PID, layer.Death}, true},
	} {
		t.Run(fmt.Sprintf("without %v", c.without), func(t *testing.T) {
			t.Parallel()
			i := Open(t, isolate.Config{Without: c.without})
			s := NewSession(t, i, nil)
			child, zygote := processOf(t, s), zygoteOf(t, s)
			Must(t, unix.Kill(zygote, unix.SIGKILL))
			// A run on another zygote's child comes after the kernel has ended the children.
			Eventually(t, "another zygote forks", func() bool {
				return string(Run(t, NewSession(t, i, nil), "6 * 7").Result) == "42" // a child that waited may be dying
			})
			if c.survives {
				if !Lives(child) {
					t.Error("a child without these layers: got it dead, want it alive, or the test proves nothing")
				}
				return
			}
			Eventually(t, "the child ends", func() bool { return !Lives(child) })
		})
	}
}

// Starts wait while the pool is empty, and get FaultFull at their deadline. A start that
// cannot use a waiting child gets the spare child.
func TestStartsBeyondThePoolWait(t *testing.T) {
	t.Parallel()
	i := Open(t, isolate.Config{WarmSets: []isolate.WarmSet{{Name: "bare", Pool: 3}}})
	zygote := zygoteOf(t, NewSession(t, i, nil))
	const sessionPoolAndSpare = 1 + 3 + 1
	Eventually(
		t,
		"the pool and the spare are there",
		func() bool { return len(Children(zygote)) >= sessionPoolAndSpare },
	)
	Must(t, unix.Kill(zygote, unix.SIGSTOP))
	const short = 200 * time.Millisecond
	p := policy.Default()
	isFull := func(err error) bool {
		var known *sandbox.Error
		return errors.As(err, &known) && known.Fault == sandbox.FaultFull && known.RetryAfter >= 1
	}
	var err error
	for n := 0; n < 10 && err == nil; n++ { // until the pool is empty
		var s *supervisor.Session
		if s, err = OpenSession(i, p, short); err == nil {
			defer s.Close()
		}
	}
	if !isFull(err) {
		t.Errorf("a start beyond the pool: got %v, want FaultFull", err)
	}
	p.WorkspaceMaxBytes /= 2 // no waiting child has this size
	if hasNamespaces(i.Isolation().Level) {
		spare, err := OpenSession(i, p, 30*time.Second)
		if err != nil {
			t.Fatalf("a start with the spare child: %v", err)
		}
		defer spare.Close()
		if e := Run(t, spare, "6 * 7"); string(e.Result) != "42" {
			t.Errorf("a run in the spare child: got %s %s %s, want 42", e.Status, e.Result, Why(e))
		}
	}
	if _, err = OpenSession(i, p, short); !isFull(err) {
		t.Errorf("a start without a spare child: got %v, want FaultFull", err)
	}
	waiting := make(chan error)
	go func() {
		s, err := OpenSession(i, p, 30*time.Second)
		if err == nil {
			s.Close()
		}
		waiting <- err
	}()
	Must(t, unix.Kill(zygote, unix.SIGCONT))
	if err := <-waiting; err != nil {
		t.Errorf("a start that waited for the zygote: %v", err)
	}
}

// The extension is loaded before Python, which gets its first memory from it. Children
// do not see the variable that loaded it.
func TestExtensionIsPreloaded(t *testing.T) {
	t.Parallel()
	py, err := environment.Inspect(Python(t))
	Must(t, err)
	isBuilt := false
	for _, folder := range py.Packages {
		found, _ := filepath.Glob(filepath.Join(folder, "syscall_batch.*.so"))
		isBuilt = isBuilt || len(found) > 0
	}
	s := NewSession(t, Shared(t), nil)
	e := Run(t, s, `
import ctypes
class Place(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), *((name, ctypes.c_void_p) for name in ("base", "name", "address"))]
place, loaded = Place(), ctypes.CDLL(None)
loaded.dladdr(ctypes.cast(getattr(loaded, "__register_atfork"), ctypes.c_void_p), ctypes.byref(place))
"/syscall_batch." in place.file.decode()`)
	if string(e.Result) != strconv.FormatBool(isBuilt) {
		t.Errorf("the extension: got loaded %s (%s), want %v, as it is built", e.Result, Why(e), isBuilt)
	}
	if e := Run(t, s, "import os\n[name for name in os.environ if name.startswith('LD_')]"); string(e.Result) != "[]" {
		t.Errorf("variables of the loader: got %s %s, want none", e.Result, Why(e))
	}
}
