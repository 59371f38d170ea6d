package isolate

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// The levels of the wall, strongest first.
const (
	LevelGVisor         = "gvisor"
	LevelFull           = "full"
	LevelWithoutCgroups = "full-without-cgroups"
	LevelLandlock       = "landlock"
	LevelRLimits        = "rlimits"
)

// rung is one level: what it is made of, and what is said of it.
type rung struct {
	level    string
	private  bool // namespaces, and a root of its own
	groups   bool // limits by cgroups
	landlock bool
	named    bool // taken only where the operator names it

	loses  string // beside the level above
	remedy string // where it can't be had
}

// ladder is every level, strongest first.
var ladder = []rung{
	{level: LevelGVisor, named: true, loses: "speed: a fork takes tens of milliseconds",
		remedy: "choose another level: this one is not built yet"},
	{level: LevelFull, private: true, groups: true, landlock: true, loses: "nothing, but the kernel is shared with the machine",
		remedy: "run as root, or with a cgroup handed over (systemd: Delegate=yes, with the memory, pids and cpu controllers)"},
	{level: LevelWithoutCgroups, private: true, landlock: true,
		loses: "memory is bounded by RLIMIT_DATA, which does not count files in /session and /tmp; CPU share by stopping the process now and then",
		remedy: "allow user namespaces: sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1, " +
			"kernel.apparmor_restrict_unprivileged_userns=0; in Docker, a seccomp and an AppArmor profile that allow unshare and mount"},
	{level: LevelLandlock, landlock: true,
		loses: "no private mounts and no namespaces: code sees that a file of the machine is there (not what is in it) and which processes there are; " +
			"/session is a folder whose size is measured now and then; as an ordinary user all sandboxes have one uid, and modes and times of files stay as they are",
		remedy: "run on Linux 5.13 or newer with Landlock among the kernel's security modules (/sys/kernel/security/lsm), as root with CAP_SETUID or as an ordinary user"},
	{level: LevelRLimits, named: true,
		loses:  "no wall around files: code reads what the service's user may read; system calls are filtered, and no more",
		remedy: "it needs seccomp (CONFIG_SECCOMP_FILTER), which nearly every kernel has"},
}

// Attempt is one level that was tried and can't be had.
type Attempt struct {
	Level, Reason, Remedy string
}

// IsolationError is the error where no level that the operator accepts can be had.
type IsolationError struct {
	Wanted   string // the level, or "at least" one
	Attempts []Attempt
}

func (e *IsolationError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "this machine has no wall of level %s", e.Wanted)
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "\n  %s: %s\n    remedy: %s", a.Level, a.Reason, a.Remedy)
	}
	return b.String()
}

// rungs are the levels that may be tried, strongest first: the forced one alone, or
// those that are not below the least.
func rungs(forced, least string) (wanted string, try []rung, err error) {
	if least == "" {
		least = LevelLandlock
	}
	at := func(level string) int {
		return slices.IndexFunc(ladder, func(r rung) bool { return r.level == level })
	}
	known := fmt.Sprintf("use %s, %s, %s or %s", LevelFull, LevelWithoutCgroups, LevelLandlock, LevelRLimits)
	end := at(least)
	if end < 0 {
		return "", nil, fmt.Errorf("the least isolation %q is not known: %s", least, known)
	}
	if forced != "" {
		n := at(forced)
		if n < 0 {
			return "", nil, fmt.Errorf("isolation %q is not known: %s, or leave it out", forced, known)
		}
		// To name the last rung is to accept it; for the others the least holds.
		if n > end && !ladder[n].named {
			return "", nil, fmt.Errorf("isolation %s is below the least that is accepted, %s: choose a stronger one, or lower --min-level", forced, least)
		}
		return forced, ladder[n : n+1], nil
	}
	for n, r := range ladder[:end+1] {
		if !r.named || n == end && least == LevelRLimits {
			try = append(try, r)
		}
	}
	return "at least " + least, try, nil
}

