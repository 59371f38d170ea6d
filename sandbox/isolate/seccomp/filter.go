// Package seccomp builds the system call filters of user code and of the warm interpreters that bear its processes.
//
// The filter allows the calls that Python and its packages need. A call that the filter does
// not know fails with ENOSYS, so that libraries fall back to another call. A call that is
// known to be harmful fails with EPERM. The kernel kills a process that makes calls of
// another architecture.
package seccomp

import (
	"encoding/binary"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h). Arguments have 64 bits, and the low
// half comes first, because all supported architectures are little-endian.
const (
	dataNumber = 0
	dataArch   = 4
	dataArg0   = 16
	dataArg1   = 24
	dataArg2   = 32
	dataArg3   = 40
)

// x32Bit is set in the call numbers of the x32 ABI, which has the same audit architecture as
// amd64.
const x32Bit = 0x40000000

// OwnPID is a placeholder in a filter for the pid of the process that installs it. A child
// that is not PID 1 of its own namespace replaces it (lockdown.py). No pid is that large.
const OwnPID = 0x7fffffff

// Options are the differences between the filters of the levels.
type Options struct {
	SharedPIDNamespace bool // the process is not PID 1 of its own namespace
	SharedUID          bool // files of the machine have the process's uid, and only Landlock protects them
	NoSharedMemory     bool // no limit counts shared memory, so the process can't allocate it
	Network            bool // the process has a network namespace, in which it may be a TCP client
	Zygote             bool // the process forks guests, whose filters only take from its own: see bearGuests
	AssignedUIDs       bool // of a Zygote: the service gives each child a uid of the machine
}

// Build returns a filter as an array of struct sock_filter.
func Build(o Options) ([]byte, error) {
	program := append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: dataNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Bit, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
	}, rulesFor(o).compile(fail(unix.ENOSYS))...)
	raw, err := bpf.Assemble(program)
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

// rulesFor returns the rules of a filter. The first rule that is added for a call applies.
func rulesFor(o Options) rules {
	calls := rules{}
	if o.Zygote {
		bearGuests(calls, o)
	}
	if o.SharedUID {
		protectFiles(calls)
	}
	if o.Network {
		allowTCPClient(calls)
	}
	calls.add(allowOwnClocks, readsClock...)
	// A descriptor of the service's process is of no use to a guest.
	calls.add([]bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArg2, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SO_PEERPIDFD, SkipTrue: 1},
		allow,
		bpf.LoadAbsolute{Off: dataArg1, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOL_SOCKET, SkipTrue: 1},
		allow,
		eperm,
	}, unix.SYS_GETSOCKOPT)
	calls.add([]bpf.Instruction{allow}, allowed...)
	calls.add([]bpf.Instruction{eperm}, refused...)
	allowThreads(calls)
	// Only stream pairs are allowed, because a datagram socket could send to any path.
	calls.add(slices.Concat(require(dataArg0, allBits, bpf.JumpEqual, unix.AF_UNIX),
		require(dataArg1, socketTypeMask, bpf.JumpEqual, unix.SOCK_STREAM),
		[]bpf.Instruction{allow}), unix.SYS_SOCKETPAIR)
	calls.add(allowValues(dataArg0, ownAttributes...), unix.SYS_PRCTL)
	// Python makes these ioctl calls on files: TIOCGWINSZ, TCGETS, FIONBIO, FIOCLEX, FIONCLEX, FIONREAD.
	calls.add(allowValues(dataArg1, unix.TIOCGWINSZ, unix.TCGETS, 0x5421, 0x5451, 0x5450, 0x541b), unix.SYS_IOCTL)
	// A process may signal itself: PID 1 of its namespace, or its own pid.
	self := uint32(1)
	if o.SharedPIDNamespace {
		self = OwnPID
		// The process sets its own limits when it is assigned. It can't raise hard limits again.
		calls.add(allowValues(dataArg0, 0), unix.SYS_PRLIMIT64)
	}
	// SIGCONT would undo the SIGSTOP between runs, even while that is pending.
	for nr, signal := range map[int]uint32{unix.SYS_KILL: dataArg1, unix.SYS_TGKILL: dataArg2} {
		calls.add(slices.Concat(require(dataArg0, allBits, bpf.JumpEqual, self),
			require(signal, allBits, bpf.JumpNotEqual, uint32(unix.SIGCONT)), []bpf.Instruction{allow}), nr)
	}
	calls.add(
		allowValues(dataArg1, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_DUPFD,
			unix.F_DUPFD_CLOEXEC, unix.F_GETLK, unix.F_OFD_GETLK, unix.F_ADD_SEALS, unix.F_GET_SEALS),
		unix.SYS_FCNTL,
	)
	ignoreLocks(calls)
	// POSIX_FADV_DONTNEED would evict pages that all sandboxes read from the page cache.
	calls.add([]bpf.Instruction{succeed}, unix.SYS_FADVISE64)
	calls.add(mapMemory(o.NoSharedMemory), unix.SYS_MMAP)
	calls.add(allowValues(dataArg2, 0), unix.SYS_PRLIMIT64) // only to read limits
	return calls
}

