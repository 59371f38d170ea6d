package isolate

import (
	"fmt"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// needed are the capabilities that the service uses where it was started with
// them, as root: for the namespaces, mounts and id maps of zygotes, for control groups
// and limits of children, to run PostgreSQL as another user and to keep its files,
// and for a port below 1024.
var needed = []int{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_KILL, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETFCAP,
	unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_SETUID, unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_SYS_RESOURCE,
}

// Harden has the process give up what the service never needs, for good and for all
// that it starts: capabilities beyond the needed, new privileges by exec, and core
// files, which would hold keys. It replaces the process by itself, as these belong to
// threads, and must be called first in main, after Stage; where all is given up
// already, it returns. environ is what it starts again with. The error says what could
// not be given up. Its timers are coarse from then on, too.
func Harden(environ []string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("turn core files off: %w", err)
	}
	extra, finer := surplus(), coarsen()
	privileges, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if privileges == 1 && len(extra) == 0 && !finer {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	for _, c := range extra {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return fmt.Errorf("start again with less: %w", unix.Exec("/proc/self/exe", os.Args, environ))
}

// The timer slack of threads, in nanoseconds: how much later than asked for the kernel may wake
// them (PR_SET_TIMERSLACK(2const)). Go's runtime has a thread that looks after all others each 20 µs
// while there is work, and its idle threads wait 3 µs before they take what another is about
// to run: with the kernel's default of 50 µs that is a quarter of what a short run takes
// of the service's CPU. No timer of the service need be more exact than a millisecond.
const (
	slack      = 500_000
	slackUsual = 50_000
)

// coarsen has what this thread starts wake up with slack. True: it did not before.
func coarsen() bool {
	now := func() int {
		n, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		if err != nil {
			return slack
		}
		return n
	}
	if now() >= slack || unix.Prctl(unix.PR_SET_TIMERSLACK, slack, 0, 0, 0) != nil {
		return false
	}
	return now() >= slack // it is not where the thread is one of real time
}

// surplus are the capabilities that are not needed and that this process could use
// or pass on, and may drop; none where it has no privileges to drop with.
func surplus() []int {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil || data[0].Effective&(1<<unix.CAP_SETPCAP) == 0 {
		return nil
	}
	var extra []int
	for c := 0; ; c++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0)
		if err != nil { // the kernel knows no more
			return extra
		}
		if has == 1 && !slices.Contains(needed, c) {
			extra = append(extra, c)
		}
	}
}
