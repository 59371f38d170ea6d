package isolate

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probeFilter puts the filter on a thread of this process and sees that it holds.
func probeFilter() error {
	raw, err := Filter()
	if err != nil {
		return err
	}
	done := make(chan error)
	go func() { // the thread ends with the goroutine, for it is never unlocked
		runtime.LockOSThread()
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			done <- fmt.Errorf("no_new_privs: %w", err)
			return
		}
		program := unix.SockFprog{Len: uint16(len(raw) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&raw[0]))}
		if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
			done <- fmt.Errorf("seccomp: %w", err)
			return
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0); errno != unix.EPERM {
			done <- errors.New("the filter is on, and a socket can be made")
			return
		}
		done <- nil
	}()
	if err := <-done; err != nil {
		return err
	}
	fmt.Println("put on, and held")
	return nil
}
