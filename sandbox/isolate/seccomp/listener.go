package seccomp

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Call is a system call that a filter leaves to its listener.
type Call struct {
	TID    int // of the calling thread, in this process's pid namespace
	Number int
	Args   [6]uint64
}

// Answer calls allows for each call that waits for the listener, until all processes with the filter have ended. A call
// that it does not allow fails with EPERM. Answer closes the listener.
//
// The kernel makes an allowed call with the arguments that allows has seen, but reads memory that they point to later.
func Answer(listener *os.File, allows func(Call) bool) error {
	defer listener.Close()
	raw, err := listener.SyscallConn()
	if err != nil {
		return err
	}
	for gone := false; !gone; {
		waitErr := raw.Read(func(fd uintptr) bool {
			gone, err = answerNext(int(fd), allows)
			return err != errNoneWaits
		})
		if err = errors.Join(waitErr, err); err != nil {
			return err
		}
	}
	return nil
}

const errNoneWaits = unix.EAGAIN

// notification and answer are struct seccomp_notif and struct seccomp_notif_resp of linux/seccomp.h.
type notification struct {
	id         uint64
	tid, flags uint32
	number     int32
	arch       uint32
	pointer    uint64
	args       [6]uint64
}

type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// answerNext answers a call, or returns errNoneWaits. gone says that there will be none.
func answerNext(fd int, allows func(Call) bool) (gone bool, err error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, 0); err != nil {
		if err == unix.EINTR {
			return false, nil
		}
		return false, err
	}
	if fds[0].Revents&unix.POLLIN == 0 { // to receive would block
		if fds[0].Revents != 0 {
			return true, nil
		}
		return false, errNoneWaits
	}
	var n notification
	if err := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != 0 {
		if err == unix.ENOENT || err == unix.EINTR { // the caller was killed meanwhile
			return false, nil
		}
		return false, err
	}
	reply := answer{id: n.id, errno: -int32(unix.EPERM)}
	if allows(Call{TID: int(n.tid), Number: int(n.number), Args: n.args}) {
		reply = answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	}
	if err := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&reply)); err != 0 && err != unix.ENOENT {
		return false, err
	}
	return false, nil
}

func ioctl(fd int, request uint, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(argument))
	return errno
}
