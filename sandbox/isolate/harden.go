package isolate

import (
	"fmt"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// neededCapabilities are the capabilities that a service needs if it was started as root:
// for the namespaces, mounts and id maps of zygotes, for control groups and limits of
// children, to run PostgreSQL as another user, write its files and divide its CPU time, and for a port below 1024.
var neededCapabilities = []int{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_KILL, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETFCAP,
	unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_SETUID, unix.CAP_SYS_ADMIN, unix.CAP_SYS_NICE, unix.CAP_SYS_PTRACE,
	unix.CAP_SYS_RESOURCE,
}

// Harden permanently drops privileges that the service and its children never need: all
// capabilities except neededCapabilities, new privileges by exec, and core files, which
// would contain keys. It also makes timers coarse (timerSlack).
//
// These settings belong to threads, so Harden runs the binary again, with environ, unless
// all of them are already set. main must call it first, after RunLauncher. The error says
// which privilege could not be dropped.
func Harden(environ []string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("turn core files off: %w", err)
	}
	surplus, isCoarser := surplusCapabilities(), setTimerSlack()
	noNewPrivs, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if noNewPrivs == 1 && len(surplus) == 0 && !isCoarser {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	for _, c := range surplus {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
			return fmt.Errorf("drop the capability %d: %w", c, err)
		}
	}
	return fmt.Errorf("run the service again with fewer privileges: %w", unix.Exec("/proc/self/exe", os.Args, environ))
}

// timerSlack is the delay, in nanoseconds, with which the kernel may wake a thread
// (PR_SET_TIMERSLACK(2const)). Go's runtime has a thread that checks all others each 20 µs
// while there is work, and its idle threads sleep 3 µs before they steal work. With the
// kernel's default slack of 50 µs, these wake-ups take a quarter of the service's CPU time
// for a short run. The service needs no timer more exact than a millisecond.
const timerSlack = 500_000

// setTimerSlack sets the timer slack of the threads that this thread starts. It reports
// whether that changed anything.
func setTimerSlack() bool {
	current := func() int {
		n, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		if err != nil {
			return timerSlack
		}
		return n
	}
	if current() >= timerSlack || unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0) != nil {
		return false
	}
	return current() >= timerSlack // false for a real-time thread, which has no slack
}

// surplusCapabilities returns the capabilities that this process has, does not need, and
// may drop.
func surplusCapabilities() []int {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil || data[0].Effective&(1<<unix.CAP_SETPCAP) == 0 {
		return nil
	}
	var surplus []int
	for c := 0; ; c++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0)
		if err != nil { // the kernel has no more capabilities
			return surplus
		}
		if has == 1 && !slices.Contains(neededCapabilities, c) {
			surplus = append(surplus, c)
		}
	}
}
