package embedded

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// SetNice sets the nice value of the server's process with a pid. It does nothing without the capabilities to lower the
// value again.
func (s *Server) SetNice(pid uint32, nice int) {
	if !s.mayRenice || !s.isOurs(int(pid)) {
		return
	}
	// An error means that the process has just ended, or that the kernel has no autogroups.
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, int(pid), nice)
	// Each process of PostgreSQL is a session, for which the kernel makes an autogroup. In an autogroup, a nice value
	// counts among its processes only, and the autogroup has another one (sched(7), "The autogroup feature").
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(nice)), 0)
}

// mayRenice reports whether this process has CAP_SYS_NICE, and CAP_SYS_ADMIN: without it the kernel takes ten changes
// of autogroups a second.
func mayRenice() bool {
	const needed = 1<<unix.CAP_SYS_NICE | 1<<unix.CAP_SYS_ADMIN
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&needed == needed
}
