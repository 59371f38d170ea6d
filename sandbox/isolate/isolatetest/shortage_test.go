package isolatetest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/supervisor"
)

// When the descriptors for sandboxes are used up, a new session is refused at once with the reason, the others go on,
// and an ended one makes room again.
func TestShortageOfDescriptorsRefusesNewSessionsOnly(t *testing.T) {
	var files unix.Rlimit
	Must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &files))
	const room = 150 // descriptors that guests get
	reserve := int(files.Cur) - countDescriptors(t) - room
	i := Open(t, isolate.Config{
		MaxOpenIdle: 1, Descriptors: limit.NewDescriptors(reserve),
		WarmSets: []isolate.WarmSet{{Name: "bare", Modules: []string{}, Pool: 2}},
	})
	super := supervisor.New(i, time.Hour) // a caller that waited would wait too long for this test
	open := func() (*supervisor.Session, error) {
		return super.Open(context.Background(), sandbox.Sandbox{ID: "t", Policy: Policy()}, "")
	}
	var sessions []*supervisor.Session
	defer func() {
		for _, s := range sessions {
			s.Close()
		}
	}()
	var err error
	for err == nil {
		var s *supervisor.Session
		if s, err = open(); err == nil {
			sessions = append(sessions, s)
		}
		if len(sessions) > room {
			t.Fatalf("%d sessions have less than %d descriptors", len(sessions), room)
		}
	}
	if sandbox.FaultOf(err) != sandbox.FaultFull || !strings.Contains(err.Error(), "file descriptors of the service") ||
		!strings.Contains(err.Error(), "LimitNOFILE") {
		t.Errorf("a session too many: got %v, want %s with the remedy", err, sandbox.FaultFull)
	}
	if err := super.Full(""); sandbox.FaultOf(err) != sandbox.FaultFull {
		t.Errorf("Full: got %v, want %s", err, sandbox.FaultFull)
	}
	if len(sessions) < 5 {
		t.Errorf("%d descriptors hold %d sessions, want more", room, len(sessions))
	}
	for n, s := range sessions {
		if o := Run(t, s, "print('on')\n6 * 7"); string(o.Result) != "42" || o.Stdout != "on\n" {
			t.Errorf("session %d during the shortage: got %s, %q, %s", n, o.Result, o.Stdout, Why(o))
		}
	}
	for _, s := range sessions[:3] {
		s.Close()
	}
	sessions = sessions[3:]
	Eventually(t, "the shortage ends", func() bool {
		s, err := open()
		if err == nil {
			sessions = append(sessions, s)
		}
		return err == nil
	})
}

// Without a file descriptor the folder of a session cannot be removed. That is done when there are some again.
func TestFilesAreRemovedAfterAShortageOfDescriptors(t *testing.T) {
	var lines atomic.Int64
	work := searchableDir(t)
	i := Open(t, isolate.Config{WorkDir: filepath.Join(work, "work"), Log: func(format string, args ...any) {
		if strings.Contains(fmt.Sprintf(format, args...), "remove the files of a sandbox") {
			lines.Add(1)
		}
	}})
	if HasNamespaces() { // the files are in mounts, which end with the last process
		return
	}
	files := func() (found []string) {
		found, err := filepath.Glob(filepath.Join(work, "work", "sessions", "*", "session", "left*"))
		Must(t, err)
		return found
	}
	sessions := []*supervisor.Session{NewSession(t, i, nil), NewSession(t, i, nil)}
	for n, s := range sessions {
		if o := Run(t, s, fmt.Sprintf("open('left%d', 'w').close()", n)); o.Status != sandbox.StatusCompleted {
			t.Fatal(Why(o))
		}
	}
	if len(files()) != 2 {
		t.Fatalf("got the files %v, want two", files())
	}
	var limit unix.Rlimit
	Must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	Must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max}))
	for _, s := range sessions {
		s.Close()
	}
	late := i.LateCleanups()
	Must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	if late["folder"] != 2 || lines.Load() != 1 {
		t.Errorf("got %v late cleanups and %d lines in the log, want 2 folders and one line", late, lines.Load())
	}
	Eventually(t, "the files are removed", func() bool { return len(files()) == 0 && i.LateCleanups()["folder"] == 0 })
}

// The kernel refuses a namespace, a process or memory. The guest reports it as text.
func TestShortagesOfTheKernelAreNamed(t *testing.T) {
	for _, c := range []struct {
		errno  unix.Errno
		remedy string
	}{
		{unix.EMFILE, "LimitNOFILE"}, {unix.ENFILE, "fs.file-max"}, {unix.EAGAIN, "TasksMax"},
		{unix.ENOMEM, "MemoryMax"},
		{unix.ENOSPC, "user.max_*_namespaces"},
	} {
		text := c.errno.Error() // Python and the C library begin it with a capital letter
		for _, reported := range []error{c.errno, textError("fork: " + strings.ToUpper(text[:1]) + text[1:])} {
			err := isolate.AsShortage(reported)
			if sandbox.FaultOf(err) != sandbox.FaultFull || !strings.Contains(err.Error(), c.remedy) {
				t.Errorf("%v: got %v, want %s with %q", reported, err, sandbox.FaultFull, c.remedy)
			}
		}
	}
	other := textError("the guest sent nothing")
	if err := isolate.AsShortage(other); err != other {
		t.Errorf("another error: got %v, want it unchanged", err)
	}
}

type textError string

func (e textError) Error() string { return string(e) }
