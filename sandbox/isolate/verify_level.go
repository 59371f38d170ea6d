package isolate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox/isolate/zygote"
	"glasshouse/sandbox/protocol"
)

// breakoutCode runs in a child and tries forbidden operations. It reports "done" for an
// attempt that succeeded, and the name of the exception for an attempt that failed.
const breakoutCode = `
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def attempt(do):
    try:
        do()
        return "done"
    except BaseException as error:
        return type(error).__name__
def fork():
    if os.fork() == 0:
        os._exit(0)
def own():
    with open("probe", "w") as file:
        file.write("x")
    os.remove("probe")
{"pid": os.getpid(), "uid": os.getuid(), "dumpable": libc.prctl(3, 0, 0, 0, 0), "no_new_privs": libc.prctl(39, 0, 0, 0, 0),
 "seccomp": libc.prctl(21, 0, 0, 0, 0), "capabilities": sum(libc.prctl(23, c, 0, 0, 0) == 1 for c in range(41)),
 "own": attempt(own), "read": attempt(lambda: open(%[1]q).read()), "write": attempt(lambda: open(%[1]q, "a")),
 "fork": attempt(fork), "socket": attempt(socket.socket), "session": os.path.realpath("/session") == os.path.realpath(".")}
`

// breakoutResult is the result of breakoutCode.
type breakoutResult struct {
	PID, UID, Dumpable, Seccomp, Capabilities int
	NoNewPrivs                                int `json:"no_new_privs"`
	Own, Read, Write, Fork, Socket            string
	Session                                   bool
}

// check returns an error if a layer of the level does not work.
func (r breakoutResult) check(l levelSpec, uids zygote.UIDRange) error {
	const succeeded = "done"
	var failures []string
	expect := func(ok bool, failure string) {
		if !ok {
			failures = append(failures, failure)
		}
	}
	expect(r.Own == succeeded, "a child can't write to its own folder: "+r.Own)
	expect(!l.namespaces || r.PID == 1, "a child shares its pid namespace")
	expect(l.namespaces || uids.Count == 0 || r.UID >= uids.First, "a child has the service's uid")
	expect(r.Dumpable == 0 && r.NoNewPrivs == 1 && r.Seccomp == 2, "a child has no system call filter")
	expect(!l.namespaces || r.Capabilities == 0, "a child has capabilities")
	expect(!l.landlock || r.Read != succeeded && r.Write != succeeded, "a child can open a file of the machine")
	expect(r.Fork != succeeded && r.Socket != succeeded, "a child can fork or make sockets")
	if len(failures) == 0 {
		return nil
	}
	return errors.New("the isolation layers were set up, but do not work: " + strings.Join(failures, "; "))
}

// verifyLevel runs breakoutCode in a child of z.
func (i *Isolator) verifyLevel(pool *zygotePool, z *zygote.Zygote) (err error) {
	dir, err := os.MkdirTemp("", "glasshouse-canary-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	canary := filepath.Join(dir, "canary")
	// The file's mode allows everyone to open it, so that only the isolation layers protect it.
	if err := errors.Join(os.WriteFile(canary, nil, 0o666), os.Chmod(canary, 0o666), os.Chmod(dir, 0o755)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	pol := policy.Default()
	pol.Profile = policy.ProfileUnrestricted
	p, err := pool.makeChildOf(ctx, z, ProcessSpec{Policy: pol})
	if err != nil {
		return fmt.Errorf("a child can't lock itself down: %w", err)
	}
	defer p.Close()
	if err := pool.env.assign(p, pol); err != nil {
		return err
	}
	code := fmt.Sprintf(breakoutCode, canary)
	if err := p.Conn.Write(protocol.KindRun, protocol.Run{ExecutionID: "probe", Code: code, Context: json.RawMessage("{}")}); err != nil {
		return err
	}
	watchdog := time.AfterFunc(10*time.Second, p.Kill)
	defer watchdog.Stop()
	kind, body, err := p.Conn.Read()
	if err != nil || kind != protocol.KindDone {
		return fmt.Errorf("a child that tests the isolation level did not answer: %w", err)
	}
	var done protocol.Done
	if err := json.Unmarshal(body, &done); err != nil {
		return err
	}
	if len(done.Exception) > 0 && string(done.Exception) != "null" {
		return fmt.Errorf("a child that tests the isolation level failed: %s", done.Exception)
	}
	var result breakoutResult
	if err := json.Unmarshal(done.Result, &result); err != nil {
		return err
	}
	i.hasSessionPath = result.Session
	return result.check(i.level, i.uids)
}
