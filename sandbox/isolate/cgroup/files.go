package cgroup

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openFiles holds the descriptors of a group's files, by controller and name. They stay open
// as long as the group exists, because each child needs the same few files, and the kernel
// takes longer to open a file than to read it.
type openFiles map[[2]string]int

func (f openFiles) close() {
	for _, fd := range f {
		_ = unix.Close(fd)
	}
	clear(f)
}

// open returns a descriptor of one of the group's files, which the group closes. The
// caller holds g.mu.
func (g *Group) open(controller, file string) (fd int, err error) {
	key := [2]string{controller, file}
	if fd, ok := g.files[key]; ok {
		return fd, nil
	}
	path := filepath.Join(g.dir(controller), file)
	fd, err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == unix.EACCES || err == unix.EPERM { // the file is read-only, even for root
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return 0, err
	}
	if g.files == nil {
		g.files = openFiles{}
	}
	g.files[key] = fd
	return fd, nil
}

// CloseFiles closes the group's files. Until KeepFiles, each use opens and closes its file.
func (g *Group) CloseFiles() {
	_ = g.use(func() error {
		g.files.close()
		g.isClosed = true
		return nil
	})
}

// KeepFiles ends CloseFiles.
func (g *Group) KeepFiles() {
	_ = g.use(func() error {
		g.isClosed = false
		return nil
	})
}

// closeUnkept closes the files that were opened after CloseFiles. The caller holds g.mu.
func (g *Group) closeUnkept() {
	if g.isClosed {
		g.files.close()
	}
}

// write writes a file and keeps it open. The caller holds g.mu.
func (g *Group) write(controller, file, value string) error {
	fd, err := g.open(controller, file)
	if err == nil {
		err = pwrite(fd, value)
	}
	if err != nil {
		return fmt.Errorf("write %s to %s: %w", value, filepath.Join(g.dir(controller), file), err)
	}
	return nil
}

// read returns the content of a file, or "" if it cannot be read, and keeps the file open.
// The caller holds g.mu.
func (g *Group) read(controller, file string) string {
	fd, err := g.open(controller, file)
	if err != nil {
		return ""
	}
	var buf [4096]byte // larger than each of these files
	n, _ := unix.Pread(fd, buf[:], 0)
	return string(buf[:max(n, 0)])
}

// writeFile writes a file once, without keeping it open. It does not use os.File, because
// the Go runtime registers each os.File with its poller, which takes longer than the write.
func writeFile(dir, file, value string) error {
	path := filepath.Join(dir, file)
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = pwrite(fd, value)
		_ = unix.Close(fd)
	}
	if err != nil {
		return fmt.Errorf("write %s to %s: %w", value, path, err)
	}
	return nil
}

// pwrite writes a control file, and retries after EINTR: a new memory limit may need a
// reclaim of memory, which a signal interrupts, and the Go runtime sends itself many signals.
func pwrite(fd int, value string) (err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		_, err = unix.Pwrite(fd, []byte(value), 0)
	}
	return err
}
