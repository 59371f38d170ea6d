package isolatetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/supervisor"
)

// levelKey names, in the environment, the level that raise takes where a test asks
// for the best.
const levelKey = "GLASSHOUSE_TEST_LEVEL"

// notHere is the exit code of this binary where the level can't be had here.
const notHere = 3

// nobody is an ordinary user.
const nobody = 65534

func private(level string) bool {
	return level == isolate.LevelFull || level == isolate.LevelWithoutCgroups
}

// user is whom the tests run as.
type user struct {
	name      string
	id        int
	container bool // with what Docker gives by default: few capabilities, no user namespaces
}

// users are those that this process can be.
func users() []user {
	if os.Geteuid() != 0 {
		return []user{{"ordinary user", os.Geteuid(), false}}
	}
	return []user{{"root", 0, false}, {"ordinary user", nobody, false}, {"root in a container", 0, true}, {"ordinary user in a container", nobody, true}}
}

// Every test of this package again, on every level, as root and as an ordinary user.
// What this machine can't do is counted and printed.
func TestEveryLevel(t *testing.T) {
	if os.Getenv(levelKey) != "" {
		return // this is one of them
	}
	var missing []string
	ran := map[string]bool{}
	best, _ := raise(t, "").Level()
	for _, u := range users() {
		for _, level := range []string{isolate.LevelFull, isolate.LevelWithoutCgroups, isolate.LevelLandlock, isolate.LevelRLimits} {
			if u.container && level == isolate.LevelRLimits {
				continue // as without one
			}
			wall := level + " as " + u.name
			if u.id == os.Geteuid() && !u.container && level == best {
				ran[wall] = true // in this process
				continue
			}
			t.Run(strings.ReplaceAll(wall, " ", "-"), func(t *testing.T) {
				out, err := again(t, level, u)
				var exit *exec.ExitError
				if errors.As(err, &exit) && exit.ExitCode() == notHere {
					missing = append(missing, wall+": "+out)
					return
				}
				ran[wall] = true
				if err != nil {
					t.Errorf("%v\n%s\n\nin short:\n%s", err, out, gist(out))
				}
			})
		}
	}
	fmt.Printf("report: %d of %d walls were tested\n", len(ran), len(ran)+len(missing))
	for _, m := range missing {
		fmt.Printf("report: not tested, for it is not to be had here: %s\n", m)
	}
	for wall := range ran {
		if strings.Contains(wall, "container") && !strings.HasPrefix(wall, isolate.LevelLandlock) {
			t.Errorf("%s: a container that has no namespaces had them", wall)
		}
	}
}

// again runs this binary's tests on one level.
func again(t *testing.T, level string, as user) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute) // one to two are usual
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.count=1", "-test.timeout=350s")
	cmd.Dir = "/"
	cmd.Env = []string{levelKey + "=" + level, "GLASSHOUSE_PYTHON=" + os.Getenv("GLASSHOUSE_PYTHON"), "PATH=" + os.Getenv("PATH"), "HOME=/", "TMPDIR=/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if as.container {
		cmd.Env = append(cmd.Env, containKey+"="+strconv.Itoa(as.id))
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings, cmd.SysProcAttr.GidMappingsEnableSetgroups = ids, ids, true
	} else if as.id != os.Geteuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(as.id), Gid: uint32(as.id)}
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// gist is what tells most of a test binary's output: which test was not over in time,
// and where it was.
func gist(out string) string {
	var tell []string
	for _, part := range strings.Split(out, "\n\n") {
		if strings.Contains(part, "running tests:") || strings.Contains(part, "_test.go:") {
			tell = append(tell, part)
		}
	}
	return strings.Join(tell, "\n\n")
}

// containKey names, in the environment, the uid that this process is to have in
// something like Docker's default container.
const containKey = "GLASSHOUSE_TEST_CONTAIN"

