package isolate

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// SessionDir is what of a child may outlive it: its /session, with the uid that its files
// belong to, and its /data, which it only reads. Who got it must Close it.
type SessionDir struct {
	uid   int    // as the child has it
	mount int    // a detached clone of the /session mount, which lives as long as this descriptor; or -1
	data  int    // likewise of /data, which can be written through this one
	dir   string // where there are no private mounts: a folder of the host with session, data and tmp in it

	edition *edition // that its next child is of; nil: the current one of its environment

	closed sync.Once
}

// MountFD is a descriptor of the mount, or -1 where /session is a folder of the host.
func (h *SessionDir) MountFD() int { return h.mount }

// OpenSession opens the folder that is the child's /session; the caller closes it.
func (h *SessionDir) OpenSession() (fd int, err error) { return h.open(h.mount, "session") }

// OpenData opens the folder that is the child's /data, to be written through; the caller
// closes it.
func (h *SessionDir) OpenData() (fd int, err error) { return h.open(h.data, "data") }

func (h *SessionDir) open(mount int, name string) (int, error) {
	if h.dir == "" {
		return unix.FcntlInt(uintptr(mount), unix.F_DUPFD_CLOEXEC, 0)
	}
	return unix.Open(filepath.Join(h.dir, name), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// Close removes the files, once no child uses them.
func (h *SessionDir) Close() (err error) {
	h.closed.Do(func() {
		for _, fd := range []int{h.mount, h.data} {
			if fd >= 0 {
				err = errors.Join(err, unix.Close(fd))
			}
		}
		if h.dir != "" {
			err = raze(h.dir)
		}
		if h.edition != nil {
			h.edition.leave()
		}
	})
	return err
}

// makeHome makes a folder for a child that can have no private mounts. Its name is
// not to be guessed, for where the uid is shared, to know it is to know that it is there.
func (i *Isolator) makeHome(uid int) (*SessionDir, error) {
	h := &SessionDir{uid: uid, mount: -1, data: -1, dir: filepath.Join(i.folder, rand.Text())}
	if err := os.Mkdir(h.dir, 0o711); err != nil {
		return nil, err
	}
	for _, dir := range []string{"session", "session/artifacts", "tmp"} {
		if err := h.makeDir(dir); err != nil {
			_ = h.Close()
			return nil, err
		}
	}
	if err := h.layData(i.config.DataSets); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// layData makes its data folder, which stays the service's own, with the operator's
// data sets in it.
func (h *SessionDir) layData(sets map[string]string) error {
	path := filepath.Join(h.dir, "data")
	err := os.Mkdir(path, 0o755)
	if err == nil {
		err = os.Chmod(path, 0o755) // whatever the umask
	}
	for name, host := range sets {
		if err == nil {
			err = os.Symlink(host, filepath.Join(path, name))
		}
	}
	return err
}

func (h *SessionDir) makeDir(name string) error {
	path := filepath.Join(h.dir, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	if h.uid != 0 && os.Geteuid() == 0 {
		return os.Lchown(path, h.uid, h.uid)
	}
	return nil
}

// renew makes it ready for the next child: tmp is empty, and where session has grown
// beyond twice most between two measurements it is, too.
func (h *SessionDir) renew(most int64) error {
	dirs := []string{"tmp"}
	if now, err := measure(filepath.Join(h.dir, "session"), 2*inodes); err != nil || now.bytes > 2*most || now.files > 2*inodes {
		dirs = []string{"tmp", "session", "session/artifacts"}
	}
	for _, dir := range dirs {
		if err := raze(filepath.Join(h.dir, dir)); err != nil {
			return err
		}
		if err := h.makeDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// layFolder prepares the folder that stands in for the root of their own which
// children of the lower levels don't have: our code, and a place for homes. What is
// left there of a service that was killed goes.
func (i *Isolator) layFolder() error {
	i.folder = i.config.WorkDir
	if i.folder == "" {
		dir, err := os.MkdirTemp("", "glasshouse-")
		if err != nil {
			return err
		}
		i.folder = dir
	} else if err := raze(i.folder); err != nil {
		return fmt.Errorf("empty %s: %w", i.folder, err)
	}
	code := filepath.Join(i.folder, "inside")
	for dir, mode := range map[string]os.FileMode{i.folder: 0o711, code: 0o755, filepath.Join(i.folder, "warm"): 0o755} {
		if err := os.MkdirAll(dir, mode); err != nil {
			return err
		}
		if err := os.Chmod(dir, mode); err != nil { // whatever the umask
			return err
		}
	}
	for name, body := range i.spec.Files {
		path := filepath.Join(code, name)
		if err := os.WriteFile(path, body, 0o644); err != nil {
			return err
		}
		if err := os.Chmod(path, 0o644); err != nil {
			return err
		}
	}
	i.spec.Folder, i.spec.Readable = i.folder, []string{code, "/dev/zero", "/dev/urandom", "/dev/random"}
	return nil
}
