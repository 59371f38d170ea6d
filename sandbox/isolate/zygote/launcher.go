package zygote

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/layer"
)

// LauncherName is argv[0] of this binary when it runs as the launcher.
const LauncherName = "glasshouse-launcher"

// Descriptors of the launcher. The zygote keeps the control socket.
const (
	controlFD = 3
	specFD    = 4
	prepareFD = 5 // over which the service asks for the mounts of children
)

// oomScore is what zygotes and guests have more than the service on the kernel's scale of 1000 (proc(5)).
const oomScore = "300"

// defaultTimerSlack is the kernel's default for PR_SET_TIMERSLACK, in nanoseconds.
const defaultTimerSlack = 50_000

// launcherCapabilities are those of the launcher in its user namespace, where they allow it to build the root, and to
// give children their ids, mounts and networks.
var launcherCapabilities = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_KILL, unix.CAP_NET_ADMIN, unix.CAP_SETGID,
	unix.CAP_SETPCAP, unix.CAP_SETUID, unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SYS_PTRACE,
}

// Launch is the launcher's main function: it starts the zygote that the spec on descriptor 4 describes.
//
// With namespaces it first builds their root. Then it stays, and gives children what needs rights that neither they
// nor the zygote have (prepare.go), until the zygote ends. Without namespaces it becomes the zygote. Launch returns
// only if it fails. It must run on the main thread (runtime.LockOSThread).
func Launch() error {
	// If the machine has no memory left, the kernel ends guests first. It fails only if this is set already.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(oomScore), 0)
	var spec Spec
	if err := json.NewDecoder(os.NewFile(specFD, "spec")).Decode(&spec); err != nil {
		return fmt.Errorf("read the spec: %w", err)
	}
	// Python must not inherit a descriptor of the service, or of the launcher.
	if err := unix.CloseRange(controlFD+1, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	if !spec.Namespaces {
		return becomeZygote(spec)
	}
	if spec.Without.Has(layer.Environment) {
		raw, _ := os.ReadFile("/proc/self/environ") // the new root has no /proc
		spec.inherited = strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
	}
	machine, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /proc: %w", err)
	}
	if err := buildRoot(spec); err != nil {
		return err
	}
	ended, err := startZygote(spec)
	if err != nil {
		return fmt.Errorf("start Python: %w", err)
	}
	spec.Files, spec.Filters, spec.Lock.Filter = nil, nil, nil
	debug.FreeOSMemory() // this process lives as long as the zygote
	p, err := newPreparer(spec, machine)
	if err != nil {
		return err
	}
	go func() {
		if err := p.serve(prepareFD); err != nil {
			fmt.Fprintln(os.Stderr, "launcher:", err)
		}
		os.Exit(1) // the kernel then kills the zygote and its children
	}()
	os.Exit(<-ended)
	return nil
}

// GuestDir is the folder of the guest's code on levels without namespaces.
func GuestDir(workDir string) string { return filepath.Join(workDir, "guest") }

// WarmDir is the folder of the folders that zygotes without namespaces write to, one for each environment
// (Spec.TempDir).
func WarmDir(workDir string) string { return filepath.Join(workDir, "warm") }

// SessionsDir is the folder of the session directories on levels without namespaces.
func SessionsDir(workDir string) string { return filepath.Join(workDir, "sessions") }

// userName is the name of a guest's user. The uid is another one in each guest, so only the environment has the name.
const userName = "agent"

// zygoteCommand returns the arguments and environment of Python as the zygote, which runs the guest's code in guestDir
// and may write to tempDir. The configuration is in the environment, as its 10 KB would fill the lists of ps. The
// arguments have what a reader of such a list wants to know: the folders of the packages.
func zygoteCommand(spec Spec, guestDir, tempDir string) (args, env []string, err error) {
	config, err := json.Marshal(map[string]any{ // zygote.py reads it
		"path": spec.Packages, "warm": spec.WarmModules, "filters": spec.Filters, "private": spec.Namespaces,
		"readable": spec.Readable, "policy": spec.Policy, "rules": spec.Rules, "births": spec.Births, "without": spec.Without,
		"sessions": spec.HasSessions, "lock": spec.Lock,
	})
	if err != nil {
		return nil, nil, err
	}
	env = []string{
		"LANG=C.UTF-8", "USER=" + userName, "LOGNAME=" + userName, "HOME=/session", "TMPDIR=" + tempDir,
		"PATH=/usr/bin", "TZ=UTC",
		"MPLBACKEND=Agg", "MPLCONFIGDIR=" + tempDir + "/.mpl",
		// A zygote must have one thread when it forks. In children, libraries must not exceed max_threads.
		"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1", "NUMEXPR_NUM_THREADS=1",
		"ARROW_DEFAULT_MEMORY_POOL=system", "OMP_THREAD_LIMIT=1",
		"JOBLIB_MULTIPROCESSING=0", // it would warn that it cannot start processes
		// Resolves all symbols at start. Otherwise each child resolves a function at its first call.
		"LD_BIND_NOW=1",
	}
	env = append(append(env, spec.inherited...), "GLASSHOUSE_ZYGOTE="+string(config))
	if spec.HashSeed != 0 {
		env = append(env, fmt.Sprint("PYTHONHASHSEED=", spec.HashSeed))
	}
	if spec.Preload != "" {
		env = append(env, "LD_PRELOAD="+guestDir+"/"+spec.Preload)
	}
	// As with -I, no folder of a user or of the script is on the path. But Python reads PYTHONHASHSEED, and the
	// environment has no other variable for it. Text is UTF-8 also after locale.setlocale, as it is where Python finds
	// no locale.
	args = []string{"python3", "-s", "-P", "-S", "-X", "utf8", guestDir + "/zygote.py"}
	return append(args, strings.Join(spec.Packages, ":")), env, nil
}

