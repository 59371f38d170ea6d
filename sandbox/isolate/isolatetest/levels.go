package isolatetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy"
	"glasshouse/sandbox/isolate"
)

// Environment variables of the test binary when it runs itself again.
const (
	levelVariable   = "GLASSHOUSE_TEST_LEVEL"   // the level to test
	containVariable = "GLASSHOUSE_TEST_CONTAIN" // the uid to run as, in an imitation of Docker's default container
)

// Exit statuses of the test binary.
const (
	levelMissing  = 3 // the machine does not have the level for this user
	containFailed = 4
)

// Level returns the level that this run tests; "" means the strongest level of the machine.
func Level() string { return os.Getenv(levelVariable) }

// HasNamespaces reports whether the level of this run has namespaces.
func HasNamespaces() bool { return Level() == "" || hasNamespaces(Level()) }

func hasNamespaces(level string) bool {
	return level == isolate.LevelFull || level == isolate.LevelWithoutCgroups
}

// user is an account that the tests run as.
type user struct {
	name      string
	uid       int
	container bool // like in a Docker container: few capabilities and no user namespaces
}

const nobody = 65534

var (
	root              = user{"root", 0, false}
	ordinary          = user{"ordinary user", nobody, false}
	rootInContainer   = user{"root in a container", 0, true}
	nobodyInContainer = user{"ordinary user in a container", nobody, true}
)

// usersOf returns the users as which a level can be tested. The tests use the first user for
// whom the machine has the level, or all of them with everyUser.
func usersOf(level string) []user {
	if os.Geteuid() != 0 {
		return []user{{"ordinary user", os.Geteuid(), false}}
	}
	switch level {
	case isolate.LevelFull:
		return []user{root, ordinary, rootInContainer, nobodyInContainer}
	case isolate.LevelLandlock:
		return []user{nobodyInContainer, rootInContainer, ordinary, root}
	case isolate.LevelWithoutCgroups:
		return []user{ordinary, root, rootInContainer, nobodyInContainer}
	}
	return []user{root} // others do not get rlimits, and a container makes no difference to it
}

// RunOnOtherLevels runs the tests of this package again on every level except the strongest,
// as one user each or, with -tags nightly, as every user. It prints the levels that this
// machine does not have. With -short it does nothing.
func RunOnOtherLevels(t *testing.T) {
	if Level() != "" || testing.Short() {
		return // this process tests one level of a larger run, or -short is set
	}
	strongest, _ := Shared(t).Level()
	var missing []string
	tested := map[string]bool{}
	for _, level := range []string{isolate.LevelFull, isolate.LevelWithoutCgroups, isolate.LevelLandlock, isolate.LevelRLimits} {
		for _, u := range usersOf(level) {
			name := level + " as " + u.name
			if u.uid == os.Geteuid() && !u.container && level == strongest {
				tested[name] = true // this process tests it
			} else {
				t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
					out, err := runAgain(t, level, u)
					if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == levelMissing {
						missing = append(missing, name+": "+out)
						return
					}
					tested[name] = true
					if err != nil {
						t.Errorf("%v\n%s\n\nsummary:\n%s", err, out, summarize(out))
					}
				})
			}
			if tested[name] && !everyUser {
				break
			}
		}
	}
	fmt.Printf("report: %d levels were tested, of %d that were tried\n", len(tested), len(tested)+len(missing))
	for _, m := range missing {
		fmt.Printf("report: not tested, because the machine does not have it: %s\n", m)
	}
	for name := range tested {
		if strings.Contains(name, "container") && !strings.HasPrefix(name, isolate.LevelLandlock) {
			t.Errorf("%s: got namespaces in a container that allows none", name)
		}
	}
}

// levelTimeout bounds the tests of one level. They typically take 30 s.
const levelTimeout = 6 * time.Minute

// runAgain runs this binary's tests on one level as one user.
func runAgain(t *testing.T, level string, as user) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), levelTimeout)
	defer cancel()
	cmd := exec.CommandContext(
		ctx,
		"/proc/self/exe",
		"-test.count=1",
		fmt.Sprintf("-test.timeout=%s", levelTimeout-10*time.Second),
	)
	cmd.Dir = "/"
	cmd.Env = []string{
		levelVariable + "=" + level,
		"GLASSHOUSE_PYTHON=" + Python(t),
		"PATH=" + os.Getenv("PATH"),
		"HOME=/",
		"TMPDIR=/tmp",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if as.container {
		cmd.Env = append(cmd.Env, containVariable+"="+strconv.Itoa(as.uid))
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings, cmd.SysProcAttr.GidMappingsEnableSetgroups = ids, ids, true
	} else if as.uid != os.Geteuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.uid)}
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// summarize returns the parts of a test binary's output that name failed tests and the
// place where a test was stuck.
func summarize(out string) string {
	var parts []string
	for part := range strings.SplitSeq(out, "\n\n") {
		if strings.Contains(part, "running tests:") || strings.Contains(part, "_test.go:") {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n\n")
}

// becomeContained replaces this process, the root of a user namespace, by a process with the
// privileges of a container: few capabilities, and no right to make namespaces.
func becomeContained() {
	uid, err := strconv.Atoi(os.Getenv(containVariable))
	if err != nil {
		return
	}
	runtime.LockOSThread()
	kept := []int{
		unix.CAP_CHOWN,
		unix.CAP_DAC_OVERRIDE,
		unix.CAP_FSETID,
		unix.CAP_FOWNER,
		unix.CAP_MKNOD,
		unix.CAP_NET_RAW,
		unix.CAP_SETGID,
		unix.CAP_SETUID,
		unix.CAP_SETFCAP,
		unix.CAP_SETPCAP,
		unix.CAP_NET_BIND_SERVICE,
		unix.CAP_SYS_CHROOT,
		unix.CAP_KILL,
		unix.CAP_AUDIT_WRITE,
	}
	err = os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	for c := 0; c <= unix.CAP_LAST_CAP; c++ {
		if !slices.Contains(kept, c) {
			err = errors.Join(err, unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0))
		}
	}
	if uid != 0 {
		err = errors.Join(err, syscall.Setgroups(nil), syscall.Setgid(uid), syscall.Setuid(uid))
	}
	if err == nil {
		env := slices.DeleteFunc(
			os.Environ(),
			func(kv string) bool { return strings.HasPrefix(kv, containVariable+"=") },
		)
		err = unix.Exec("/proc/self/exe", os.Args, env) // exec keeps only the capabilities of the bounding set
	}
	fmt.Println("become contained:", err)
	os.Exit(containFailed)
}

// exitIfLevelIsMissing exits with levelMissing if the machine does not have the level of
// this run.
func exitIfLevelIsMissing() {
	if Level() == "" {
		return
	}
	i, err := isolate.Open(
		isolate.Config{Python: os.Getenv("GLASSHOUSE_PYTHON"), WarmSets: []isolate.WarmSet{{Name: "bare", Pool: 1}},
			DefaultPolicy: policy.Default(), Level: Level(), Log: func(string, ...any) {}},
	)
	if failed, ok := errors.AsType[*isolate.IsolationError](err); ok {
		fmt.Println(failed.Attempts[0].Reason)
		os.Exit(levelMissing)
	}
	if err == nil {
		i.Close()
	}
}
