package isolatetest

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// targets are the targets of the escapes: files, sockets, a process, memory. plantTargets
// makes them. An escape changes nothing else on the machine, even without any layer.
type targets struct {
	token   string // a secret that no sandbox gets
	folder  string
	context map[string]any // addresses of the targets, for the programs
	queue   uintptr        // a System V message queue

	mu       sync.Mutex
	received strings.Builder // all bytes that the listeners received
	news     chan struct{}   // has an element after something was received
	signals  chan struct{}   // has an element after the victim was signalled
}

// victimCode is a process of the machine that has the token in its environment, its
// memory and an open file, and prints a line for each signal. It ends with its stdin. The signals come
// through a pipe, because Python does not notice one that arrives just before a blocking call.
const victimCode = `
import json, os, select, signal, sqlite3, sys
token = os.environ["GLASSHOUSE_ESCAPE_TOKEN"]
secret = token.encode()
file = open(sys.argv[1])
db = sqlite3.connect(sys.argv[2])
db.execute("CREATE TABLE secrets (token)")
db.execute("INSERT INTO secrets VALUES (?)", (token,))
db.commit()
signals, end = os.pipe2(os.O_NONBLOCK)
signal.set_wakeup_fd(end)
signal.signal(signal.SIGUSR1, lambda *_: None)
print(json.dumps({"address": id(secret) + bytes.__basicsize__ - 1, "descriptor": file.fileno()}), flush=True)
while 0 not in select.select([0, signals], [], [])[0]:
    os.write(1, b"signalled\n" * len(os.read(signals, 4096)))
`

func plantTargets(t *testing.T, python, token string) *targets {
	t.Helper()
	folder, err := os.MkdirTemp("/var/tmp", "glasshouse-escapes-") // not in /tmp, which each child hides by its own
	Must(t, err)
	at := &targets{token: token, folder: folder, news: make(chan struct{}, 1), signals: make(chan struct{}, 1)}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	Must(t, os.Chmod(folder, 0o755))
	Must(t, os.Mkdir(folder+"/open", 0o755))
	Must(t, os.Chmod(folder+"/open", 0o1777))
	for name, mode := range map[string]os.FileMode{"secret": 0o600, "public": 0o644, "target": 0o600} {
		body := token
		if name == "target" {
			body = ""
		}
		Must(t, os.WriteFile(folder+"/"+name, []byte(body), mode))
	}
	id, err := os.ReadFile("/usr/bin/id")
	Must(t, err)
	Must(t, os.WriteFile(folder+"/id", id, 0o755))
	Must(t, os.Chmod(folder+"/id", 0o755|os.ModeSetuid))
	shm := fmt.Sprintf("/dev/shm/%s", filepath.Base(folder))
	Must(t, os.WriteFile(shm, []byte(token), 0o644))
	t.Cleanup(func() { _ = os.Remove(shm) })

	var interfaces []string
	if all, err := net.Interfaces(); err == nil {
		for _, i := range all {
			if i.Flags&net.FlagLoopback == 0 {
				interfaces = append(interfaces, i.Name)
			}
		}
	}
	at.context = map[string]any{
		"secret_file": folder + "/secret", "public_file": folder + "/public", "target_file": folder + "/target", "database_file": folder + "/db",
		"folder": folder, "open_folder": folder + "/open", "shm_file": shm, "setuid_id": folder + "/id", "python": python,
		"abstract": filepath.Base(folder), "unix_path": folder + "/socket", "interfaces": interfaces,
	}
	at.listen(t)
	at.share(t)
	at.startVictim(t, python)
	return at
}

// listen opens the sockets that an escape may reach, and records the bytes that they receive.
func (at *targets) listen(t *testing.T) {
	for name, address := range map[string][2]string{
		"port": {"tcp", "127.0.0.1:0"}, "port6": {"tcp", "[::1]:0"}, "": {"unix", at.folder + "/socket"}, "abstract": {"unix", "@" + filepath.Base(at.folder)},
	} {
		l, err := net.Listen(address[0], address[1])
		if err != nil && name == "port6" {
			continue // cannotSucceed reports it
		}
		Must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		if tcp, ok := l.Addr().(*net.TCPAddr); ok {
			at.context[name] = tcp.Port
		}
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
				buf := make([]byte, 4096)
				n, _ := conn.Read(buf)
				at.record(buf[:n])
				_ = conn.Close()
			}
		}()
	}
	Must(t, os.Chmod(at.folder+"/socket", 0o777))
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	Must(t, err)
	t.Cleanup(func() { _ = udp.Close() })
	at.context["udp_port"] = udp.LocalAddr().(*net.UDPAddr).Port
	go func() {
		buf := make([]byte, 4096)
		for {
			n, _, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			at.record(buf[:n])
		}
	}()
}

