package isolate

import (
	"encoding/binary"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h); arguments are 64 bit, and
// the low half comes first on the little-endian machines that we run on.
const (
	dataNumber = 0
	dataArch   = 4
	dataArg0   = 16
	dataArg1   = 24
	dataArg2   = 32
	dataArg3   = 40
)

// The filters that a zygote is given, by the name that Enter chooses one with.
const (
	filterPlain   = "plain"
	filterNetwork = "network"
)

// ownPID stands in a filter for the process that it is put on: the child fills it
// in, where it is not PID 1 of a namespace of its own. No pid is as large.
const ownPID = 0x7fffffff

// filterShape says where a filter differs from level to level.
type filterShape struct {
	shared bool // the pid namespace is not its own: PID 1 is not us
	oneUID bool // the files of others have the same uid, and only Landlock is between

	network bool // the child has a network of its own, and may be a TCP client there
}

// Filter builds the system call filter of user code on the strongest level.
func Filter() ([]byte, error) { return filterOf(filterShape{}) }

// filterOf builds the system call filter of user code, as the bytes of a
// struct sock_filter array. What it does not know gets ENOSYS, so that libraries
// fall back; what is known to be bad gets EPERM; a foreign ABI kills.
func filterOf(shape filterShape) ([]byte, error) {
	deny := func(errno unix.Errno) bpf.Instruction {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	// With descriptors of its own a thread would have as many again as the limit allows.
	const thread = unix.CLONE_THREAD | unix.CLONE_VM | unix.CLONE_SIGHAND | unix.CLONE_FILES | unix.CLONE_FS
	const fresh = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	calls := verdicts{}
	if shape.oneUID {
		ofOthers(calls)
	}
	calls.add([]bpf.Instruction{allow}, allowed...)
	if shape.network {
		tcpClient(calls)
	}
	calls.add([]bpf.Instruction{deny(unix.EPERM)}, refused...)
	calls.add([]bpf.Instruction{ // threads only; the flags are argument 0
		bpf.LoadAbsolute{Off: dataArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: fresh, SkipTrue: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: thread},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: thread, SkipFalse: 1},
		allow,
		deny(unix.EAGAIN), // as where a limit on processes is reached
		deny(unix.EPERM),
	}, unix.SYS_CLONE)
	// Of streams, which are connected for good: a datagram may be sent to any path.
	const kinds, all = 0xf, 0xffffffff
	calls.add(slices.Concat(must(dataArg0, all, bpf.JumpEqual, unix.AF_UNIX), must(dataArg1, kinds, bpf.JumpEqual, unix.SOCK_STREAM), []bpf.Instruction{allow}), unix.SYS_SOCKETPAIR)
	calls.add(among(dataArg0, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_VMA, unix.PR_GET_DUMPABLE, unix.PR_GET_NO_NEW_PRIVS, unix.PR_GET_SECCOMP, unix.PR_CAPBSET_READ), unix.SYS_PRCTL)
	// TIOCGWINSZ, TCGETS, FIONBIO, FIOCLEX, FIONCLEX, FIONREAD: what Python asks of files.
	calls.add(among(dataArg1, unix.TIOCGWINSZ, unix.TCGETS, 0x5421, 0x5451, 0x5450, 0x541b), unix.SYS_IOCTL)
	// A signal may be sent to oneself: PID 1 of this namespace, or a thread of it.
	self := uint32(1)
	if shape.shared {
		self = ownPID
		// Its own limits come at its assignment, by its own hand; it can't raise them again.
		calls.add(among(dataArg0, 0), unix.SYS_PRLIMIT64)
	}
	// SIGCONT would undo the stop between runs, even while it is on its way.
	for nr, signal := range map[int]uint32{unix.SYS_KILL: dataArg1, unix.SYS_TGKILL: dataArg2} {
		calls.add(slices.Concat(must(dataArg0, all, bpf.JumpEqual, self), must(signal, all, bpf.JumpNotEqual, uint32(unix.SIGCONT)), []bpf.Instruction{allow}), nr)
	}
	calls.add(among(dataArg1, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_DUPFD, unix.F_DUPFD_CLOEXEC,
		unix.F_GETLK, unix.F_OFD_GETLK, 1033, 1034), unix.SYS_FCNTL)
	locks(calls)
	// The cache is everybody's: nobody empties it of what all read.
	calls.add([]bpf.Instruction{bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO}}, unix.SYS_FADVISE64)
	// Huge pages that the host set aside are counted nowhere.
	calls.add([]bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArg3, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.MAP_HUGETLB, SkipFalse: 1},
		deny(unix.ENOMEM),
		allow,
	}, unix.SYS_MMAP)
	calls.add(among(dataArg2, 0), unix.SYS_PRLIMIT64) // read only: no new limit
	prog := append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: dataNumber, Size: 4},
		// The x32 ABI shares the architecture and sets this bit.
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: 0x40000000, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
	}, calls.tree(deny(unix.ENOSYS))...)
	raw, err := bpf.Assemble(prog)
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, r := range raw {
		out = binary.NativeEndian.AppendUint16(out, r.Op)
		out = append(out, r.Jt, r.Jf)
		out = binary.NativeEndian.AppendUint32(out, r.K)
	}
	return out, nil
}

