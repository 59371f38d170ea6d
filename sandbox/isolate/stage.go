package isolate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"

	"golang.org/x/sys/unix"
)

// stageName is argv[0] of the binary when it is to be the wall stage.
const stageName = "glasshouse-launcher"

// Descriptors of the stage: the zygote keeps the control socket.
const (
	controlFD = 3
	specFD    = 4
)

// newRoot is where the stage builds the root before it pivots; any folder that
// exists everywhere will do, for the mount hides it in the stage's namespace only.
const newRoot = "/tmp"

// RunLauncher must be the first call of main. In the service it returns at once; in
// the re-executed binary it builds the root, where the level has one, and becomes
// Python, and never returns.
func RunLauncher() {
	if os.Args[0] != stageName {
		return
	}
	runtime.LockOSThread()
	if len(os.Args) > 1 {
		if err := probing(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	err := stage()
	fmt.Fprintln(os.Stderr, "stage:", err)
	os.Exit(70)
}

func stage() error {
	var spec stageSpec
	if err := json.NewDecoder(os.NewFile(specFD, "spec")).Decode(&spec); err != nil {
		return fmt.Errorf("read spec: %w", err)
	}
	if !spec.Private {
		return become(spec, "/", filepath.Join(spec.Folder, "inside"), filepath.Join(spec.Folder, "warm"))
	}
	if spec.Without.lack(WallEnvironment) {
		spec.inherited = spec.Without.environment() // while there is a /proc
	}
	if err := buildRoot(spec); err != nil {
		return err
	}
	return become(spec, "/", "/glasshouse", "/tmp")
}

// buildRoot makes the minimal root that the zygote and its children live in.
func buildRoot(spec stageSpec) error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make / private: %w", err)
	}
	// Sources are taken before the new root hides anything.
	trees := map[string]int{}
	devices := []string{"/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"}
	for _, path := range devices {
		spec.Binds[path] = path
	}
	var open []string // folders of the host, where a test leaves our root out
	if spec.Without.lack(WallRoot) {
		open = spec.Without.host()
		for _, path := range open {
			spec.Binds[path] = path
		}
	}
	for path, host := range spec.Binds {
		fd, err := unix.OpenTree(unix.AT_FDCWD, host, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return fmt.Errorf("open_tree %s: %w", host, err)
		}
		trees[path] = fd
	}
	if spec.Shared != "" {
		if err := handBack(spec.Shared); err != nil {
			return err
		}
	}
	if err := unix.Mount("glasshouse", newRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=16m,nr_inodes=4096"); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	if err := fillRoot(spec, trees, devices, open); err != nil {
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
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if spec.Without.lack(WallReadOnly) {
		readOnly = unix.MountAttr{}
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &readOnly); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	return unix.Sethostname([]byte("glasshouse"))
}

// become makes this process the zygote: Python, with our code in the folder inside
// and a place of its own to write to.
func become(spec stageSpec, cwd, inside, tmp string) error {
	if err := os.Chdir(cwd); err != nil {
		return err
	}
	// Nothing that the service had open may reach Python.
	if err := unix.CloseRange(controlFD+1, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	config, err := json.Marshal(map[string]any{"path": spec.Path, "warm": spec.Warm, "filters": spec.Filters, "private": spec.Private, "readable": spec.Readable, "policy": spec.Policy, "rules": spec.Rules, "births": spec.Births, "without": spec.Without})
	if err != nil {
		return err
	}
	env := []string{
		"LANG=C.UTF-8", "HOME=/session", "TMPDIR=" + tmp, "PATH=/usr/bin", "TZ=UTC", "MPLBACKEND=Agg", "MPLCONFIGDIR=" + tmp + "/.mpl",
		// One thread before the fork, and no surprise against max_threads after it.
		"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1", "NUMEXPR_NUM_THREADS=1", "ARROW_DEFAULT_MEMORY_POOL=system", "OMP_THREAD_LIMIT=1",
	}
	// What is linked when it is first called is linked again in each child.
	env = append(append(env, "LD_BIND_NOW=1"), spec.inherited...)
	if spec.Before != "" {
		env = append(env, "LD_PRELOAD="+inside+"/"+spec.Before)
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, slackUsual, 0, 0, 0) // the service's, where it could have one, is not for a program's sleeps
	return unix.Exec(spec.Python, []string{"python3", "-I", "-S", inside + "/zygote.py", string(config)}, env)
}

// handBack sends the service a mount of a folder of the host's, which it gives to
// some children as their /session. No other child can see it.
func handBack(folder string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, folder, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open_tree %s: %w", folder, err)
	}
	defer unix.Close(fd)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("mount_setattr %s: %w", folder, err)
	}
	if err := unix.Sendmsg(controlFD, []byte(`{"op":"shared"}`), unix.UnixRights(fd), nil, 0); err != nil {
		return fmt.Errorf("hand back %s: %w", folder, err)
	}
	return nil
}

func fillRoot(spec stageSpec, trees map[string]int, devices, open []string) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	// A device on a read-only mount can be written to, but its times and mode, which
	// are the host's, can't be changed.
	device := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC}
	if spec.Without.lack(WallReadOnly) {
		device.Attr_set &^= unix.MOUNT_ATTR_RDONLY
	}
	paths := make([]string, 0, len(trees))
	for path := range trees {
		paths = append(paths, path)
	}
	sort.Strings(paths) // folders before what lies in them
	for _, path := range paths {
		a := &attr
		for _, d := range devices {
			if d == path {
				a = &device
			}
		}
		if slices.Contains(open, path) {
			a = &unix.MountAttr{}
		}
		if err := unix.MountSetattr(trees[path], "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, a); err != nil {
			return fmt.Errorf("mount_setattr %s: %w", path, err)
		}
		if err := mountPoint(trees[path], newRoot+path); err != nil {
			return fmt.Errorf("make %s: %w", path, err)
		}
		if err := unix.MoveMount(trees[path], "", unix.AT_FDCWD, newRoot+path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("move_mount %s: %w", path, err)
		}
	}
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
	if len(open) == 0 { // or it would be the host's
		if err := os.WriteFile(newRoot+"/etc/passwd", []byte("agent:x:1000:1000::/session:/bin/false\n"), 0o644); err != nil {
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

// mountPoint makes an empty folder or file at path, as the tree at fd is one or
// the other.
func mountPoint(fd int, path string) error {
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
