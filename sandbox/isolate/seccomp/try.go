package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Try installs the strongest filter on a thread of this process, which then ends, and
// checks that the thread cannot make a socket.
func Try() error {
	program, err := Build(Options{})
	if err != nil {
		return err
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		done <- tryOnThread(program)
	}()
	return <-done
}

func tryOnThread(program []byte) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	fprog := unix.SockFprog{Len: uint16(len(program) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)), 0, 0); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0); errno != unix.EPERM {
		return errors.New("the filter was installed, but a socket can still be made")
	}
	return nil
}