// ownAttributes are the operations of prctl that user code may use.
var ownAttributes = []uint32{unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_VMA, unix.PR_GET_DUMPABLE,
	unix.PR_GET_NO_NEW_PRIVS, unix.PR_GET_SECCOMP, unix.PR_CAPBSET_READ}

// bearGuests adds what a zygote may do and a guest may not.
//
// The service allows a fork if it has asked for a guest, and then, at levels with a uid of the machine for each guest,
// the change to that uid (package zygote). The arguments of these calls are numbers, so they cannot change after the
// service has seen them. The other calls can only take rights from the process, or make memory.
func bearGuests(calls rules, o Options) {
	calls.add([]bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArg0, Size: 4}, // the flags
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: anyNamespace, SkipTrue: 3},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: sharesWithThread},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: sharesWithThread, SkipFalse: 1},
		allow,
		ask,
	}, unix.SYS_CLONE)
	identity := []int{unix.SYS_SETGROUPS, unix.SYS_SETRESGID, unix.SYS_SETRESUID}
	switch {
	case o.AssignedUIDs:
		calls.add([]bpf.Instruction{ask}, identity...)
	case !o.SharedPIDNamespace: // the user namespace of a guest has no other id, and that of the zygote gives no right
		calls.add([]bpf.Instruction{allow}, identity...)
	}
	if o.SharedPIDNamespace { // the pid of a guest is not known yet
		calls.add([]bpf.Instruction{ask}, unix.SYS_KILL, unix.SYS_TGKILL)
	}
	attributes := allowValues(dataArg0, append([]uint32{unix.PR_SET_SECCOMP, unix.PR_CAPBSET_DROP},
		ownAttributes...)...)
	// A child becomes not dumpable, and dies with its zygote; no process undoes that.
	dumpable := require(dataArg1, allBits, bpf.JumpEqual, 0)
	signal := require(dataArg1, allBits, bpf.JumpEqual, uint32(unix.SIGKILL))
	calls.add(slices.Concat([]bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PR_SET_DUMPABLE, SkipFalse: uint8(len(dumpable) + 1)},
	}, dumpable, []bpf.Instruction{allow,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PR_SET_PDEATHSIG, SkipFalse: uint8(len(signal) + 1)},
	}, signal, []bpf.Instruction{allow}, attributes), unix.SYS_PRCTL)
	calls.add(allowValues(dataArg0, 0), unix.SYS_PRLIMIT64)
	calls.add([]bpf.Instruction{allow}, unix.SYS_CAPSET, unix.SYS_CLOSE_RANGE, unix.SYS_WAIT4, unix.SYS_MEMFD_CREATE,
		unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF)
}

const (
	clockOfThread = 4 // in the kind of a clock
	// Threads must share descriptors, because the limit on open files counts per descriptor table.
	sharesWithThread = unix.CLONE_THREAD | unix.CLONE_VM | unix.CLONE_SIGHAND | unix.CLONE_FILES | unix.CLONE_FS
	anyNamespace     = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	allBits        = 0xffffffff
	socketTypeMask = 0xf // the other bits of a socket's type are flags
)

// allowOwnClocks is the rule of the calls that read a clock. A negative clock is a CPU time. Its low three bits are the
// kind, and above them is the inverted id of a process or thread; 0 is the caller. The kernel refuses threads of other
// processes, but tells everyone the CPU time of a process.
var allowOwnClocks = []bpf.Instruction{
	bpf.LoadAbsolute{Off: dataArg0, Size: 4},
	bpf.JumpIf{Cond: bpf.JumpLessThan, Val: 1 << 31, SkipTrue: 3},
	bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: clockOfThread, SkipTrue: 2},
	bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: 0xfffffff8, SkipTrue: 1},
	eperm,
	allow,
}

