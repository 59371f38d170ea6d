package embedded

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// SetNice sets the nice value of the server's process with a pid. It does nothing without CAP_SYS_NICE, because the
// value could not be lowered again.
func (s *Server) SetNice(pid uint32, nice int) {
	if s.mayRenice && s.isOurs(int(pid)) {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, int(pid), nice) // else the process has just ended
	}
}

// mayRenice reports whether this process has CAP_SYS_NICE.
func mayRenice() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_NICE) != 0
}
