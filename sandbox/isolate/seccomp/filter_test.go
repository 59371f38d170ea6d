package seccomp

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// evaluate runs a filter on a call as the kernel does (seccomp's subset of classic BPF). It
// returns the answer, and the number of instructions that were executed.
func evaluate(t *testing.T, program []byte, arch, nr uint32, args ...uint64) (answer uint32, steps int) {
	t.Helper()
	data := make([]byte, 64) // struct seccomp_data
	binary.NativeEndian.PutUint32(data, nr)
	binary.NativeEndian.PutUint32(data[4:], arch)
	for i, arg := range args {
		binary.NativeEndian.PutUint64(data[16+8*i:], arg)
	}
	var acc uint32
	for pc := 0; ; pc++ {
		at := program[8*pc:]
		op, jt, jf, k := binary.NativeEndian.Uint16(at), int(at[2]), int(at[3]), binary.NativeEndian.Uint32(at[4:])
		jump := func(yes bool) {
			if yes {
				pc += jt
			} else {
				pc += jf
			}
		}
		steps++
		switch op {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = binary.NativeEndian.Uint32(data[k:])
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= k
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(k)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(acc == k)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(acc >= k)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(acc > k)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(acc&k != 0)
		case unix.BPF_RET | unix.BPF_K:
			return k, steps
		default:
			t.Fatalf("instruction %d: unknown operation %#x", pc, op)
		}
	}
}

// cpuClock returns the clock of the CPU time of a process or thread (linux/posix-timers_types.h).
func cpuClock(pid int32, kind uint32) uint64 { return uint64(uint32(^pid)<<3 | kind) }

