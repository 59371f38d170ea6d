package isolate

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// shortageKind is something of the machine that a new process needs and that can run out.
type shortageKind struct {
	cause  error  // of the kernel, or of package limit
	what   string // is used up
	remedy string // for the operator
}

// shortageKinds is in this order because the text of ENFILE begins with that of EMFILE.
var shortageKinds = []shortageKind{
	{limit.ErrNoDescriptors, "file descriptors of the service", descriptorsRemedy},
	{unix.ENFILE, "file descriptors of the machine", "the operator can raise the sysctl fs.file-max"},
	{unix.EMFILE, "file descriptors of the service", descriptorsRemedy},
	{errNoTasks, "processes and threads", tasksRemedy},
	{unix.EAGAIN, "processes and threads", tasksRemedy},
	{unix.ENOMEM, "parts of the machine's memory", "the operator can give the service more memory (MemoryMax in " +
		"systemd, the memory limit of a container)"},
	{unix.ENOSPC, "namespaces, mounts or control groups of the machine", "the operator can raise the sysctls " +
		"user.max_*_namespaces and fs.mount-max"},
}

const (
	descriptorsRemedy = "the operator can raise the hard limit of open files (LimitNOFILE in systemd, ulimit -Hn, " +
		"--ulimit nofile of a container)"
	tasksRemedy = "the operator can raise the limit of processes (TasksMax in systemd, the pids limit of a " +
		"container, ulimit -u, the sysctl kernel.pid_max)"
)

// errShortage is in the chain of every error that AsShortage makes, and errNoTasks is one of its causes.
var (
	errShortage = errors.New("something of the machine has run out")
	errNoTasks  = errors.New("the reserve of processes and threads is not used for sandboxes")
)

// AsShortage returns FaultFull, with the remedy, if err says that something of the machine has run out. Any other
// error is returned as it is. A guest and a zygote report the kernel's errors as text.
func AsShortage(err error) error {
	if _, isKnown := errors.AsType[*sandbox.Error](err); err == nil || isKnown {
		return err
	}
	text := strings.ToLower(err.Error())
	for _, s := range shortageKinds {
		if errors.Is(err, s.cause) || strings.Contains(text, s.cause.Error()) {
			return &sandbox.Error{
				Fault: sandbox.FaultFull, RetryAfter: 5, Cause: errors.Join(errShortage, err),
				Detail: "no " + s.what + " are left for another sandbox: try again when others have ended; " +
					s.remedy,
			}
		}
	}
	return err
}

// shortage is the last reason why a pool could not make a process, while it lasts. The zero value is ready to use.
type shortage struct {
	last atomic.Pointer[sandbox.Error]

	mu      sync.Mutex
	changed chan struct{} // closed when a shortage begins; nil: nobody waits
}

// note remembers the outcome of making a process: err, or nil if it was made. It ignores an error that is not a
// shortage.
func (s *shortage) note(err error) {
	if err == nil {
		s.last.Store(nil)
		return
	}
	found, _ := errors.AsType[*sandbox.Error](err)
	if !errors.Is(err, errShortage) || s.last.Swap(found) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// begins returns a channel that is closed when a shortage begins.
func (s *shortage) begins() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}
