package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServiceManagerLearnsTheState serves a NOTIFY_SOCKET as systemd does. READY=1 arrives when requests are answered,
// and STOPPING=1 when the service ends.
func TestServiceManagerLearnsTheState(t *testing.T) {
	t.Parallel()
	path := binary(t)
	for name, address := range map[string]string{
		"path":          filepath.Join(t.TempDir(), "notify"),
		"abstract name": "@glasshouse-test-" + rand.Text(),
	} {
		t.Run(name, func(t *testing.T) {
			socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
			dir := dataDir(t)
			var messages strings.Builder
			// read returns when a message has the text.
			read := func(want string) error {
				_ = socket.SetReadDeadline(time.Now().Add(2 * time.Minute))
				for buffer := make([]byte, 4096); ; {
					n, err := socket.Read(buffer)
					if err != nil {
						return fmt.Errorf("got messages %q, %w, want %s", messages.String(), err, want)
					}
					messages.Write(append(buffer[:n], '\n'))
					if strings.Contains(string(buffer[:n]), want) {
						return nil
					}
				}
			}
			ready := make(chan error, 1)
			go func() { // asks for an answer at the moment of the message
				err := read(notifyReady)
				if err == nil && dial(dir) == nil {
					err = errors.New("after READY=1: got no answer of /healthz, want one")
				}
				ready <- err
			}()
			cmd, _ := start(t, path, dir, "NOTIFY_SOCKET="+address)
			if err := <-ready; err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(read(notifyStopping), cmd.Wait()); err != nil {
				t.Errorf("after SIGTERM: got %v, want STOPPING=1 and exit code 0", err)
			}
			begin, rest, _ := strings.Cut(messages.String(), notifyReady)
			if !strings.Contains(begin, notifyStatus+"starting the isolation") ||
				!strings.Contains(rest, notifyStatus+"Listening on http://127.0.0.1:") {
				t.Errorf("got messages %q, want the steps of the start before %s, and the address with it",
					messages.String(), notifyReady)
			}
		})
	}
}

// TestServiceStartsWithoutItsServiceManager covers a NOTIFY_SOCKET that nothing serves.
func TestServiceStartsWithoutItsServiceManager(t *testing.T) {
	t.Parallel()
	cmd, c := start(t, binary(t), dataDir(t), "NOTIFY_SOCKET="+filepath.Join(t.TempDir(), "missing"))
	c.must(t, "GET", "/readyz", nil)
	stop(t, cmd)
}

// TestUnitIsValid has systemd check the unit, with the test's binary in place of the installed one.
func TestUnitIsValid(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("report: not tested, because this machine has no systemd-analyze: the unit is valid")
		return
	}
	text, err := os.ReadFile("../../deploy/systemd/glasshouse.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "glasshouse.service")
	text = []byte(strings.ReplaceAll(string(text), "/usr/bin/glasshouse", binary(t)))
	if err := os.WriteFile(unit, text, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", "--recursive-errors=no", unit).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: got %v and %s, want no message", err, out)
	}
}

// With RestrictSUIDSGID, openat2 fails, and no upload and no artifact can be opened. The unit names the others.
func TestUnitHasNoDirectiveThatSandboxesFailWith(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/systemd/glasshouse.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"RestrictSUIDSGID", "RestrictNamespaces", "PrivateUsers", "ProtectControlGroups", "ProtectHostname",
		"ProtectProc", "ProcSubset", "ProtectKernelTunables", "MemoryDenyWriteExecute",
	} {
		if strings.Contains(string(text), "\n"+name+"=") {
			t.Errorf("the unit sets %s, want it absent", name)
		}
	}
}
