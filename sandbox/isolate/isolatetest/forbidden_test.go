package isolatetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glasshouse/sandbox/isolate"
)

// attemptCode runs the body of a function. Its result is the return value of the body, or
// "refused: " and the exception.
const attemptCode = `
def attempt():
%s
try:
    got = attempt()
except BaseException as error:
    got = f"refused: {type(error).__name__}"
__result__ = got if isinstance(got, str) else repr(got)
`

// Each of these operations succeeds in a plain Python that runs as root.
func TestForbiddenOperationsFail(t *testing.T) {
	t.Parallel()
	secret := fmt.Sprintf("%s/gh-secret-%d", os.TempDir(), os.Getpid())
	Must(t, os.WriteFile(secret, []byte("x"), 0o644))
	defer os.Remove(secret)
	operations := map[string]string{
		"read /etc/shadow":           `return open("/etc/shadow").read()`,
		"read the machine's /etc":    `return open("/etc/hostname").read()`,
		"read a file of the machine": `return open("` + secret + `").read()`,
		"read /proc":                 `return open("/proc/self/environ").read()`,
		"list /root":                 `import os; return os.listdir("/root")`,
		"write to the root":          `return open("/x", "w")`,
		"write to shared memory":     `return open("/dev/shm/gh-forbidden", "w")`,
		"write to a shared folder":   `return open("/var/tmp/gh-forbidden", "w")`,
		"write to the library":       `import json; return open(json.__file__, "a")`,
		"write to the guest's code":  `import sys; return open(sys.modules["processor_pipeline"].__file__, "a")`,
		"fork":                       `import os; return os.fork()`,
		"spawn":                      `import subprocess, sys; return subprocess.run([sys.executable, "-c", "1"])`,
		"exec":                       `import os; os.execv("/usr/bin/python3", ["x"])`,
		"inet socket":                `import socket; return socket.socket()`,
		"unix socket":                `import socket; return socket.socket(socket.AF_UNIX)`,
		"netlink socket":             `import socket; return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)`,
		"become root":                `import os; return os.setuid(0)`,
		"chroot":                     `import os; return os.chroot("/tmp")`,
		"raise limits":               `import resource; return resource.setrlimit(resource.RLIMIT_NOFILE, (5000, 5000))`,
		"make a device":              `import os; return os.mknod("/tmp/d", 0o020666, os.makedev(1, 1))`,
		"signal another process":     `import os; return os.kill(2, 9)`,
		"mount":                      `return call(165, b"x", b"/tmp", b"tmpfs", 0, None)`,
		"unshare":                    `return call(272, 0x10000000)`,
		"ptrace":                     `return call(101, 0, 0, 0, 0)`,
		"bpf":                        `return call(321, 0, None, 0)`,
		"io_uring":                   `return call(425, 8, None)`,
		"keyctl":                     `return call(250, 0, -3, 0)`,
		"userfaultfd":                `return call(323, 0)`,
		"memfd":                      `return call(319, b"x", 0)`,
		"personality":                `return call(135, 0x0040000)`,
		"open_by_handle":             `return call(304, 0, None, 0)`,
		"clone a namespace":          `return call(56, 0x10000000, 0, 0, 0, 0)`,
		"clone3":                     `return call(435, None, 0)`,
		"quotactl":                   `return call(179, 0, None, 0, None)`,
	}
	// The level rlimits leaves reading to the permissions of the machine's files.
	aboutFiles := map[string]bool{
		"read the machine's /etc": true, "read a file of the machine": true, "read /proc": true,
	}
	i := Shared(t)
	level, _ := i.Level()
	s := NewSession(t, i, nil)
	for name, body := range operations {
		if level == isolate.LevelRLimits && aboutFiles[name] {
			continue
		}
		e := Run(t, s, callPrelude()+fmt.Sprintf(attemptCode, "    "+strings.ReplaceAll(body, "; ", "\n    ")))
		if !strings.HasPrefix(string(e.Result), `"refused: `) {
			t.Errorf("%s: got %s %s %s, want it refused", name, e.Status, e.Result, e.Stderr)
		}
		if e.Isolation.Level != level {
			t.Fatalf("level of the execution: got %q, want %q", e.Isolation.Level, level)
		}
	}
}

// Files of the service's user can neither be read nor changed. The level rlimits leaves reading to their permissions.
func TestServiceFilesAreOutOfReach(t *testing.T) {
	t.Parallel()
	i := Shared(t)
	permitted := "()"
	if level, _ := i.Level(); level == isolate.LevelRLimits {
		permitted = `("read", "list")`
	}
	dir, err := os.MkdirTemp("", "owned")
	Must(t, err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "file")
	Must(t, errors.Join(os.WriteFile(file, []byte("kept"), 0o644), os.Chmod(dir, 0o755)))
	before, err := os.Stat(file)
	Must(t, err)
	e := Run(t, NewSession(t, i, nil), fmt.Sprintf(`
import os, sys
file, ours, permitted = %q, sys.modules["processor_pipeline"].__file__, %s
done = []
for path in file, ours:
    for name, attempt in {
        "read": lambda: path == ours or open(path).read(), "append": lambda: open(path, "a"), "chmod": lambda: os.chmod(path, 0o777),
        "fchmodat": lambda: os.chmod(os.path.basename(path), 0o777, dir_fd=os.open(os.path.dirname(path), os.O_PATH)),
        "fchmod": lambda: os.fchmod(os.open(path, os.O_RDONLY), 0o777), "futimens": lambda: os.utime(os.open(path, os.O_RDONLY), (1, 1)),
        "utime": lambda: os.utime(path, (1, 1)), "truncate": lambda: os.truncate(path, 0), "open and truncate": lambda: os.open(path, os.O_RDONLY | os.O_TRUNC),
        "unlink": lambda: os.unlink(path), "rename": lambda: os.rename(path, "mine"), "link": lambda: os.link(path, "mine"), "create": lambda: open(path + "2", "w"),
        "chown": lambda: os.chown(path, 0, 0), "mkdir": lambda: os.mkdir(path + "3"), "list": lambda: path == ours or os.listdir(os.path.dirname(path)),
    }.items():
        try:
            if attempt() is not True and name not in (*permitted, "chmod", "fchmodat", "fchmod", "utime", "futimens"):
                done.append((name, path))
        except OSError:
            pass
    if os.path.exists(path) and (os.stat(path).st_mode & 0o22 or os.stat(path).st_mtime < 2):
        done.append(("attributes", path))
done`, file, permitted))
	if string(e.Result) != "[]" {
		t.Errorf("operations that succeeded: got %s (%s %s), want none", e.Result, e.Status, Why(e))
	}
	after, err := os.Stat(file)
	body, _ := os.ReadFile(file)
	files, _ := os.ReadDir(dir)
	if err != nil || string(body) != "kept" || after.Mode() != before.Mode() ||
		!after.ModTime().Equal(before.ModTime()) ||
		len(files) != 1 {
		t.Errorf("the file: got %v %q %v among %d, want it unchanged and alone", after, body, err, len(files))
	}
}