// mapMemory returns the rule of mmap. It refuses MAP_HUGETLB, because no limit counts the huge pages that the machine
// has
// reserved. With noShared it refuses shared memory without a file, which stays allocated, but is counted nowhere, after
// its pages are unmapped.
func mapMemory(noShared bool) []bpf.Instruction {
	const shared = unix.MAP_SHARED | unix.MAP_ANONYMOUS
	rule := []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArg3, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.MAP_HUGETLB, SkipFalse: 1},
		fail(unix.ENOMEM),
	}
	if noShared {
		rule = append(rule, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: shared},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: shared, SkipFalse: 1}, fail(unix.ENOMEM))
	}
	return append(rule, allow)
}

// allowThreads allows clone only to make threads. clone3 has its flags in memory, which a
// filter can't read. It fails with ENOSYS, so glibc falls back to clone.
func allowThreads(calls rules) {
	calls.add([]bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArg0, Size: 4}, // the flags
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: anyNamespace, SkipTrue: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: sharesWithThread},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: sharesWithThread, SkipFalse: 1},
		allow,
		fail(unix.EAGAIN), // like fork at the limit on processes
		eperm,
	}, unix.SYS_CLONE)
}

// protectFiles refuses changes to existing files that Landlock does not restrict: changes by
// path, and changes through a read-only descriptor. Changes of modes and times succeed without
// effect, because programs that copy files would fail on an error.
func protectFiles(calls rules) {
	calls.add([]bpf.Instruction{eperm}, unix.SYS_TRUNCATE)
	calls.add([]bpf.Instruction{succeed}, setsAttributes...)
	// Before ABI 3, Landlock allows O_RDONLY|O_TRUNC like an open for reading.
	for nr, flags := range opensFile {
		calls.add([]bpf.Instruction{
			bpf.LoadAbsolute{Off: flags, Size: 4},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.O_ACCMODE | unix.O_TRUNC},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.O_RDONLY | unix.O_TRUNC, SkipFalse: 1},
			eperm,
			allow,
		}, nr)
	}
}

// ignoreLocks makes the calls that lock a file succeed without effect. Sandboxes share files
// with each other and with the machine, so a lock could block other processes or transmit a
// message. A sandbox needs no lock for its own files, because no other process uses them.
func ignoreLocks(calls rules) {
	calls.add([]bpf.Instruction{succeed}, unix.SYS_FLOCK)
	fcntl := []bpf.Instruction{bpf.LoadAbsolute{Off: dataArg1, Size: 4}}
	for _, command := range []uint32{unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_SETLK, unix.F_OFD_SETLKW} {
		fcntl = append(fcntl, bpf.JumpIf{Cond: bpf.JumpEqual, Val: command, SkipFalse: 1}, succeed)
	}
	calls[unix.SYS_FCNTL] = append(fcntl, calls[unix.SYS_FCNTL]...)
}

// allowTCPClient allows making, configuring and connecting TCP sockets over IPv4 and IPv6.
//
// Code can't choose the sizes of a socket's buffers: no limit of a version 1 control group counts
// them, so the sysctls of the network namespace bound them. MSG_FASTOPEN is refused, because it
// connects a socket without connect, which is the only call where Landlock checks the port.
func allowTCPClient(calls rules) {
	for nr, flags := range map[int]uint32{unix.SYS_SENDTO: dataArg3, unix.SYS_SENDMSG: dataArg2} {
		calls.add([]bpf.Instruction{
			bpf.LoadAbsolute{Off: flags, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.MSG_FASTOPEN, SkipTrue: 1},
			allow,
			eperm,
		}, nr)
	}
	calls.add([]bpf.Instruction{allow}, unix.SYS_CONNECT)
	calls.add([]bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipFalse: 7},
		bpf.LoadAbsolute{Off: dataArg1, Size: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^uint32(unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC)},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipFalse: 4},
		bpf.LoadAbsolute{Off: dataArg2, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipFalse: 1}, // not SCTP, MPTCP or SMC
		allow,
		eperm,
	}, unix.SYS_SOCKET)
	socket := allowValues(dataArg2, unix.SO_KEEPALIVE, unix.SO_LINGER, unix.SO_REUSEADDR, unix.SO_RCVTIMEO,
		unix.SO_SNDTIMEO)
	tcp := allowValues(dataArg2, unix.TCP_NODELAY, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT,
		unix.TCP_USER_TIMEOUT, unix.TCP_QUICKACK)
	calls.add(slices.Concat([]bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArg1, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOL_SOCKET, SkipFalse: uint8(len(socket))},
	}, socket, []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipFalse: uint8(len(tcp))},
	}, tcp, []bpf.Instruction{eperm}), unix.SYS_SETSOCKOPT)
}
