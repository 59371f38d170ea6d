package isolate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox"
	"glasshouse/sandbox/environment"
	"glasshouse/sandbox/isolate/filetree"
	"glasshouse/sandbox/isolate/zygote"
)

// SessionDir holds the files that outlive a process: /session, with the uid that owns it, and
// /data, which user code can only read. The caller closes the SessionDir.
type SessionDir struct {
	uid      int    // in the children's user namespace
	mountFD  int    // a detached tree of mounts with files and session, which lives as long as the descriptor; or -1
	isShared bool   // mountFD is the mount of a folder of the machine, which the first child makes /session
	folder   string // on levels without private mounts: a folder with session, data and tmp

	late   *lateCleanups    // removes the folder if Close cannot
	env    *warmEnvironment // the version for the next process; nil for the current version
	closed sync.Once
}

// HasMounts reports whether the files are private mounts, and not in a folder of the machine.
func (d *SessionDir) HasMounts() bool { return d.mountFD >= 0 }

// OpenSession opens the process's /session; the caller closes it.
func (d *SessionDir) OpenSession() (fd int, err error) { return d.open("session", "session") }

// StatSession returns the state of a file in the process's /session. If the file is a link, that of the link.
func (d *SessionDir) StatSession(name string, st *unix.Stat_t) error {
	if d.folder == "" {
		return unix.Fstatat(d.mountFD, "session/"+name, st, unix.AT_SYMLINK_NOFOLLOW)
	}
	return unix.Lstat(filepath.Join(d.folder, "session", name), st)
}

// OpenData opens the process's /data for writing; the caller closes it.
func (d *SessionDir) OpenData() (fd int, err error) { return d.open("files", "data") }

func (d *SessionDir) open(inMounts, inFolder string) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if d.folder == "" {
		return unix.Openat(d.mountFD, inMounts, flags, 0)
	}
	return unix.Open(filepath.Join(d.folder, inFolder), flags, 0)
}

// Measure returns the bytes in the process's /session, or 0 for a private mount, which has a size of its own.
func (d *SessionDir) Measure() (int64, error) {
	if d.HasMounts() {
		return 0, nil
	}
	size, err := filetree.Measure(filepath.Join(d.folder, "session"), 2*maxInodes)
	return size.Bytes, err
}

// Close removes the files. They must not be in use by a process that runs. Files that cannot be removed now, for
// example because the service has no file descriptor left, are removed later.
func (d *SessionDir) Close() {
	d.closed.Do(func() {
		if d.mountFD >= 0 {
			_ = unix.Close(d.mountFD)
		}
		if d.folder != "" {
			if err := filetree.RemoveAll(d.folder); err != nil {
				d.late.add(lateFolder, fmt.Errorf("remove the files of a sandbox: %w", err),
					func() error { return filetree.RemoveAll(d.folder) })
			}
		}
		if d.env != nil {
			d.env.release()
		}
	})
}

