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
	"glasshouse/sandbox/isolate/cgroup"
	"glasshouse/sandbox/isolate/zygote"
)

// Probe is the result of one test of this machine.
type Probe struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Found  string `json:"found"`            // what the test found, or why it failed
	Remedy string `json:"remedy,omitempty"` // if not OK
}

// Report is the result of ProbeMachine.
type Report struct {
	Probes            []Probe           `json:"probes"` // kernel features that isolation layers need
	Levels            []Probe           `json:"levels"` // each level started and tested, strongest first
	MinLevel          string            `json:"min_level"`
	Isolation         sandbox.Isolation `json:"isolation"`       // of the level that Open chooses
	MissingProtection string            `json:"loses,omitempty"` // protection that this level lacks
	Error             string            `json:"error,omitempty"` // why Open can use no level
}

// ProbeMachine tests each kernel feature that the isolation layers need, then each level, and
// then calls Open with config. It takes about two seconds.
func ProbeMachine(config Config) Report {
	const innerNamespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC |
		syscall.CLONE_NEWUTS | syscall.CLONE_NEWCGROUP
	report := Report{MinLevel: config.MinLevel, Probes: []Probe{
		probeInProcess("user namespaces", "namespaces", syscall.CLONE_NEWUSER, namespacesRemedy),
		probeInProcess(
			"mounts inside them",
			"mounts",
			syscall.CLONE_NEWUSER|syscall.CLONE_NEWNS,
			"some systems allow a user namespace but refuse mounts in it: "+
				appArmorRemedy,
		),
		probeInProcess("pid, net, ipc, uts and cgroup namespaces", "namespaces", innerNamespaces, namespacesRemedy),
		probeLandlock(),
		probeInProcess("seccomp filter", "seccomp", 0, "run on a kernel with CONFIG_SECCOMP_FILTER"),
		probeCgroups(),
		probeInProcess("death signal and pidfd", "pidfd", 0,
			"run on Linux 5.3 or newer, in a container runtime whose seccomp profile knows pidfd_open"),
		probeUIDs(),
		probePython(config),
	}}
	if report.MinLevel == "" {
		report.MinLevel = LevelLandlock
	}
	config.WarmSets, config.Log = []WarmSet{{Name: "bare", Pool: 1}}, func(string, ...any) {}
	for _, l := range levels {
		report.Levels = append(report.Levels, probeLevel(l, config))
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

// probeLevel starts and tests one level.
func probeLevel(l levelSpec, config Config) Probe {
	config.Level, config.MinLevel, config.WorkDir, config.EnvironmentsDir = l.name, LevelRLimits, "", ""
	i, err := Open(config)
	if err != nil {
		p := Probe{Name: l.name, Found: err.Error(), Remedy: l.remedy}
		if failed, ok := err.(*IsolationError); ok && len(failed.Attempts) > 0 {
			p.Found, p.Remedy = failed.Attempts[0].Reason, failed.Attempts[0].Remedy
		}
		return p
	}
	defer i.Close()
	p := Probe{Name: l.name, OK: true, Found: "started and tested; lacks: " + l.missing}
	if !l.namespaces && !i.hasSessionPath {
		p.Found += "; the path /session does not exist: " +
			"`ln -s /proc/self/cwd /session` on the machine or in the image makes it lead to each session's folder"
	}
	return p
}

func probeLandlock() Probe {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return Probe{Name: "Landlock", Found: errno.Error(), Remedy: landlockRemedy}
	}
	found := fmt.Sprintf("ABI %d", abi)
	if abi < 6 {
		found += "; from ABI 6 on it also restricts signals and abstract sockets, which only the system call filter does here"
	}
	return Probe{Name: "Landlock", OK: true, Found: found}
}

func probeCgroups() Probe {
	tree, err := cgroup.Open()
	if err != nil {
		return Probe{Name: "cgroups", Found: err.Error(), Remedy: levels[0].remedy}
	}
	defer tree.Close()
	return Probe{Name: "cgroups", OK: true, Found: fmt.Sprintf("version %d, with memory, pids and cpu", tree.Version())}
}

func probeUIDs() Probe {
	p := Probe{Name: "a uid for each sandbox", OK: true}
	uids := zygote.FindUIDRange()
	if uids.Count == 0 {
		p.OK, p.Found = false, fmt.Sprintf(
			"all sandboxes have the service's uid, %d; only the other layers separate them",
			os.Geteuid(),
		)
		p.Remedy = "run as root, with CAP_SETUID, CAP_SETGID, CAP_CHOWN and CAP_KILL"
		return p
	}
	p.Found = fmt.Sprintf("%d, from %d on", uids.Count, uids.First)
	return p
}

// packageVersionsCode prints the versions of the packages in the folders that its arguments name. It imports none:
// their code would run with the rights of this process.
const packageVersionsCode = `import importlib.metadata, json, sys
found = {}
for package in importlib.metadata.distributions(path=sys.argv[1:]):
    found.setdefault(str(package.metadata["Name"]).lower(), package.version)
print(json.dumps(found))`

func probePython(config Config) Probe {
	p := Probe{Name: "Python and its packages", Remedy: "name an interpreter with --python whose environment has " +
		"the packages of sandbox/python/requirements.txt; scripts/run makes one"}
	py, err := environment.Inspect(config.Python)
	if err != nil {
		p.Found = err.Error()
		return p
	}
	p.Found = fmt.Sprintf("%s, %d.%d", config.Python, py.Version[0], py.Version[1])
	wanted := []string{"numpy", "pandas", "matplotlib", "scipy", "pyarrow", "plotly", "pillow", "requests"}
	cmd := exec.Command(config.Python, append([]string{"-I", "-S", "-c", packageVersionsCode}, py.Packages...)...)
	cmd.Env = []string{"LANG=C.UTF-8"}
	var versions map[string]string
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(bytes.TrimSpace(out), &versions)
	}
	if err != nil {
		p.Found += "; listing its packages failed: " + err.Error()
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