// ofOthers is for what Landlock does not hold back: changes to files that are there,
// by path, or by a descriptor that only reads. Modes and times stay as they are, and
// the calls say that all is well: copying a file would fail on them otherwise.
func ofOthers(calls verdicts) {
	deny := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	calls.add([]bpf.Instruction{deny}, unix.SYS_TRUNCATE)
	calls.add([]bpf.Instruction{bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO}}, attributes...)
	// An open for reading that truncates: older Landlocks see the reading only.
	for nr, flags := range opens {
		calls.add([]bpf.Instruction{
			bpf.LoadAbsolute{Off: flags, Size: 4},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.O_ACCMODE | unix.O_TRUNC},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.O_RDONLY | unix.O_TRUNC, SkipFalse: 1},
			deny,
			bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
		}, nr)
	}
}

// locks has the calls that lock a file say that all is well, and do nothing: files that
// sandboxes share with each other and the host could be locked against these, or tell
// things by what is locked. In its own a sandbox is the only process.
func locks(calls verdicts) {
	well := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO}
	calls.add([]bpf.Instruction{well}, unix.SYS_FLOCK)
	fcntl := []bpf.Instruction{bpf.LoadAbsolute{Off: dataArg1, Size: 4}}
	for _, command := range []uint32{unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_SETLK, unix.F_OFD_SETLKW} {
		fcntl = append(fcntl, bpf.JumpIf{Cond: bpf.JumpEqual, Val: command, SkipFalse: 1}, well)
	}
	calls[unix.SYS_FCNTL] = append(fcntl, calls[unix.SYS_FCNTL]...)
}

// attributes are the calls that change a file's mode or times.
var attributes = append([]int{unix.SYS_FCHMODAT, unix.SYS_FCHMOD, unix.SYS_UTIMENSAT}, attributesLegacy...)

// among allows the call at hand where the 32 low bits of an argument have one of
// the values, and answers EPERM otherwise.
func among(arg uint32, values ...uint32) []bpf.Instruction {
	n := uint8(len(values))
	prog := []bpf.Instruction{bpf.LoadAbsolute{Off: arg, Size: 4}}
	for i, v := range values {
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: n - uint8(i)})
	}
	return append(prog,
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	)
}

// must goes on with what follows where the bits of mask in an argument's low half are, or
// are not, a value, and answers EPERM otherwise.
func must(arg, mask uint32, is bpf.JumpTest, value uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: arg, Size: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask},
		bpf.JumpIf{Cond: is, Val: value, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
	}
}

// allowed are the calls that Python, numpy, pandas, matplotlib and pyarrow need;
// none reaches beyond the process and its files.
var allowed = append([]int{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_LSEEK, unix.SYS_MPROTECT, unix.SYS_MUNMAP, unix.SYS_BRK,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGTIMEDWAIT,
	unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREADV, unix.SYS_PWRITEV, unix.SYS_SENDFILE, unix.SYS_COPY_FILE_RANGE,
	unix.SYS_SCHED_YIELD, unix.SYS_MREMAP, unix.SYS_MSYNC, unix.SYS_MINCORE, unix.SYS_MADVISE, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETPPID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETGROUPS, unix.SYS_GETRESUID, unix.SYS_GETRESGID,
	unix.SYS_GETPGID, unix.SYS_GETSID, unix.SYS_UMASK, unix.SYS_UNAME, unix.SYS_GETRUSAGE, unix.SYS_TIMES, unix.SYS_SYSINFO,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_FUTEX, unix.SYS_SET_ROBUST_LIST, unix.SYS_GET_ROBUST_LIST, unix.SYS_SET_TID_ADDRESS, unix.SYS_RSEQ, unix.SYS_MEMBARRIER,
	unix.SYS_GETTIMEOFDAY, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETITIMER, unix.SYS_SETITIMER,
	unix.SYS_GETRANDOM, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_GETPRIORITY, unix.SYS_GETCPU,
	unix.SYS_OPENAT, unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT, unix.SYS_GETDENTS64, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCHDIR,
	unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_UTIMENSAT,
	unix.SYS_FTRUNCATE, unix.SYS_TRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_STATFS, unix.SYS_FSTATFS,
	unix.SYS_PIPE2, unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_RESTART_SYSCALL,
	// On the hatch and on socket pairs; no other socket can be made.
	unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SHUTDOWN, unix.SYS_GETSOCKOPT, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME,
}, allowedLegacy...)

// refused are known to be of no good to user code: an honest EPERM, rather than
// the ENOSYS that makes libraries look for another way.
var refused = append([]int{
	unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_SETSOCKOPT, unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID, unix.SYS_SETGROUPS,
	unix.SYS_CAPSET, unix.SYS_SETRLIMIT, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_MKNODAT, unix.SYS_REBOOT, unix.SYS_SETHOSTNAME, unix.SYS_SECCOMP, unix.SYS_USERFAULTFD,
	unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_MEMFD_CREATE, unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SETPRIORITY,
}, refusedLegacy...)
