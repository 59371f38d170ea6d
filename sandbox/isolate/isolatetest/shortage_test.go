package isolatetest

import (
	"context"
	"strings"
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
			Must(t, s.Close())
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
		Must(t, s.Close())
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
