package zygote

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/layer"
)

// LauncherName is argv[0] of this binary when it runs as the launcher.
const LauncherName = "glasshouse-launcher"

// Descriptors of the launcher. The zygote keeps the control socket.
const (
	controlFD = 3
	specFD    = 4
)

// oomScore is what zygotes and guests have more than the service on the kernel's scale of 1000 (proc(5)).
const oomScore = "300"

// defaultTimerSlack is the kernel's default for PR_SET_TIMERSLACK, in nanoseconds.
const defaultTimerSlack = 50_000

// Launch is the launcher's main function: it builds the root that the spec on
// descriptor 4 describes and replaces this process by Python. It returns only if that
// fails. It must run on the main thread (runtime.LockOSThread).
func Launch() error {
	// If the machine has no memory left, the kernel ends guests first. It fails only if this is set already.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(oomScore), 0)
	var spec Spec
	if err := json.NewDecoder(os.NewFile(specFD, "spec")).Decode(&spec); err != nil {
		return fmt.Errorf("read the spec: %w", err)
	}
	if !spec.Namespaces {
		return execPython(spec, GuestDir(spec.WorkDir), TempDir(spec.WorkDir))
	}
	if spec.Without.Has(layer.Environment) {
		raw, _ := os.ReadFile("/proc/self/environ") // the new root has no /proc
		spec.inherited = strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
	}
	if err := buildRoot(spec); err != nil {
		return err
	}
	return execPython(spec, "/glasshouse", "/tmp")
}

// GuestDir is the folder of the guest's code on levels without namespaces.
func GuestDir(workDir string) string { return filepath.Join(workDir, "guest") }

// TempDir is the folder that a zygote without namespaces writes to.
func TempDir(workDir string) string { return filepath.Join(workDir, "warm") }

// execPython replaces this process by the zygote: Python, which runs the guest's code
// in guestDir and may write to tempDir.
func execPython(spec Spec, guestDir, tempDir string) error {
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// Python must not inherit a descriptor of the service.
	if err := unix.CloseRange(controlFD+1, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	config, err := json.Marshal(map[string]any{ // zygote.py reads it
		"path": spec.Packages, "warm": spec.WarmModules, "filters": spec.Filters, "private": spec.Namespaces,
		"readable": spec.Readable, "policy": spec.Policy, "rules": spec.Rules, "births": spec.Births, "without": spec.Without,
		"sessions": spec.HasSessions,
	})
	if err != nil {
		return err
	}
	env := []string{
		"LANG=C.UTF-8", "HOME=/session", "TMPDIR=" + tempDir, "PATH=/usr/bin", "TZ=UTC",
		"MPLBACKEND=Agg", "MPLCONFIGDIR=" + tempDir + "/.mpl",
		// A zygote must have one thread when it forks. In children, libraries must not exceed max_threads.
		"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1", "NUMEXPR_NUM_THREADS=1",
		"ARROW_DEFAULT_MEMORY_POOL=system", "OMP_THREAD_LIMIT=1",
		"JOBLIB_MULTIPROCESSING=0", // it would warn that it cannot start processes
		// Resolves all symbols at start. Otherwise each child resolves a function at its first call.
		"LD_BIND_NOW=1",
	}
	env = append(env, spec.inherited...)
	if spec.Preload != "" {
		env = append(env, "LD_PRELOAD="+guestDir+"/"+spec.Preload)
	}
	// The service's timers may be coarse (isolate.Harden), but user code gets the default.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, defaultTimerSlack, 0, 0, 0)
	return unix.Exec(spec.Python, []string{"python3", "-I", "-S", guestDir + "/zygote.py", string(config)}, env)
}