// contain makes this process, the root of a user namespace, what it would be in a
// container: no namespaces can be made, and of the capabilities few are left.
func contain() {
	id, err := strconv.Atoi(os.Getenv(containKey))
	if err != nil {
		return
	}
	runtime.LockOSThread()
	left := []int{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID, unix.CAP_FOWNER, unix.CAP_MKNOD, unix.CAP_NET_RAW, unix.CAP_SETGID, unix.CAP_SETUID,
		unix.CAP_SETFCAP, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_KILL, unix.CAP_AUDIT_WRITE}
	err = os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	for c := 0; c <= unix.CAP_LAST_CAP; c++ {
		if !slices.Contains(left, c) {
			err = errors.Join(err, unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0))
		}
	}
	if id != 0 {
		err = errors.Join(err, syscall.Setgroups(nil), syscall.Setgid(id), syscall.Setuid(id))
	}
	if err == nil {
		env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, containKey+"=") })
		err = unix.Exec("/proc/self/exe", os.Args, env) // which leaves the capabilities of the bounding set
	}
	fmt.Println("contain:", err)
	os.Exit(4)
}

// here ends the process where the level that this run is about can't be had.
func here() {
	level := os.Getenv(levelKey)
	if level == "" {
		return
	}
	i, err := isolate.Open(isolate.Config{Python: os.Getenv("GLASSHOUSE_PYTHON"), WarmSets: []isolate.WarmSet{{Name: "bare", Pool: 1}}, DefaultPolicy: policy.Default(), Level: level, Log: func(string, ...any) {}})
	var none *isolate.IsolationError
	if errors.As(err, &none) {
		fmt.Println(none.Attempts[0].Reason)
		os.Exit(notHere)
	}
	if err == nil {
		i.Close()
	}
}

