package isolate

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/seccomp"
	"glasshouse/sandbox/isolate/zygote"
)

// RunLauncher must be the first call of main. In the service it returns at once. The package
// also starts the same binary as a zygote or for one of ProbeMachine's probes; in such a
// process RunLauncher does that work and does not return.
func RunLauncher() {
	if os.Args[0] != zygote.LauncherName {
		return
	}
	runtime.LockOSThread()
	if len(os.Args) > 1 {
		found, err := runProbe(os.Args[1])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(found)
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "launcher:", zygote.Launch())
	os.Exit(70)
}

// probeInProcess runs a probe in a new process, in new namespaces if flags has any.
func probeInProcess(name, probe string, namespaces uintptr, remedy string) Probe {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Env = []string{zygote.LauncherName, probe}, []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if namespaces != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return Probe{Name: name, Found: strings.TrimSpace(err.Error() + " " + string(out)), Remedy: remedy}
	}
	return Probe{Name: name, OK: true, Found: strings.TrimSpace(string(out))}
}

// runProbe runs a probe in the process that probeInProcess started. It returns the finding
// for Probe.Found.
func runProbe(probe string) (found string, err error) {
	switch probe {
	case "namespaces":
		return "created", nil // this process runs in them
	case "mounts":
		if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
			return "", fmt.Errorf("make / private: %w", err)
		}
		if err := unix.Mount("probe", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
			return "", fmt.Errorf("mount a tmpfs: %w", err)
		}
		return "mounted a tmpfs", nil
	case "seccomp":
		return "installed, and it refuses a socket", seccomp.Try()
	case "pidfd":
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return "", fmt.Errorf("PR_SET_PDEATHSIG: %w", err)
		}
		fd, err := unix.PidfdOpen(os.Getpid(), 0)
		if err == nil {
			err = unix.PidfdSendSignal(fd, 0, nil, 0)
		}
		if err != nil {
			return "", fmt.Errorf("pidfd: %w", err)
		}
		return "set, and opened", nil
	}
	return "", fmt.Errorf("unknown probe %q", probe)
}
