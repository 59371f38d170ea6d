package isolate

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// What a session leaves may be anything: links to elsewhere, folders without
// permissions, a tree deeper than any path is long. So nothing here follows a link,
// goes by a path of more than one name, or holds more descriptors than maxDepth.

// maxDepth is how deep a tree may be to be measured; a deeper one counts as too many files.
const maxDepth = 64

// openDir opens the folder name in dir, giving it back the permissions that its
// owner took from it. dir may be AT_FDCWD.
func openDir(dir int, name string) (int, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|flags, 0)
	if err == nil {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&0o700 != 0o700 {
			_ = unix.Fchmod(fd, 0o700)
		}
	}
	if !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	at, err := unix.Openat(dir, name, unix.O_PATH|flags, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	self := "/proc/self/fd/" + strconv.Itoa(at) // the very folder, whatever has its name by now
	if err := unix.Chmod(self, 0o700); err != nil {
		return -1, err
	}
	return unix.Open(self, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// names lists the folder fd, and at most a thousand or so at a time.
func names(fd int) ([]string, error) {
	again, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(again), "folder")
	defer f.Close()
	list, err := f.Readdirnames(1000)
	if len(list) == 0 {
		return nil, nil
	}
	return list, err
}

// extent is how much a tree takes.
type extent struct{ bytes, files int64 }

// measure adds up the tree below dir; it stops where there are more than most files.
func measure(dir string, most int64) (extent, error) {
	fd, err := openDir(unix.AT_FDCWD, dir)
	if err != nil {
		return extent{}, err
	}
	var e extent
	err = e.add(fd, most, 0)
	return e, err
}

// add adds what is in the folder fd, which it closes. What goes away meanwhile does not count.
func (e *extent) add(fd int, most int64, depth int) error {
	f := os.NewFile(uintptr(fd), "folder")
	defer f.Close()
	if depth > maxDepth {
		e.files = most + 1
		return nil
	}
	for e.files <= most {
		list, _ := f.Readdirnames(256)
		if len(list) == 0 {
			return nil
		}
		for _, name := range list {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			e.files++
			e.bytes += st.Blocks * 512
			if st.Mode&unix.S_IFMT != unix.S_IFDIR {
				continue
			}
			sub, err := openDir(fd, name)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
				continue
			}
			if err != nil {
				return err
			}
			if err := e.add(sub, most, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// raze removes the tree at dir. It never goes deeper than two folders: what lies
// deeper is moved up first.
func raze(dir string) error {
	top, err := openDir(unix.AT_FDCWD, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(top)
	moved := 0
	for {
		list, err := names(top)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return unix.Rmdir(dir)
		}
		for _, name := range list {
			if err := unix.Unlinkat(top, name, 0); err == nil {
				continue
			}
			if err := flatten(top, name, &moved); err != nil {
				return &fs.PathError{Op: "remove", Path: dir + "/" + name, Err: err}
			}
		}
	}
}

// flatten empties the folder name of top and removes it; folders in it become
// folders of top.
func flatten(top int, name string, moved *int) error {
	sub, err := openDir(top, name)
	if err != nil {
		return err
	}
	defer unix.Close(sub)
	for {
		list, err := names(sub)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return unix.Unlinkat(top, name, unix.AT_REMOVEDIR)
		}
		for _, inner := range list {
			if unix.Unlinkat(sub, inner, 0) == nil {
				continue
			}
			// To move a folder is to write to it (its "..").
			fd, err := openDir(sub, inner)
			if err != nil {
				return err
			}
			_ = unix.Close(fd)
			for {
				*moved++
				err = unix.Renameat2(sub, inner, top, ".gone-"+strconv.Itoa(*moved), unix.RENAME_NOREPLACE)
				if !errors.Is(err, unix.EEXIST) {
					break
				}
			}
			if err != nil {
				return err
			}
		}
	}
}