// makeSessionDir makes a folder for a child without private mounts. Its name is secret,
// because any child with the service's uid could open the folder by its name.
func (i *Isolator) makeSessionDir(uid int) (*SessionDir, error) {
	folder := filepath.Join(zygote.SessionsDir(i.workDir), rand.Text())
	d := &SessionDir{uid: uid, mountFD: -1, folder: folder, late: i.late}
	if err := os.Mkdir(d.folder, 0o711); err != nil {
		return nil, err
	}
	if uid == 0 { // a test leaves out the layer UID, or all processes have the service's account
		d.uid = i.uids.Zygote()
	}
	for _, name := range []string{"session", "session/artifacts", "tmp"} {
		if err := d.makeFolder(name); err != nil {
			d.Close()
			return nil, err
		}
	}
	if err := d.makeData(i.config.DataSets); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// makeData makes the folder data, which belongs to the service, with links to the
// operator's data sets.
func (d *SessionDir) makeData(dataSets map[string]string) error {
	path := filepath.Join(d.folder, "data")
	err := os.Mkdir(path, 0o755)
	if err == nil {
		err = os.Chmod(path, 0o755) // independent of the umask
	}
	for name, source := range dataSets {
		if err == nil {
			err = os.Symlink(source, filepath.Join(path, name))
		}
	}
	return err
}

// makeFolder makes a folder that belongs to the child.
func (d *SessionDir) makeFolder(name string) error {
	path := filepath.Join(d.folder, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	if d.uid != 0 && os.Geteuid() == 0 {
		return os.Lchown(path, d.uid, d.uid)
	}
	return nil
}

// clean prepares the folder for the next child: it empties tmp. It also empties session if
// session has grown beyond twice its limit between two measurements.
func (d *SessionDir) clean(maxBytes int64) error {
	names := []string{"tmp"}
	size, err := filetree.Measure(filepath.Join(d.folder, "session"), 2*maxInodes)
	if err != nil || size.Bytes > 2*maxBytes || size.Files > 2*maxInodes {
		names = []string{"tmp", "session", "session/artifacts"}
	}
	for _, name := range names {
		if err := filetree.RemoveAll(filepath.Join(d.folder, name)); err != nil {
			return err
		}
		if err := d.makeFolder(name); err != nil {
			return err
		}
	}
	return nil
}

// prepareWorkDir prepares the folder with the guest's code and the session directories, for
// levels without a private root file system. It removes the files of an earlier, killed
// service.
func (i *Isolator) prepareWorkDir() error {
	i.workDir = i.config.WorkDir
	if i.workDir == "" {
		dir, err := os.MkdirTemp("", "glasshouse-")
		if err != nil {
			return err
		}
		i.workDir = dir
	} else if err := filetree.RemoveAll(i.workDir); err != nil {
		return fmt.Errorf("empty %s: %w", i.workDir, err)
	}
	guestDir := zygote.GuestDir(i.workDir)
	sessions, warm := zygote.SessionsDir(i.workDir), zygote.WarmDir(i.workDir)
	for _, dir := range []struct {
		path string
		mode os.FileMode
	}{{i.workDir, 0o711}, {guestDir, 0o755}, {sessions, 0o711}, {warm, 0o711}} {
		if err := os.MkdirAll(dir.path, dir.mode); err != nil {
			return err
		}
		if err := os.Chmod(dir.path, dir.mode); err != nil { // independent of the umask
			return err
		}
	}
	if i.uids.Zygote() != 0 {
		if err := checkSearchable(i.workDir); err != nil {
			return err
		}
	}
	i.baseSpec.WorkDir, i.baseSpec.Readable = i.workDir, []string{guestDir, "/dev/zero", "/dev/urandom", "/dev/random"}
	var mount unix.Statfs_t
	if err := unix.Statfs(guestDir, &mount); err != nil {
		return err
	}
	for name, body := range i.baseSpec.Files {
		path := filepath.Join(guestDir, name)
		// A library cannot be mapped from a file system without programs, such as /tmp in a container with a read-only
		// root. Elsewhere the copy fits this service also after an upgrade of the packages.
		if source, ok := i.extensions[name]; ok && mount.Flags&unix.ST_NOEXEC != 0 {
			if err := os.Symlink(source, path); err != nil {
				return err
			}
			i.baseSpec.Readable = append(i.baseSpec.Readable, source)
			continue
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			return err
		}
		if err := os.Chmod(path, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// checkSearchable returns an error if other accounts cannot pass through a folder and those above it.
func checkSearchable(folder string) error {
	folder, err := filepath.Abs(folder)
	for ; err == nil && folder != "/"; folder = filepath.Dir(folder) {
		var info os.FileInfo
		if info, err = os.Stat(folder); err == nil && info.Mode()&0o001 == 0 {
			return fmt.Errorf("the accounts of sandboxes cannot pass through %s: choose another data folder, or run "+
				"chmod o+x on it", folder)
		}
	}
	return err
}

// SharedSessionDir returns a SessionDir in the config's SharedDir, for one process and its
// successors, or nil if the config has no SharedDir. Each zygote provides it once. If each
// child has its own uid, the files in the SharedDir belong to the last uid of the range.
func (i *Isolator) SharedSessionDir(ctx context.Context) (*SessionDir, error) {
	dir := i.config.SharedDir
	if dir == "" {
		return nil, nil
	}
	if !i.level.namespaces {
		return nil, sandbox.Errorf(sandbox.FaultForbidden,
			"on this machine code cannot work in %s: the isolation level is %s, which has no private mounts", dir,
			i.level.name)
	}
	i.mu.Lock()
	pools := i.current[environment.Default].pools
	i.mu.Unlock()
	z, err := pools[len(pools)-1].awaitZygote(ctx)
	if err != nil {
		return nil, err
	}
	d := &SessionDir{isShared: true}
	if i.uids.Count > 0 {
		last := i.uids.Count - 1 // reserved: lockdownFor does not give it to a child
		d.uid = zygote.FirstInnerUID + last
		if err := os.Chown(dir, i.uids.First+last, i.uids.First+last); err != nil {
			return nil, fmt.Errorf("give %s to the account that code runs as: %w", dir, err)
		}
	}
	if d.mountFD = z.TakeSharedMount(); d.mountFD < 0 {
		return nil, errors.New("the mount of " + dir + " was lost: restart the service")
	}
	return d, nil
}
