package isolate

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// files are those of a group that have been used, by controller and name. They stay open
// as long as the group is there: each child needs the same few, and to open one takes the
// kernel longer than to read it.
type files map[[2]string]int

func (f files) close() {
	for _, fd := range f {
		_ = unix.Close(fd)
	}
	clear(f)
}

// open returns a descriptor of one of the group's files, which it keeps. The caller holds mu.
func (g *cgroup) open(controller, file string) (fd int, err error) {
	key := [2]string{controller, file}
	if fd, is := g.kept[key]; is {
		return fd, nil
	}
	path := filepath.Join(g.dir(controller), file)
	fd, err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == unix.EACCES || err == unix.EPERM { // root, too, may not open for writing what can't be written
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return 0, err
	}
	if g.kept == nil {
		g.kept = files{}
	}
	g.kept[key] = fd
	return fd, nil
}

// write writes one of the group's files that each child needs. The caller holds mu.
func (g *cgroup) write(controller, file, value string) error {
	fd, err := g.open(controller, file)
	if err == nil {
		err = put(fd, value)
	}
	if err != nil {
		return fmt.Errorf("write %s to %s: %w", value, filepath.Join(g.dir(controller), file), err)
	}
	return nil
}

// put writes to the beginning of such a file. The kernel gives up to make room for a
// limit of memory when a signal comes, as the runtime sends itself many.
func put(fd int, value string) (err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		_, err = unix.Pwrite(fd, []byte(value), 0)
	}
	return err
}

// read reads such a file; "" is also one that can't be read. The caller holds mu.
func (g *cgroup) read(controller, file string) string {
	fd, err := g.open(controller, file)
	if err != nil {
		return ""
	}
	var buf [4096]byte // more than any of these files has
	n, _ := unix.Pread(fd, buf[:], 0)
	return string(buf[:max(n, 0)])
}

// write and read go around os.File: the runtime would register each file with its
// poller first, which costs more than the rest.
func write(dir, file, value string) error {
	path := filepath.Join(dir, file)
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = put(fd, value)
		_ = unix.Close(fd)
	}
	if err != nil {
		return fmt.Errorf("write %s to %s: %w", value, path, err)
	}
	return nil
}

func read(path string) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	var buf [4096]byte // more than any of these files has
	n, _ := unix.Read(fd, buf[:])
	_ = unix.Close(fd)
	return string(buf[:max(n, 0)])
}
