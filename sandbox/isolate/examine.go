package isolate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox"
	"glasshouse/sandbox/environment"
)

// Probe is one thing that was tried on this machine.
type Probe struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Found  string `json:"found"`            // what there is, or why there is none
	Remedy string `json:"remedy,omitempty"` // where it is not OK
}

// Report is what Examine found.
type Report struct {
	Probes            []Probe           `json:"probes"` // what walls are made of
	Levels            []Probe           `json:"levels"` // each raised and tried, strongest first
	MinLevel          string            `json:"min_level"`
	Isolation         sandbox.Isolation `json:"isolation"`       // of the level that Open takes
	MissingProtection string            `json:"loses,omitempty"` // what that level does not have
	Error             string            `json:"error,omitempty"` // why Open takes none
}

// ProbeMachine tries what walls are made of, one by one, then each level, and then what
// Open would do with config. It takes a second or two.
func ProbeMachine(config Config) Report {
	report := Report{MinLevel: config.MinLevel, Probes: []Probe{
		inProcess("user namespaces", "userns", syscall.CLONE_NEWUSER, ladder[2].remedy),
		inProcess("mounts inside them", "mounts", syscall.CLONE_NEWUSER|syscall.CLONE_NEWNS,
			"some systems let a user namespace be made and refuse what it is for: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for glasshouse that has userns"),
		inProcess("pid, net, ipc, uts and cgroup namespaces", "userns",
			syscall.CLONE_NEWUSER|syscall.CLONE_NEWPID|syscall.CLONE_NEWNET|syscall.CLONE_NEWIPC|syscall.CLONE_NEWUTS|syscall.CLONE_NEWCGROUP, ladder[2].remedy),
		probeLandlock(),
		inProcess("seccomp filter", "seccomp", 0, "a kernel with CONFIG_SECCOMP_FILTER"),
		probeGroups(),
		inProcess("death signal and pidfd", "pidfd", 0, "Linux 5.3 or newer, and a container runtime whose seccomp profile knows pidfd_open"),
		probeIDs(),
		probePython(config),
	}}
	if report.MinLevel == "" {
		report.MinLevel = LevelLandlock
	}
	config.WarmSets, config.Log = []WarmSet{{Name: "bare", Pool: 1}}, func(string, ...any) {}
	for _, r := range ladder {
		forced := config
		forced.Level, forced.MinLevel, forced.WorkDir, forced.EnvironmentsDir = r.level, LevelRLimits, "", ""
		p := Probe{Name: r.level, OK: true, Found: "raised, and held; loses: " + r.loses}
		if i, err := Open(forced); err == nil {
			if !r.private && !i.sessionPath {
				p.Found += "; the path /session is not there: `ln -s /proc/self/cwd /session` on the machine or in the image makes it the session's folder for each"
			}
			i.Close()
		} else {
			p = Probe{Name: r.level, Found: reason(err), Remedy: r.remedy}
			if none, ok := err.(*IsolationError); ok && len(none.Attempts) > 0 {
				p.Remedy = none.Attempts[0].Remedy
			}
		}
		report.Levels = append(report.Levels, p)
	}
	config.WorkDir = ""
	i, err := Open(config)
	if err != nil {
		report.Error = err.Error()
		return report
	}
	defer i.Close()
	report.Isolation, report.MissingProtection = i.Isolation(), i.MissingProtection()
	return report
}

// reason is the innermost why of an error of Open.
func reason(err error) string {
	if none, ok := err.(*IsolationError); ok && len(none.Attempts) > 0 {
		return none.Attempts[0].Reason
	}
	return err.Error()
}

func probeLandlock() Probe {
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno != 0 {
		return Probe{Name: "Landlock", Found: errno.Error(), Remedy: ladder[3].remedy}
	}
	found := fmt.Sprintf("ABI %d", abi)
	if abi < 6 {
		found += "; from 6 on it holds back signals and abstract sockets, too, which the filter does alone here"
	}
	return Probe{Name: "Landlock", OK: true, Found: found}
}

func probeGroups() Probe {
	g, err := openCgroups()
	if err != nil {
		return Probe{Name: "cgroups", Found: err.Error(), Remedy: ladder[1].remedy}
	}
	defer g.remove()
	return Probe{Name: "cgroups", OK: true, Found: fmt.Sprintf("version %d, with memory, pids and cpu", g.version)}
}

func probeIDs() Probe {
	p := Probe{Name: "a uid for each sandbox", OK: true}
	ids := findIdentities()
	if ids.count == 0 {
		p.OK, p.Found = false, fmt.Sprintf("all sandboxes have the uid of the service, %d; what is between them is the rest of the wall", os.Geteuid())
		p.Remedy = "run as root, with CAP_SETUID, CAP_SETGID and CAP_CHOWN"
		return p
	}
	p.Found = fmt.Sprintf("%d, from %d on", ids.count, ids.first)
	return p
}

const askPackages = `import importlib, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = getattr(importlib.import_module(name), "__version__", "?")
    except ImportError:
        pass
print(json.dumps(found))`

func probePython(config Config) Probe {
	const remedy = "name the interpreter of an environment that has the packages of sandbox/python/requirements.txt with --python; scripts/run makes one"
	p := Probe{Name: "Python and its packages", Remedy: remedy}
	py, err := environment.Inspect(config.Python)
	if err != nil {
		p.Found = err.Error()
		return p
	}
	p.Found = fmt.Sprintf("%s, %d.%d", config.Python, py.Version[0], py.Version[1])
	wanted := []string{"numpy", "pandas", "matplotlib", "scipy", "pyarrow", "plotly", "PIL", "requests"}
	cmd := exec.Command(config.Python, append([]string{"-I", "-c", askPackages}, wanted...)...)
	cmd.Env = []string{"LANG=C.UTF-8", "MPLCONFIGDIR=" + os.TempDir()}
	var versions map[string]string
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(bytes.TrimSpace(out), &versions)
	}
	if err != nil {
		p.Found += "; ask it for its packages: " + err.Error()
		return p
	}
	var missing []string
	for _, name := range wanted {
		if v, ok := versions[name]; ok {
			p.Found += ", " + name + " " + v
		} else {
			missing = append(missing, name)
		}
	}
	if p.OK = len(missing) == 0; p.OK {
		p.Remedy = ""
	} else {
		p.Found += "; missing: " + strings.Join(missing, ", ")
	}
	return p
}

// inProcess tries something in a process of its own, this binary run again, which
// may have namespaces.
func inProcess(name, what string, namespaces uintptr, remedy string) Probe {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Env = []string{stageName, what}, []string{}
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

// probing is what inProcess runs; it prints what it finds.
func probing(what string) error {
	switch what {
	case "userns":
		fmt.Println("made")
		return nil
	case "mounts":
		if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("make / private: %w", err)
		}
		if err := unix.Mount("probe", newRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
			return fmt.Errorf("mount a tmpfs: %w", err)
		}
		fmt.Println("a tmpfs was mounted")
		return nil
	case "seccomp":
		return probeFilter()
	case "pidfd":
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return fmt.Errorf("PDEATHSIG: %w", err)
		}
		fd, err := unix.PidfdOpen(os.Getpid(), 0)
		if err == nil {
			err = unix.PidfdSendSignal(fd, 0, nil, 0)
		}
		if err != nil {
			return fmt.Errorf("pidfd: %w", err)
		}
		fmt.Println("set, and opened")
		return nil
	}
	return fmt.Errorf("no probe %q", what)
}
