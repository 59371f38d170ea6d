// Package filetree measures and removes folders that user code has written.
//
// Such a folder may contain symbolic links to other places, folders without
// permissions, and paths longer than PATH_MAX. Therefore no function here follows a
// link or opens a path of more than one name, and Measure and RemoveAll hold a bounded
// number of descriptors.
package filetree

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxDepth is the number of nested folders that Measure enters. Measure treats a deeper
// tree like a tree with too many files.
const maxDepth = 64

// Size is the disk usage of a folder.
type Size struct{ Bytes, Files int64 }

// Measure adds up the blocks and the number of files below dir. It stops after more
// than maxFiles files. Files that disappear during the walk do not count.
func Measure(dir string, maxFiles int64) (Size, error) {
	fd, err := openFolder(unix.AT_FDCWD, dir)
	if err != nil {
		return Size{}, err
	}
	var s Size
	err = s.add(fd, maxFiles, 0)
	return s, err
}

// add adds the content of the folder fd, and closes fd.
func (s *Size) add(fd int, maxFiles int64, depth int) error {
	f := os.NewFile(uintptr(fd), "folder")
	defer f.Close()
	if depth > maxDepth {
		s.Files = maxFiles + 1
		return nil
	}
	for s.Files <= maxFiles {
		names, _ := f.Readdirnames(256)
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			s.Files++
			s.Bytes += st.Blocks * 512
			if st.Mode&unix.S_IFMT != unix.S_IFDIR {
				continue
			}
			sub, err := openFolder(fd, name)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
				continue
			}
			if err != nil {
				return err
			}
			if err := s.add(sub, maxFiles, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// RemoveAll removes dir and everything below it. Unlike os.RemoveAll, it restores
// permissions that user code removed, and it holds only three descriptors for a tree of any
// depth, because it first moves nested folders up into dir.
func RemoveAll(dir string) error {
	top, err := openFolder(unix.AT_FDCWD, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(top)
	moved := 0
	for {
		names, err := listSome(top)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return unix.Rmdir(dir)
		}
		for _, name := range names {
			if err := unix.Unlinkat(top, name, 0); err == nil {
				continue
			}
			if err := removeFolder(top, name, &moved); err != nil {
				return &fs.PathError{Op: "remove", Path: dir + "/" + name, Err: err}
			}
		}
	}
}

// removeFolder removes the folder name of top. It moves the folders in it to top under
// new names, numbered by moved.
func removeFolder(top int, name string, moved *int) error {
	folder, err := openFolder(top, name)
	if err != nil {
		return err
	}
	defer unix.Close(folder)
	for {
		names, err := listSome(folder)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return unix.Unlinkat(top, name, unix.AT_REMOVEDIR)
		}
		for _, inner := range names {
			if unix.Unlinkat(folder, inner, 0) == nil {
				continue
			}
			// The folder must be writable, because moving it changes its entry "..".
			fd, err := openFolder(folder, inner)
			if err != nil {
				return err
			}
			_ = unix.Close(fd)
			for {
				*moved++
				err = unix.Renameat2(folder, inner, top, ".gone-"+strconv.Itoa(*moved), unix.RENAME_NOREPLACE)
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

// openFolder opens the folder name in dir, which may be AT_FDCWD, and gives its owner
// all permissions.
func openFolder(dir int, name string) (int, error) {
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
	self := "/proc/self/fd/" + strconv.Itoa(at) // this folder, even if user code has renamed it
	if err := unix.Chmod(self, 0o700); err != nil {
		return -1, err
	}
	return unix.Open(self, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// listSome returns up to 1000 names of the folder fd; none if the folder is empty.
func listSome(fd int) ([]string, error) {
	again, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(again), "folder")
	defer f.Close()
	names, err := f.Readdirnames(1000)
	if len(names) == 0 {
		return nil, nil
	}
	return names, err
}