// startZygote starts Python in the new root, without rights. It sends the service a pidfd of it. ended gets its exit
// status.
func startZygote(spec Spec) (ended chan int, err error) {
	args, env, err := zygoteCommand(spec, "/glasshouse", "/tmp")
	if err != nil {
		return nil, err
	}
	pidfd := -1
	cmd := &exec.Cmd{Path: spec.Python, Args: args, Env: env, Dir: "/", Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles:  []*os.File{os.NewFile(controlFD, "control")}, // which is then 3 again
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, PidFD: &pidfd}}
	if !spec.Without.Has(layer.User) {
		if err := dropBoundingSet(0); err != nil { // or Python as the uid 0 of the namespace would get capabilities
			return nil, err
		}
		if spec.UIDs.Count > 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: innerZygoteUID, Gid: innerZygoteUID}
		}
	}
	// The service's timers may be coarse (isolate.Harden), but user code gets the default.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, defaultTimerSlack, 0, 0, 0)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer unix.Close(pidfd)
	_ = unix.Close(controlFD)
	if err := unix.Sendmsg(prepareFD, []byte("{}"), unix.UnixRights(pidfd), nil, 0); err != nil {
		return nil, err
	}
	ended = make(chan int, 1)
	go func() {
		_ = cmd.Wait()
		ended <- cmd.ProcessState.ExitCode() & 0xff
	}()
	return ended, nil
}

// dropBoundingSet empties the bounding set of this thread, if the thread may do that. Programs that it starts, whatever
// their uid, then get no capability. It makes the inheritable set, from which the ambient set is taken, equal to kept.
func dropBoundingSet(kept uint32) error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear the ambient capabilities: %w", err)
	}
	if err := setCapabilities(func(data *[2]unix.CapUserData) {
		data[0].Inheritable, data[1].Inheritable = kept, 0
	}); err != nil {
		return err
	}
	for c := uintptr(0); unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) == nil; c++ {
	}
	return nil
}

// setCapabilities changes the capabilities of this thread.
func setCapabilities(change func(*[2]unix.CapUserData)) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	if err == nil {
		change(&data)
		err = unix.Capset(&header, &data[0])
	}
	if err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

// becomeZygote replaces this process by Python on a level without namespaces. If the zygote has a uid of its own, it
// keeps three capabilities, whose use its filter leaves to the service.
func becomeZygote(spec Spec) error {
	args, env, err := zygoteCommand(spec, GuestDir(spec.WorkDir), spec.TempDir)
	if err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, defaultTimerSlack, 0, 0, 0)
	uid := spec.UIDs.Zygote()
	var kept uint32
	if uid != 0 {
		// The kernel sends a child its parent-death signal if the zygote may signal it.
		kept = 1<<unix.CAP_KILL | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID
	}
	if !spec.Without.Has(layer.Capabilities) {
		if err := dropBoundingSet(kept); err != nil {
			return err
		}
	}
	if uid != 0 {
		if err := becomeUser(uid, kept); err != nil {
			return fmt.Errorf("become the user %d: %w", uid, err)
		}
	}
	return unix.Exec(spec.Python, args, env)
}

// becomeUser changes the uid and gid of this thread. It keeps the capabilities kept, even when it executes a program.
func becomeUser(id int, kept uint32) error {
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return err
	}
	for _, call := range []func() unix.Errno{
		func() unix.Errno { return rawSet(unix.SYS_SETGROUPS, 0, 0, 0) },
		func() unix.Errno { return rawSet(unix.SYS_SETRESGID, id, id, id) },
		func() unix.Errno { return rawSet(unix.SYS_SETRESUID, id, id, id) },
	} {
		if errno := call(); errno != 0 {
			return errno
		}
	}
	err := setCapabilities(func(data *[2]unix.CapUserData) {
		data[0] = unix.CapUserData{Effective: kept, Permitted: kept, Inheritable: kept}
		data[1] = unix.CapUserData{}
	})
	for c := range uintptr(32) {
		if kept>>c&1 == 1 {
			err = errors.Join(err, unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0))
		}
	}
	return err
}

// rawSet makes a system call for this thread only; the functions of package unix change all threads.
func rawSet(number, a, b, c int) unix.Errno {
	_, _, errno := unix.RawSyscall(uintptr(number), uintptr(a), uintptr(b), uintptr(c))
	return errno
}