func (at *targets) record(p []byte) {
	at.mu.Lock()
	at.received.Write(p)
	at.mu.Unlock()
	select {
	case at.news <- struct{}{}:
	default:
	}
}

// hasReceived reports whether a listener receives nonce within wait.
func (at *targets) hasReceived(nonce string, wait time.Duration) bool {
	end := time.After(wait)
	for {
		at.mu.Lock()
		found := strings.Contains(at.received.String(), nonce)
		at.mu.Unlock()
		if found || wait == 0 {
			return found
		}
		select {
		case <-at.news:
		case <-end:
			wait = 0
		}
	}
}

// wasSignalled reports whether the victim is signalled within wait.
func (at *targets) wasSignalled(wait time.Duration) bool {
	select {
	case <-at.signals:
		return true
	case <-time.After(wait):
		return false
	}
}

// share makes a System V memory segment and a queue that every account may use.
func (at *targets) share(t *testing.T) {
	var random [3]byte
	_, _ = rand.Read(random[:])
	key := int(random[0])<<16 | int(random[1])<<8 | int(random[2]) | 1<<24
	shm, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o666)
	Must(t, err)
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(shm, unix.IPC_RMID, nil) })
	mapped, err := unix.SysvShmAttach(shm, 0, 0)
	Must(t, err)
	copy(mapped, at.token)
	Must(t, unix.SysvShmDetach(mapped))
	queue, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(key), unix.IPC_CREAT|0o666, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	at.queue = queue
	t.Cleanup(func() { _, _, _ = unix.Syscall(unix.SYS_MSGCTL, queue, unix.IPC_RMID, 0) })
	at.context["shm_key"], at.context["queue_key"] = key, key
}

// restore restores the targets that an escape may have changed.
func (at *targets) restore() {
	message := append(make([]byte, 8), at.token...)
	message[0] = 1
	drain := make([]byte, 128)
	for {
		if _, _, errno := unix.Syscall6(unix.SYS_MSGRCV, at.queue, uintptr(unsafe.Pointer(&drain[0])), 120, 0, 0o4000, 0); errno != 0 {
			break
		}
	}
	_, _, _ = unix.Syscall6(
		unix.SYS_MSGSND,
		at.queue,
		uintptr(unsafe.Pointer(&message[0])),
		uintptr(len(at.token)),
		0o4000,
		0,
		0,
	)
	at.wasSignalled(0)
}

func (at *targets) startVictim(t *testing.T, python string) {
	cmd := exec.Command(python, "-I", "-c", victimCode, at.folder+"/secret", at.folder+"/db")
	cmd.Env = []string{tokenVariable + "=" + at.token}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	Must(t, err)
	out, err := cmd.StdoutPipe()
	Must(t, err)
	Must(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	said, err := lines.ReadBytes('\n')
	Must(t, err)
	Must(t, json.Unmarshal(said, &at.context))
	at.context["victim"] = cmd.Process.Pid
	go func() {
		for {
			if _, err := lines.ReadBytes('\n'); err != nil {
				return
			}
			select {
			case at.signals <- struct{}{}:
			default:
			}
		}
	}()
}

// cannotSucceed returns why an escape can't succeed on this machine even without layers, or
// "" if it can succeed.
func cannotSucceed(e escape, at *targets) string {
	if runtime.GOARCH != "amd64" && strings.Contains(strings.Join(e.parts, ""), "call(") {
		return "its system call numbers are those of amd64"
	}
	family := map[string]int{"AF_VSOCK": unix.AF_VSOCK, "AF_ALG": unix.AF_ALG}
	switch e.needs {
	case "":
	case "x32":
		// In a process of its own: a filter of systemd may kill the thread that tries it.
		const getpid = "import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(0x40000000 | 39) < 0)"
		if err := exec.Command(at.context["python"].(string), "-c", getpid).Run(); err != nil {
			return "the kernel has no x32 ABI, or a filter of the tests forbids it"
		}
	case "ipv6":
		if at.context["port6"] == nil {
			return "no IPv6 on loopback"
		}
	case "an interface":
		if len(at.context["interfaces"].([]string)) == 0 {
			return "the only network device is loopback"
		}
	case "ports":
		if err := tryPorts(); err == unix.ENOSYS {
			return "the kernel has no call for I/O ports"
		}
	case "CAP_SYS_RESOURCE":
		if held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0); err != nil ||
			held != 1 {
			return "even root may not raise limits here"
		}
	case "AF_VSOCK", "AF_ALG":
		fd, err := unix.Socket(family[e.needs], unix.SOCK_STREAM, 0)
		if e.needs == "AF_ALG" {
			fd, err = unix.Socket(family[e.needs], unix.SOCK_SEQPACKET, 0)
		}
		if err != nil {
			return fmt.Sprintf("no %s: %v", e.needs, err)
		}
		_ = unix.Close(fd)
	default:
		return "unknown need " + e.needs
	}
	return ""
}