// climb raises the strongest of the levels that may be tried, by doing it: a zygote
// of the edition is started behind it, and a child of that zygote tries the wall.
func (i *Isolator) climb(e *edition) error {
	if i.config.Level == "" && i.spec.Without.lack(WallCgroups) {
		i.config.Level = LevelWithoutCgroups
	}
	wanted, try, err := rungs(i.config.Level, i.config.MinLevel)
	if err != nil {
		return err
	}
	var unshared error // why there are no namespaces: true of every level that needs them
	for _, r := range try {
		i.rung = r
		err := unshared
		if err == nil || !r.private {
			err = i.raise(e)
		}
		if err == nil {
			i.isolation = i.describe()
			return nil
		}
		remedy := r.remedy
		var none *noGroups
		var python *noPython
		if errors.As(err, &python) {
			remedy = "name another interpreter with --python, which every user of this machine can read; scripts/setup makes one"
		} else if r.private && !errors.As(err, &none) {
			unshared, remedy = err, ladder[2].remedy
		}
		i.tried = append(i.tried, Attempt{r.level, err.Error(), remedy})
	}
	return &IsolationError{Wanted: wanted, Attempts: i.tried}
}

// noGroups is why there are no cgroups, where a level needs them.
type noGroups struct{ error }

func (e *noGroups) Unwrap() error { return e.error }

// raise raises the level at hand with the smallest warm set, and tries it; the others
// warm up meanwhile.
func (i *Isolator) raise(e *edition) (err error) {
	if i.rung.level == LevelGVisor {
		return errors.New("not built yet")
	}
	if i.groups = nil; i.rung.groups {
		if i.groups, err = openCgroups(); err != nil {
			return &noGroups{fmt.Errorf("no cgroups: %w", err)}
		}
	}
	defer func() {
		if err != nil && i.groups != nil {
			i.groups.remove()
			i.groups = nil
		}
	}()
	if err = errors.Join(i.lay(), e.dress()); err != nil {
		return err
	}
	first := e.nurseries[0]
	z, err := first.start()
	if err != nil {
		return err
	}
	if len(i.spec.Without) == 0 { // which would be found out
		err = i.try(first, z)
	}
	if err != nil {
		z.close()
		return err
	}
	first.turn(z)
	return nil
}

// lay prepares what the stage needs for the level at hand.
func (i *Isolator) lay() (err error) {
	r := i.rung
	i.spec.Private, i.spec.Readable = r.private, []string{"/"}
	i.spec.Filters = map[string][]byte{}
	shape := filterShape{shared: !r.private, oneUID: !r.private && i.ids.count == 0}
	if i.spec.Filters[filterPlain], err = filterOf(shape); err != nil {
		return err
	}
	if !r.private { // and no namespace for a network
		return i.layFolder()
	}
	shape.network = true
	i.spec.Filters[filterNetwork], err = filterOf(shape)
	return err
}

// Level is the wall's level, and why it is not a stronger one.
func (i *Isolator) Level() (level, missing string) {
	var why []string
	for _, a := range i.tried {
		why = append(why, a.Level+": "+a.Reason)
	}
	return i.rung.level, strings.Join(why, "; ")
}

// MissingProtection says what the level does not have.
func (i *Isolator) MissingProtection() string { return i.rung.loses }

// identities are the uids that children may have, one each. Their count is 0 where
// this process can't change its uid: then all have the one that it has.
type identities struct{ first, count int }

// findIdentities prefers a range that nothing else uses; a container whose user
// namespace has only the lower 65536 gets some of those.
func findIdentities() identities {
	if os.Geteuid() != 0 || !mayChangeIDs() {
		return identities{}
	}
	for _, ids := range []identities{{firstUID, uidSlots}, {20_000, 40_000}} {
		if mapped("/proc/self/uid_map", ids) && mapped("/proc/self/gid_map", ids) {
			return ids
		}
	}
	return identities{}
}

// mapped says whether the whole range is there in the user namespace that we are in.
func mapped(file string, ids identities) bool {
	for _, line := range strings.Split(read(file), "\n") {
		var inside, outside, size int
		if n, _ := fmt.Sscan(line, &inside, &outside, &size); n == 3 && inside <= ids.first && ids.first+ids.count <= inside+size {
			return true
		}
	}
	return false
}
