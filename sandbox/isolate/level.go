package isolate

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"glasshouse/sandbox/isolate/cgroup"
	"glasshouse/sandbox/isolate/layer"
	"glasshouse/sandbox/isolate/seccomp"
	"glasshouse/sandbox/isolate/zygote"
)

// The isolation levels, strongest first.
const (
	LevelFull           = "full"
	LevelWithoutCgroups = "full-without-cgroups"
	LevelLandlock       = "landlock"
	LevelRLimits        = "rlimits"
)

// levelSpec is one level: the layers that it needs, and its description for the operator.
type levelSpec struct {
	name       string
	namespaces bool // and a private root file system
	cgroups    bool
	landlock   bool
	onlyByName bool // used only if the operator chooses it
	needsUIDs  bool // refused if sandboxes have the service's account

	missing string // protection that it lacks, compared with the level above
	remedy  string // how to get the level on a machine that lacks it
}

// levels are all levels, strongest first.
var levels = []levelSpec{
	{name: LevelFull, namespaces: true, cgroups: true, landlock: true,
		missing: "nothing, but the kernel is shared with the machine",
		remedy:  "run as root, or with a cgroup handed over (systemd: Delegate=yes, with the memory, pids and cpu controllers)"},
	{name: LevelWithoutCgroups, namespaces: true, landlock: true,
		missing: "exact limits: the service measures memory every 50 ms, without files in /session and /tmp; " +
			"the service limits the CPU share by stopping the process for parts of a second",
		remedy: namespacesRemedy},
	{name: LevelLandlock, landlock: true,
		missing: "private mounts and namespaces: code sees the names of the machine's files and processes, " +
			"not their content; /session is a folder whose size is measured at intervals; " +
			"as an ordinary user all sandboxes have the same uid, code can't change the modes and times of files, " +
			"and packages that warm interpreters import can reach the files of the sandboxes that live",
		remedy: landlockRemedy},
	{name: LevelRLimits, onlyByName: true, needsUIDs: true,
		missing: "protection of files: code reads what every account of the machine may read; " +
			"on a kernel without Landlock it also writes to the folders that every account may write to " +
			"(/tmp, /var/tmp, /dev/shm): all sandboxes share them, without a limit, and what they write there stays",
		remedy: "run as root with CAP_SETUID, on a kernel with seccomp (CONFIG_SECCOMP_FILTER), " +
			"which nearly all kernels have"},
}

const (
	namespacesRemedy = "allow user namespaces: sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1; " +
		appArmorRemedy + "; in Docker, a seccomp and an AppArmor profile that allow unshare and mount"
	appArmorRemedy = "on Ubuntu 24.04 and newer, give glasshouse an AppArmor profile with userns, " +
		"as the Debian package does (deploy/deb/apparmor)"
	landlockRemedy = "run on Linux 5.13 or newer with Landlock among the kernel's security modules (/sys/kernel/security/lsm), " +
		"as root with CAP_SETUID or as an ordinary user"
	interpreterRemedy = "name an interpreter with --python that every user of this machine can read; " +
		"scripts/setup makes one"
)

// Attempt is a level that was tried and failed.
type Attempt struct {
	Level, Reason, Remedy string
}

// IsolationError reports that the machine has no level that the operator accepts.
type IsolationError struct {
	Wanted   string // a level, or "LEVEL or stronger"
	Attempts []Attempt
}

func (e *IsolationError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "this machine does not provide the isolation level %s", e.Wanted)
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "\n  %s: %s\n    remedy: %s", a.Level, a.Reason, a.Remedy)
	}
	return b.String()
}

// cgroupsError is the error of a level that needs cgroups on a machine without them.
type cgroupsError struct{ cause error }

func (e *cgroupsError) Error() string { return "no cgroups: " + e.cause.Error() }
func (e *cgroupsError) Unwrap() error { return e.cause }

// candidates returns the levels to try, strongest first: only the forced level, or all levels
// that are not weaker than minLevel. wanted describes them.
func candidates(forced, minLevel string) (wanted string, try []levelSpec, err error) {
	if minLevel == "" {
		minLevel = LevelLandlock
	}
	index := func(name string) int {
		return slices.IndexFunc(levels, func(l levelSpec) bool { return l.name == name })
	}
	known := fmt.Sprintf("use %s, %s, %s or %s", LevelFull, LevelWithoutCgroups, LevelLandlock, LevelRLimits)
	last := index(minLevel)
	if last < 0 {
		return "", nil, fmt.Errorf("unknown minimum isolation level %q: %s", minLevel, known)
	}
	if forced != "" {
		n := index(forced)
		if n < 0 {
			return "", nil, fmt.Errorf("unknown isolation level %q: %s, or leave it out", forced, known)
		}
		// An operator who forces an onlyByName level accepts it, whatever minLevel is.
		if n > last && !levels[n].onlyByName {
			return "", nil, fmt.Errorf(
				"the isolation level %s is weaker than the minimum, %s: choose a stronger one, or lower --min-level",
				forced,
				minLevel,
			)
		}
		return forced, levels[n : n+1], nil
	}
	for n, l := range levels[:last+1] {
		if !l.onlyByName || n == last {
			try = append(try, l)
		}
	}
	return minLevel + " or stronger", try, nil
}

