package isolate

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// judge runs a filter on a call as the kernel does (seccomp's subset of classic BPF);
// it also says how many instructions that took.
func judge(t *testing.T, program []byte, arch, nr uint32, args ...uint64) (verdict uint32, steps int) {
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

func TestFilterJudgesEveryCall(t *testing.T) {
	const (
		allow, kill          = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_KILL_PROCESS
		nothing              = unix.SECCOMP_RET_ERRNO
		eperm, enosys, again = nothing | uint32(unix.EPERM), nothing | uint32(unix.ENOSYS), nothing | uint32(unix.EAGAIN)
	)
	// What depends on arguments, and is told apart below.
	special := []int{unix.SYS_CLONE, unix.SYS_SOCKETPAIR, unix.SYS_PRCTL, unix.SYS_IOCTL, unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_FCNTL, unix.SYS_PRLIMIT64, unix.SYS_MMAP}
	thread := uint64(unix.CLONE_THREAD | unix.CLONE_VM | unix.CLONE_SIGHAND | unix.CLONE_FILES | unix.CLONE_FS)
	for name, shape := range map[string]filterShape{
		"full": {}, "network": {network: true}, "shared": {shared: true}, "one uid": {shared: true, oneUID: true}, "one uid, network": {shared: true, oneUID: true, network: true},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := filterOf(shape)
			if err != nil {
				t.Fatal(err)
			}
			is := func(want uint32, nr int, args ...uint64) {
				t.Helper()
				if got, _ := judge(t, program, auditArch, uint32(nr), args...); got != want {
					t.Errorf("call %d%v: %#x, not %#x", nr, args, got, want)
				}
			}
			most := 0
			for nr := range 1000 {
				want := uint32(enosys)
				switch {
				case slices.Contains(special, nr):
					continue
				case shape.oneUID && opens[nr] != 0:
					continue
				case shape.oneUID && nr == unix.SYS_TRUNCATE:
					want = eperm
				case shape.oneUID && slices.Contains(attributes, nr):
					want = nothing
				case shape.network && (nr == unix.SYS_SOCKET || nr == unix.SYS_SETSOCKOPT):
					continue
				case slices.Contains(allowed, nr), shape.network && nr == unix.SYS_CONNECT:
					want = allow
				case slices.Contains(refused, nr):
					want = eperm
				case nr == unix.SYS_FLOCK, nr == unix.SYS_FADVISE64:
					want = nothing
				}
				is(want, nr)
				_, steps := judge(t, program, auditArch, uint32(nr))
				most = max(most, steps)
			}
			if most > 24 {
				t.Errorf("a call takes %d instructions: more than a binary search", most)
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
			is(nothing|uint32(unix.ENOMEM), unix.SYS_MMAP, 0, 4096, 3, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_HUGETLB)
			is(allow, unix.SYS_PRCTL, unix.PR_SET_NAME)
			is(allow, unix.SYS_FCNTL, 3, unix.F_GETLK)
			is(nothing, unix.SYS_FCNTL, 3, unix.F_SETLK)
			is(nothing, unix.SYS_FCNTL, 3, unix.F_OFD_SETLKW)
			is(eperm, unix.SYS_PRCTL, unix.PR_SET_SECCOMP)
			is(allow, unix.SYS_IOCTL, 1, unix.TIOCGWINSZ)
			is(eperm, unix.SYS_IOCTL, 1, unix.TIOCSTI)
			is(allow, unix.SYS_FCNTL, 1, unix.F_DUPFD_CLOEXEC)
			is(eperm, unix.SYS_FCNTL, 1, unix.F_SETOWN)
			self, limited := uint64(1), uint32(eperm)
			if shape.shared {
				self, limited = ownPID, allow
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
			is(limited, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, 1<<40+8) // its own, a new one
			is(eperm, unix.SYS_PRLIMIT64, 7, unix.RLIMIT_NOFILE, 1<<40+8)
			if shape.network {
				is(allow, unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
				is(eperm, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0)
				is(eperm, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP)
				is(eperm, unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0)
				is(allow, unix.SYS_SETSOCKOPT, 4, unix.IPPROTO_TCP, unix.TCP_NODELAY)
				is(eperm, unix.SYS_SETSOCKOPT, 4, unix.IPPROTO_TCP, unix.TCP_ULP)
				is(eperm, unix.SYS_SETSOCKOPT, 4, unix.SOL_SOCKET, unix.SO_BINDTODEVICE)
			} else {
				is(eperm, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0)
			}
			if shape.oneUID {
				is(allow, unix.SYS_OPENAT, 0, 0, unix.O_WRONLY|unix.O_TRUNC)
				is(eperm, unix.SYS_OPENAT, 0, 0, unix.O_RDONLY|unix.O_TRUNC)
			}
			if got, _ := judge(t, program, auditArch, 0x40000000|unix.SYS_READ); got != kill {
				t.Errorf("a call of the x32 ABI: %#x", got)
			}
			if got, _ := judge(t, program, auditArch^1, unix.SYS_READ); got != kill {
				t.Errorf("a call of another architecture: %#x", got)
			}
		})
	}
}
