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
	"glasshouse/sandbox"
	"glasshouse/sandbox/protocol"
)

// trial is what a child tries at its wall: the outcome of each is "done", or the
// name of the exception.
const trial = `
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

// found is what the trial found.
type found struct {
	PID, UID, Dumpable, Seccomp, Capabilities int
	NoNewPrivs                                int `json:"no_new_privs"`
	Own, Read, Write, Fork, Socket            string
	Session                                   bool
}

// wrong says where the wall is not what its level promises.
func (f found) wrong(r rung, ids identities) error {
	var bad []string
	expect := func(ok bool, what string) {
		if !ok {
			bad = append(bad, what)
		}
	}
	expect(f.Own == "done", "a child can't write in its own folder: "+f.Own)
	expect(!r.private || f.PID == 1, "a child is not alone in its pid namespace")
	expect(r.private || ids.count == 0 || f.UID >= ids.first, "a child kept the service's uid")
	expect(f.Dumpable == 0 && f.NoNewPrivs == 1 && f.Seccomp == 2, "a child has no filter")
	expect(!r.private || f.Capabilities == 0, "a child has capabilities")
	expect(!r.landlock || f.Read != "done" && f.Write != "done", "a child reaches a file of the machine")
	expect(f.Fork != "done" && f.Socket != "done", "a child can fork or make sockets")
	if len(bad) == 0 {
		return nil
	}
	return errors.New("the wall was raised, and does not hold: " + strings.Join(bad, "; "))
}

// try has a child of z try the wall.
func (i *Isolator) try(n *nursery, z *zygote) (err error) {
	dir, err := os.MkdirTemp("", "glasshouse-canary-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	canary := filepath.Join(dir, "canary")
	// Its permissions are not what should hold.
	if err := errors.Join(os.WriteFile(canary, nil, 0o666), os.Chmod(canary, 0o666), os.Chmod(dir, 0o755)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	pol := policy.Default()
	pol.Profile = policy.ProfileUnrestricted
	p, err := n.birthOf(ctx, z, ProcessSpec{Policy: pol})
	if err != nil {
		return fmt.Errorf("a child can't be locked down: %w", err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := n.of.assign(p, pol); err != nil {
		return err
	}
	if err := p.Conn.Write(protocol.KindRun, protocol.Run{ExecutionID: "probe", Code: fmt.Sprintf(trial, canary), Context: json.RawMessage("{}")}); err != nil {
		return err
	}
	watchdog := time.AfterFunc(10*time.Second, p.Kill)
	defer watchdog.Stop()
	kind, body, err := p.Conn.Read()
	if err != nil || kind != protocol.KindDone {
		return fmt.Errorf("a child that tries the wall gave no answer: %w", err)
	}
	var outcome sandbox.Outcome
	if err := json.Unmarshal(body, &outcome); err != nil {
		return err
	}
	if outcome.Exception != nil {
		return fmt.Errorf("a child that tries the wall failed: %s: %s", outcome.Exception.Type, outcome.Exception.Message)
	}
	var f found
	if err := json.Unmarshal(outcome.Result, &f); err != nil {
		return err
	}
	i.sessionPath = f.Session
	return f.wrong(i.rung, i.ids)
}