// chooseLevel chooses the strongest candidate that works: it starts a zygote of env on each
// candidate until a child of the zygote passes the test.
func (i *Isolator) chooseLevel(env *warmEnvironment) error {
	if i.config.Level == "" && i.baseSpec.Without.Has(layer.Cgroups) {
		i.config.Level = LevelWithoutCgroups
	}
	wanted, try, err := candidates(i.config.Level, i.config.MinLevel)
	if err != nil {
		return err
	}
	var namespacesErr error // the same for every level that needs namespaces
	for _, l := range try {
		i.level = l
		err := namespacesErr
		if err == nil || !l.namespaces {
			err = i.startLevel(env)
		}
		if err == nil {
			i.isolation = i.describeLimits()
			return nil
		}
		remedy := l.remedy
		var noCgroups *cgroupsError
		if _, ok := errors.AsType[*zygote.InterpreterError](err); ok {
			remedy = interpreterRemedy
		} else if l.namespaces && !errors.As(err, &noCgroups) {
			namespacesErr, remedy = err, namespacesRemedy
		}
		i.rejected = append(i.rejected, Attempt{l.name, err.Error(), remedy})
	}
	return &IsolationError{Wanted: wanted, Attempts: i.rejected}
}

// startLevel starts a zygote of the smallest warm set on i.level, and tests it.
func (i *Isolator) startLevel(env *warmEnvironment) (err error) {
	if i.cgroups = nil; i.level.cgroups {
		if i.cgroups, err = cgroup.Open(); err != nil {
			return &cgroupsError{err}
		}
		i.cgroups.Log = i.config.Log
		i.cgroups.KeepSpares(i.idle.max)
		i.limitGuests()
		i.sharing.memory.tree = i.cgroups
	}
	defer func() {
		if err != nil && i.cgroups != nil {
			i.cgroups.Close()
			i.cgroups = nil
		}
	}()
	if i.level.needsUIDs && i.uids.Count == 0 {
		return fmt.Errorf("sandboxes would have the service's account, %d, and no layer would protect its files",
			os.Geteuid())
	}
	if err = errors.Join(i.prepareLevel(), env.prepareSpec()); err != nil {
		return err
	}
	pool := env.pools[0]
	z, err := pool.startZygote()
	if err != nil {
		return err
	}
	if len(i.baseSpec.Without) == 0 { // the test fails if a layer is left out
		err = i.verifyLevel(pool, z)
	}
	if err != nil {
		z.Close()
		return err
	}
	pool.replaceZygote(z)
	return nil
}

// The names of a zygote's system call filters. protocol.Enter chooses one of them.
const (
	filterPlain   = "plain"
	filterNetwork = "network"
)

// prepareLevel fills in the spec of zygotes on i.level.
func (i *Isolator) prepareLevel() (err error) {
	private := i.level.namespaces
	i.baseSpec.Namespaces, i.baseSpec.Readable = private, []string{"/"}
	i.baseSpec.Filters, i.baseSpec.UIDs = map[string][]byte{}, i.uids
	options := seccomp.Options{SharedPIDNamespace: !private, SharedUID: !private && i.uids.Count == 0,
		NoSharedMemory: !i.level.cgroups && !i.baseSpec.Without.Has(layer.Cgroups)}
	if i.baseSpec.Filters[filterPlain], err = seccomp.Build(options); err != nil {
		return err
	}
	if !private {
		if err := i.prepareWorkDir(); err != nil {
			return err
		}
	}
	if i.baseSpec.Lock, err = i.zygoteLock(options); err != nil || !private {
		return err
	}
	options.Network = true
	i.baseSpec.Filters[filterNetwork], err = seccomp.Build(options)
	return err
}

// zygoteLock returns what a zygote gives up, except the paths that it may read. guest are the options of the filters of
// its children.
func (i *Isolator) zygoteLock(guest seccomp.Options) (lock zygote.Lock, err error) {
	without, private := i.baseSpec.Without, i.level.namespaces
	// The root has no other folders that can be written to, and no port that can be reached.
	lock.Writable, lock.Port = []string{"/"}, proxyPort
	if !private {
		lock.Writable, lock.Port = []string{zygote.SessionsDir(i.workDir)}, 0 // and Spec.TempDir
	}
	// At the level rlimits it limits writes, where the kernel has it.
	lock.Landlock = !without.Has(layer.Landlock) && !without.Has(layer.User)
	// Its filter forbids a child to become dumpable.
	if !without.Has(layer.Seccomp) && !without.Has(layer.User) && !without.Has(layer.Dumpable) {
		guest.Zygote, guest.Network, guest.AssignedUIDs = true, private, !private && i.uids.Count > 0
		lock.Filter, err = seccomp.Build(guest)
	}
	return lock, err
}

// Level returns the level, and the reasons why the machine does not have the stronger levels.
func (i *Isolator) Level() (level, reasons string) {
	var all []string
	for _, a := range i.rejected {
		all = append(all, a.Level+": "+a.Reason)
	}
	return i.level.name, strings.Join(all, "; ")
}

// MissingProtection describes the protection that the level lacks.
func (i *Isolator) MissingProtection() string { return i.level.missing }
