package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// Calls that arm64, which is newer, does not have.
var (
	allowedLegacy = []int{
		unix.SYS_OPEN, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_MKDIR,
		unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_CHMOD,
		unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT, unix.SYS_PIPE, unix.SYS_DUP2, unix.SYS_POLL,
		unix.SYS_SELECT, unix.SYS_EPOLL_CREATE, unix.SYS_EPOLL_WAIT, unix.SYS_EVENTFD, unix.SYS_GETPGRP,
		unix.SYS_TIME, unix.SYS_ALARM, unix.SYS_PAUSE, unix.SYS_GETRLIMIT, unix.SYS_ARCH_PRCTL, unix.SYS_GETDENTS,
		unix.SYS_CREAT,
	}
	setsAttributesLegacy = []int{unix.SYS_CHMOD, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}
	refusedLegacy        = []int{
		unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_MKNOD, unix.SYS_IOPL,
		unix.SYS_IOPERM, unix.SYS_MODIFY_LDT,
	}
)

// opensFile are the calls that open a file, with the offset of the argument that has
// their flags.
var opensFile = map[int]uint32{unix.SYS_OPEN: dataArg1, unix.SYS_OPENAT: dataArg2}
