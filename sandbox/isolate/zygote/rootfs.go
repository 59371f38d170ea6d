package zygote

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/layer"
)

// newRoot is the folder in which the launcher builds the root before pivot_root. It can be
// any folder that exists on every machine, because the mount hides it only in the launcher's
// namespace.
const newRoot = "/tmp"

var devices = []string{"/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"}

// buildRoot makes the minimal root for the zygote and its children, and moves this process
// into it.
func buildRoot(spec Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make / private: %w", err)
	}
	var writable []string // folders of the machine, if a test leaves out the layer Root
	if spec.Without.Has(layer.Root) {
		writable = machineFolders()
	}
	mounts, err := cloneMounts(spec, writable) // before the new root hides their sources
	if err != nil {
		return err
	}
	if spec.SharedDir != "" {
		if err := sendSharedMount(spec.SharedDir); err != nil {
			return err
		}
	}
	if err := leaveAccount(spec); err != nil {
		return err
	}
	if err := unix.Mount("glasshouse", newRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=16m,nr_inodes=4096"); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	if err := attachMounts(spec, mounts, writable); err != nil {
		return err
	}
	if err := fillRoot(spec, len(writable) == 0); err != nil {
		return err
	}
	if err := unix.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach the old root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Mount("tmp", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,size=64m"); err != nil {
		return fmt.Errorf("mount /tmp: %w", err)
	}
	if !spec.Without.Has(layer.ReadOnly) {
		if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make the root read-only: %w", err)
		}
	}
	return unix.Sethostname([]byte("glasshouse"))
}

// machineFolders returns the folders of the machine's root, except those that the
// launcher makes itself.
func machineFolders() (folders []string) {
	entries, _ := os.ReadDir("/")
	for _, e := range entries {
		if e.IsDir() &&
			!slices.Contains([]string{"tmp", "session", "data", "glasshouse", "packages", "work"}, e.Name()) {
			folders = append(folders, "/"+e.Name())
		}
	}
	return folders
}

// cloneMounts returns a detached mount of each path that the root will have.
func cloneMounts(spec Spec, writable []string) (mounts map[string]int, err error) {
	sources := maps.Clone(spec.Binds)
	for _, path := range slices.Concat(devices, writable) {
		sources[path] = path
	}
	mounts = map[string]int{}
	for path, source := range sources {
		fd, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return nil, fmt.Errorf("open_tree %s: %w", source, err)
		}
		mounts[path] = fd
	}
	return mounts, nil
}

// attachMounts attaches the mounts below newRoot.
func attachMounts(spec Spec, mounts map[string]int, writable []string) error {
	const readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID
	for _, path := range slices.Sorted(maps.Keys(mounts)) { // folders before their content
		attr := unix.MountAttr{Attr_set: readOnly | unix.MOUNT_ATTR_NODEV}
		switch {
		case slices.Contains(writable, path):
			attr = unix.MountAttr{}
		case slices.Contains(devices, path):
			// A device on a read-only mount can be written to, but its times and its mode,
			// which belong to the machine, can't be changed.
			attr = unix.MountAttr{Attr_set: readOnly | unix.MOUNT_ATTR_NOEXEC}
			if spec.Without.Has(layer.ReadOnly) {
				attr.Attr_set &^= unix.MOUNT_ATTR_RDONLY
			}
		}
		if err := unix.MountSetattr(mounts[path], "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
			return fmt.Errorf("mount_setattr %s: %w", path, err)
		}
		if err := makeMountPoint(mounts[path], newRoot+path); err != nil {
			return fmt.Errorf("make %s: %w", path, err)
		}
		if err := unix.MoveMount(mounts[path], "", unix.AT_FDCWD, newRoot+path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("move_mount %s: %w", path, err)
		}
	}
	return nil
}

// makeMountPoint makes an empty folder or file at path, of the same type as the mount at fd.
func makeMountPoint(fd int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	return os.WriteFile(path, nil, 0o644)
}

// fillRoot writes the root's links, folders and files. ownEtc says that /etc belongs to the
// root and is not the machine's.
func fillRoot(spec Spec, ownEtc bool) error {
	for path, target := range spec.Links {
		if err := os.Symlink(target, newRoot+path); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/glasshouse", "/tmp", "/session", "/data", "/etc"} {
		if err := os.MkdirAll(newRoot+dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink("session", newRoot+"/work"); err != nil {
		return err
	}
	if ownEtc {
		if err := linkForeignFolders(); err != nil {
			return err
		}
		account := userName + ":x:1000:1000::/session:/bin/false\n"
		if err := os.WriteFile(newRoot+"/etc/passwd", []byte(account), 0o644); err != nil {
			return err
		}
	}
	for name, body := range spec.Files {
		if err := os.WriteFile(newRoot+"/glasshouse/"+name, body, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// foreignFolders are the folders in which code that was written for other services works.
var foreignFolders = []string{"/mnt/data", "/home/user"}

// linkForeignFolders makes links to /session. It leaves out a folder that a mount has made, such as that of an
// interpreter in /home/user.
func linkForeignFolders() error {
	for _, folder := range foreignFolders {
		err := os.MkdirAll(newRoot+filepath.Dir(folder), 0o755)
		if err == nil {
			err = os.Symlink("/session", newRoot+folder)
		}
		if err != nil && !errors.Is(err, os.ErrExist) && !errors.Is(err, unix.EROFS) {
			return err
		}
	}
	return nil
}

// leaveAccount changes this process from the service's account, as which it can open folders that only that account may
// open, to the launcher's own.
func leaveAccount(spec Spec) error {
	if spec.UIDs.Count == 0 || spec.Without.Has(layer.User) {
		return nil
	}
	err := syscall.Setgroups(nil)
	if err == nil {
		err = syscall.Setresgid(innerLauncherUID, innerLauncherUID, innerLauncherUID)
	}
	if err == nil {
		err = syscall.Setresuid(innerLauncherUID, innerLauncherUID, innerLauncherUID)
	}
	if err != nil {
		return fmt.Errorf("leave the account of the service: %w", err)
	}
	return nil
}

// sendSharedMount sends the service a mount of a folder of the machine. The service gives it
// to some children as their /session. Other children can't see the folder.
func sendSharedMount(folder string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, folder, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open_tree %s: %w", folder, err)
	}
	defer unix.Close(fd)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("mount_setattr %s: %w", folder, err)
	}
	if err := unix.Sendmsg(prepareFD, []byte("{}"), unix.UnixRights(fd), nil, 0); err != nil {
		return fmt.Errorf("send the mount of %s: %w", folder, err)
	}
	return nil
}