func TestFilterAnswersEveryCall(t *testing.T) {
	const (
		allow, kill          = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_KILL_PROCESS
		succeed              = unix.SECCOMP_RET_ERRNO
		eperm, enosys, again = succeed | uint32(
			unix.EPERM,
		), succeed | uint32(
			unix.ENOSYS,
		), succeed | uint32(
			unix.EAGAIN,
		)
	)
	// The answers to these depend on their arguments: see below.
	byArguments := []int{
		unix.SYS_CLONE,
		unix.SYS_SOCKETPAIR,
		unix.SYS_PRCTL,
		unix.SYS_IOCTL,
		unix.SYS_KILL,
		unix.SYS_TGKILL,
		unix.SYS_FCNTL,
		unix.SYS_PRLIMIT64,
		unix.SYS_MMAP,
		unix.SYS_GETSOCKOPT,
	}
	thread := uint64(unix.CLONE_THREAD | unix.CLONE_VM | unix.CLONE_SIGHAND | unix.CLONE_FILES | unix.CLONE_FS)
	for name, options := range map[string]Options{
		"full":             {},
		"network":          {Network: true},
		"no shared memory": {NoSharedMemory: true},
		"shared":           {SharedPIDNamespace: true},
		"one uid":          {SharedPIDNamespace: true, SharedUID: true},
		"one uid, network": {SharedPIDNamespace: true, SharedUID: true, Network: true},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := Build(options)
			if err != nil {
				t.Fatal(err)
			}
			is := func(want uint32, nr int, args ...uint64) {
				t.Helper()
				if got, _ := evaluate(t, program, auditArch, uint32(nr), args...); got != want {
					t.Errorf("call %d%v: got %#x, want %#x", nr, args, got, want)
				}
			}
			most := 0
			for nr := range 1000 {
				want := uint32(enosys)
				switch {
				case slices.Contains(byArguments, nr):
					continue
				case options.SharedUID && opensFile[nr] != 0, slices.Contains(readsClock, nr):
					continue
				case options.SharedUID && nr == unix.SYS_TRUNCATE:
					want = eperm
				case options.SharedUID && slices.Contains(setsAttributes, nr):
					want = succeed
				case options.Network && slices.Contains([]int{unix.SYS_SOCKET, unix.SYS_SETSOCKOPT, unix.SYS_SENDTO,
					unix.SYS_SENDMSG}, nr):
					continue
				case slices.Contains(allowed, nr), options.Network && nr == unix.SYS_CONNECT:
					want = allow
				case slices.Contains(refused, nr):
					want = eperm
				case nr == unix.SYS_FLOCK, nr == unix.SYS_FADVISE64:
					want = succeed
				}
				is(want, nr)
				_, steps := evaluate(t, program, auditArch, uint32(nr))
				most = max(most, steps)
			}
			if most > 24 {
				t.Errorf("instructions for one call: got %d, want at most the 24 of a binary search", most)
			}
			is(allow, unix.SYS_CLONE, thread|unix.CLONE_SYSVSEM)
			is(again, unix.SYS_CLONE, uint64(unix.SIGCHLD))
			is(eperm, unix.SYS_CLONE, thread|unix.CLONE_NEWUSER)
			is(again, unix.SYS_CLONE, thread&^unix.CLONE_FILES)
			is(again, unix.SYS_CLONE, thread&^unix.CLONE_FS)
			is(allow, unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC)
			is(eperm, unix.SYS_SOCKETPAIR, unix.AF_INET, unix.SOCK_STREAM)
			is(eperm, unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC)
			is(allow, unix.SYS_MMAP, 0, 4096, 3, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
			is(
				succeed|uint32(unix.ENOMEM),
				unix.SYS_MMAP,
				0,
				4096,
				3,
				unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_HUGETLB,
			)
			sharing := uint32(allow)
			if options.NoSharedMemory {
				sharing = succeed | uint32(unix.ENOMEM)
			}
			is(sharing, unix.SYS_MMAP, 0, 4096, 3, unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
			is(allow, unix.SYS_MMAP, 0, 4096, 3, unix.MAP_SHARED, 4)
			is(allow, unix.SYS_PRCTL, unix.PR_SET_NAME)
			is(allow, unix.SYS_FCNTL, 3, unix.F_GETLK)
			is(succeed, unix.SYS_FCNTL, 3, unix.F_SETLK)
			is(succeed, unix.SYS_FCNTL, 3, unix.F_OFD_SETLKW)
			is(eperm, unix.SYS_PRCTL, unix.PR_SET_SECCOMP)
			is(allow, unix.SYS_IOCTL, 1, unix.TIOCGWINSZ)
			is(eperm, unix.SYS_IOCTL, 1, unix.TIOCSTI)
			is(allow, unix.SYS_FCNTL, 1, unix.F_DUPFD_CLOEXEC)
			is(eperm, unix.SYS_FCNTL, 1, unix.F_SETOWN)
			self, limited := uint64(1), uint32(eperm)
			if options.SharedPIDNamespace {
				self, limited = OwnPID, allow
			}
			is(allow, unix.SYS_KILL, self, uint64(unix.SIGTERM))
			is(eperm, unix.SYS_KILL, self, uint64(unix.SIGCONT))
			is(allow, unix.SYS_TGKILL, self, uint64(unix.SIGCONT), uint64(unix.SIGTERM))
			is(eperm, unix.SYS_TGKILL, self, 2, uint64(unix.SIGCONT))
			for _, nr := range []int{unix.SYS_KILL, unix.SYS_TGKILL} {
				is(allow, nr, self)
				is(eperm, nr, self+1)
				is(eperm, nr, 0)
			}
			is(allow, unix.SYS_GETSOCKOPT, 3, unix.SOL_SOCKET, unix.SO_TYPE)
			is(allow, unix.SYS_GETSOCKOPT, 3, unix.IPPROTO_TCP, unix.SO_PEERPIDFD)
			is(eperm, unix.SYS_GETSOCKOPT, 3, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
			for _, nr := range readsClock {
				is(allow, nr, unix.CLOCK_PROCESS_CPUTIME_ID)
				is(allow, nr, cpuClock(0, 2))   // of this process
				is(allow, nr, cpuClock(0, 2|4)) // of this thread
				is(allow, nr, cpuClock(4_000_000, 2|4))
				is(eperm, nr, cpuClock(1, 2))
				is(eperm, nr, cpuClock(4_000_000, 0))
			}
			is(limited, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, 1<<40+8) // a new limit for itself
			is(eperm, unix.SYS_PRLIMIT64, 7, unix.RLIMIT_NOFILE, 1<<40+8)
			if options.Network {
				is(allow, unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
				is(eperm, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0)
				is(eperm, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP)
				is(eperm, unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0)
				is(allow, unix.SYS_SETSOCKOPT, 4, unix.IPPROTO_TCP, unix.TCP_NODELAY)
				is(eperm, unix.SYS_SETSOCKOPT, 4, unix.IPPROTO_TCP, unix.TCP_ULP)
				is(eperm, unix.SYS_SETSOCKOPT, 4, unix.SOL_SOCKET, unix.SO_BINDTODEVICE)
				for _, o := range []uint64{unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE} {
					is(eperm, unix.SYS_SETSOCKOPT, 4, unix.SOL_SOCKET, o)
				}
				is(eperm, unix.SYS_SETSOCKOPT, 4, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT)
				is(allow, unix.SYS_SENDTO, 4, 0, 0, unix.MSG_NOSIGNAL)
				is(eperm, unix.SYS_SENDTO, 4, 0, 0, unix.MSG_NOSIGNAL|unix.MSG_FASTOPEN)
				is(allow, unix.SYS_SENDMSG, 4, 0, unix.MSG_NOSIGNAL)
				is(eperm, unix.SYS_SENDMSG, 4, 0, unix.MSG_NOSIGNAL|unix.MSG_FASTOPEN)
			} else {
				is(eperm, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0)
			}
			if options.SharedUID {
				is(allow, unix.SYS_OPENAT, 0, 0, unix.O_WRONLY|unix.O_TRUNC)
				is(eperm, unix.SYS_OPENAT, 0, 0, unix.O_RDONLY|unix.O_TRUNC)
			}
			if got, _ := evaluate(t, program, auditArch, x32Bit|unix.SYS_READ); got != kill {
				t.Errorf("a call of the x32 ABI: got %#x, want %#x", got, uint32(kill))
			}
			if got, _ := evaluate(t, program, auditArch^1, unix.SYS_READ); got != kill {
				t.Errorf("a call of another architecture: got %#x, want %#x", got, uint32(kill))
			}
		})
	}
}