// Where an ordinary user may make namespaces, the wall is made of them.
func TestAnOrdinaryUserHasNamespaces(t *testing.T) {
	if os.Getenv(levelKey) != isolate.LevelLandlock || os.Geteuid() == 0 {
		return // once is enough
	}
	probe := exec.Command("/bin/true")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}
	if probe.Run() != nil {
		return
	}
	i, err := isolate.Open(isolate.Config{Python: os.Getenv("GLASSHOUSE_PYTHON"), WarmSets: []isolate.WarmSet{{Name: "bare", Pool: 1}}, DefaultPolicy: policy.Default(), Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	if level, why := i.Level(); !private(level) {
		t.Errorf("level %s: %s", level, why)
	}
}

// A level below the least is refused, in words that help.
func TestTheLeastLevelHolds(t *testing.T) {
	config := isolate.Config{Python: os.Getenv("GLASSHOUSE_PYTHON"), WarmSets: isolate.WarmSets(1), DefaultPolicy: policy.Default(), Log: t.Logf}
	for _, c := range []struct{ level, least, says string }{
		{isolate.LevelLandlock, isolate.LevelFull, "weaker than the minimum"},
		{"best", "", "unknown isolation level"},
		{"", "most", "unknown minimum isolation level"},
	} {
		config.Level, config.MinLevel = c.level, c.least
		if i, err := isolate.Open(config); err == nil {
			i.Close()
			t.Errorf("%+v was taken", c)
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The packages work on every level, with no place to write to but the session's own.
func TestPackagesWork(t *testing.T) {
	all := isolate.WarmSets(1)
	ends := []isolate.WarmSet{all[0], all[len(all)-1]}
	i, err := isolate.Open(isolate.Config{Python: os.Getenv("GLASSHOUSE_PYTHON"), WarmSets: ends, DefaultPolicy: policy.Default(), Level: os.Getenv(levelKey), Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	code := `
import io, os, pathlib, sqlite3, tempfile, zoneinfo, datetime
import numpy as np, pandas as pd, matplotlib.pyplot as plt
frame = pd.DataFrame({"k": list("abab"), "v": np.arange(4.0)})
frame.to_csv("t.csv"); frame.to_parquet("t.parquet")
plt.plot([1, 2]); plt.savefig("artifacts/p.png"); plt.close("all")
with tempfile.TemporaryDirectory() as d:
    pathlib.Path(d, "x").write_text("y")
pathlib.Path("mine.py").write_text("answer = 42")
import mine
sqlite3.connect("t.db").execute("create table t (a)")
print(datetime.datetime.now(zoneinfo.ZoneInfo("Europe/Vienna")).tzname() is not None)
[float(pd.read_parquet("t.parquet").groupby("k")["v"].sum()["a"]), len(pd.read_csv("t.csv")), os.path.getsize("artifacts/p.png") > 1000, mine.answer,
 os.getcwd() == os.environ["HOME"], tempfile.gettempdir() == os.environ["TMPDIR"]]`
	for _, hint := range []string{"", "import math"} { // from the largest set, and imported on the spot
		p := policy.Default()
		p.Profile, p.CPUPercent, p.MaxExecutionTime, p.MaxMemoryMB = policy.ProfileUnrestricted, 200, 60, 512
		s, err := supervisor.New(i, 30*time.Second).Open(context.Background(), sandbox.Sandbox{ID: "t", Policy: p}, hint)
		if err != nil {
			t.Fatal(err)
		}
		e := run(t, s, code)
		if string(e.Result) != "[2.0, 4, true, 42, true, true]" {
			why := ""
			if e.Error != nil {
				why = *e.Error
			}
			t.Errorf("%s %s %s\n%s", e.Status, e.Result, why, e.Stderr)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What belongs to the service's own user is out of reach on every level but the
// last, where that is the sandboxes' user, too: neither read nor changed.
func TestTheServicesFilesStay(t *testing.T) {
	i := raise(t, "")
	if level, _ := i.Level(); level == isolate.LevelRLimits {
		return // it has no wall around files
	}
	dir, err := os.MkdirTemp("", "owned")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(file, []byte("kept"), 0o644), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	e := run(t, open(t, i, nil), fmt.Sprintf(`
import os, sys
file, ours = %q, sys.modules["processor_pipeline"].__file__
done = []
for path in file, ours:
    for name, attempt in {
        "read": lambda: path == ours or open(path).read(), "append": lambda: open(path, "a"), "chmod": lambda: os.chmod(path, 0o777),
        "fchmodat": lambda: os.chmod(os.path.basename(path), 0o777, dir_fd=os.open(os.path.dirname(path), os.O_PATH)),
        "fchmod": lambda: os.fchmod(os.open(path, os.O_RDONLY), 0o777), "futimens": lambda: os.utime(os.open(path, os.O_RDONLY), (1, 1)),
        "utime": lambda: os.utime(path, (1, 1)), "truncate": lambda: os.truncate(path, 0), "open and truncate": lambda: os.open(path, os.O_RDONLY | os.O_TRUNC),
        "unlink": lambda: os.unlink(path), "rename": lambda: os.rename(path, "mine"), "link": lambda: os.link(path, "mine"), "beside": lambda: open(path + "2", "w"),
        "chown": lambda: os.chown(path, 0, 0), "mkdir": lambda: os.mkdir(path + "3"), "list": lambda: path == ours or os.listdir(os.path.dirname(path)),
    }.items():
        try:
            if attempt() is not True and name not in ("chmod", "fchmodat", "fchmod", "utime", "futimens"):
                done.append((name, path))
        except OSError:
            pass
    if os.path.exists(path) and (os.stat(path).st_mode & 0o22 or os.stat(path).st_mtime < 2):
        done.append(("attributes", path))
done`, file))
	if string(e.Result) != "[]" {
		t.Errorf("%s: %s %v", e.Status, e.Result, e.Error)
	}
	after, err := os.Stat(file)
	body, _ := os.ReadFile(file)
	left, _ := os.ReadDir(dir)
	if err != nil || string(body) != "kept" || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) || len(left) != 1 {
		t.Errorf("the file is now %v %q %v, beside %d others", after, body, err, len(left)-1)
	}
}

// Limits that the kernel holds on one level and the service on another hold on all.
func TestSharesHold(t *testing.T) {
	i := raise(t, "")
	by := i.Isolation().EnforcedBy
	for _, key := range []string{"max_execution_time", "cpu_percent", "max_memory_mb", "max_open_files", "max_threads", "max_processes", "max_output_size", "workspace_max_bytes", "workspace_max_inodes", "file_max_bytes", "lifetime", "idle_timeout"} {
		if by[key] == "" || by[key] == "none" {
			t.Errorf("%s is enforced by %q", key, by[key])
		}
	}
	t.Run("threads", func(t *testing.T) {
		s := open(t, i, func(p *policy.Policy) { p.MaxThreads = 4 })
		e := run(t, s, "import threading, time\nthreading.stack_size(64 << 10)\nn = 0\nfor _ in range(50):\n    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n    n += 1\n    time.sleep(0.01)\nn")
		if e.Usage.EndedBy != "max_threads" && (e.Exception == nil || !strings.Contains(e.Exception.Message, "thread")) {
			t.Errorf("50 threads: %s %s %v", e.Status, e.Result, e.Exception)
		}
	})
	t.Run("cpu", func(t *testing.T) {
		s := open(t, i, func(p *policy.Policy) { p.CPUPercent = 20 })
		e := run(t, s, "import time\nend = time.time() + 3\nwhile time.time() < end: pass")
		if e.Status != sandbox.StatusCompleted || e.Usage.CPUMS > 1200 {
			t.Errorf("a share of 20%% had %.0f ms in %.0f: %s", e.Usage.CPUMS, e.Usage.WallMS, e.Status)
		}
	})
	t.Run("workspace", func(t *testing.T) {
		s := open(t, i, func(p *policy.Policy) { p.WorkspaceMaxBytes = 48 << 20 })
		run(t, s, "open('kept', 'w').write('k')")
		e := run(t, s, "import time\nfor n in range(200):\n    open(f'{n}', 'wb').write(b'x' * (1 << 20))\n    time.sleep(0.01)")
		if e.Usage.EndedBy != "workspace_max_bytes" && (e.Error == nil || !strings.Contains(*e.Error, "No space left")) {
			t.Errorf("200 MB into 48: %s, %q, %v", e.Status, e.Usage.EndedBy, e.Error)
		}
		if e := run(t, s, "import os\n[os.remove(f) for f in os.listdir('.') if f.isdigit()]\nopen('kept').read()"); e.Status != sandbox.StatusCompleted {
			t.Errorf("cleaning up: %s %v", e.Status, e.Error)
		}
	})
	t.Run("memory", func(t *testing.T) {
		s := open(t, i, func(p *policy.Policy) { p.MaxMemoryMB = 64 })
		e := run(t, s, "held = []\nfor _ in range(1000): held.append(bytearray(1 << 20))")
		if e.Usage.EndedBy != "max_memory_mb" && (e.Exception == nil || e.Exception.Type != "MemoryError") {
			t.Errorf("1000 MB into 64: %s, %q, %v", e.Status, e.Usage.EndedBy, e.Exception)
		}
	})
}

// What a hostile session leaves is taken away whatever it is.
func TestAHostileTreeGoes(t *testing.T) {
	folder := t.TempDir()
	outside := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(outside, []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	i, err := isolate.Open(isolate.Config{Python: os.Getenv("GLASSHOUSE_PYTHON"), WarmSets: []isolate.WarmSet{{Name: "bare", Pool: 1}}, DefaultPolicy: policy.Default(), Level: os.Getenv(levelKey), WorkDir: filepath.Join(folder, "walls"), Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o711); err != nil {
		t.Fatal(err)
	}
	s := open(t, i, nil)
	e := run(t, s, fmt.Sprintf(`
import os
os.symlink(%q, "link"); os.symlink("/", "root")
os.makedirs("locked/in"); open("locked/in/x", "w").close()
fd = os.open("locked", os.O_RDONLY); os.fchmod(fd, 0)
os.mkdir("read"); open("read/y", "w").close()
fd = os.open("read", os.O_RDONLY); os.fchmod(fd, 0o500)
for n in range(1500):
    os.mkdir("deep"); os.chdir("deep")
open("bottom", "w").close()
os.chdir(os.environ["HOME"])
`, outside))
	if e.Status != sandbox.StatusCompleted && e.Usage.EndedBy != "workspace_max_inodes" {
		t.Errorf("%s %v", e.Status, e.Error)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	i.Close()
	if left, _ := os.ReadDir(folder); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if body, err := os.ReadFile(outside); err != nil || !bytes.Equal(body, []byte("k")) {
		t.Errorf("a file outside: %q %v", body, err)
	}
}
