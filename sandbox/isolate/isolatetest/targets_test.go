package isolatetest

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
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

// targets are what the escapes are after: files, sockets, a process, memory. All of
// it is planted here; nothing else of the machine is touched, whatever walls are out.
type targets struct {
	token   string // the secret; nobody inside can know it
	folder  string
	context map[string]any // what the programs are told: where the targets are
	queue   uintptr

	mu      sync.Mutex
	arrived strings.Builder // what came to the listeners
	news    chan struct{}   // something came
	signals chan struct{}   // the victim's
}

// victimCode is a process of the host that has the token in its environment, its
// memory and an open file, and tells of signals. It ends with its stdin.
const victimCode = `
import json, os, signal, sqlite3, sys
token = os.environ["GLASSHOUSE_ESCAPE_TOKEN"]
secret = token.encode()
file = open(sys.argv[1])
db = sqlite3.connect(sys.argv[2])
db.execute("CREATE TABLE secrets (token)")
db.execute("INSERT INTO secrets VALUES (?)", (token,))
db.commit()
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"signalled\n"))
print(json.dumps({"address": id(secret) + bytes.__basicsize__ - 1, "descriptor": file.fileno()}), flush=True)
sys.stdin.read()
`

func plant(t *testing.T, python, token string) *targets {
	t.Helper()
	folder, err := os.MkdirTemp("/var/tmp", "glasshouse-escapes-") // not /tmp, which a child hides by its own
	must(t, err)
	at := &targets{token: token, folder: folder, news: make(chan struct{}, 1), signals: make(chan struct{}, 1)}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	must(t, os.Chmod(folder, 0o755))
	must(t, os.Mkdir(folder+"/open", 0o755))
	must(t, os.Chmod(folder+"/open", 0o1777))
	for name, mode := range map[string]os.FileMode{"secret": 0o600, "public": 0o644, "target": 0o600} {
		body := token
		if name == "target" {
			body = ""
		}
		must(t, os.WriteFile(folder+"/"+name, []byte(body), mode))
	}
	id, err := os.ReadFile("/usr/bin/id")
	must(t, err)
	must(t, os.WriteFile(folder+"/id", id, 0o755))
	must(t, os.Chmod(folder+"/id", 0o755|os.ModeSetuid))
	shm := fmt.Sprintf("/dev/shm/%s", filepath.Base(folder))
	must(t, os.WriteFile(shm, []byte(token), 0o644))
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listen opens the sockets that an escape may reach, and keeps what comes.
func (at *targets) listen(t *testing.T) {
	for name, address := range map[string][2]string{
		"port": {"tcp", "127.0.0.1:0"}, "port6": {"tcp", "[::1]:0"}, "": {"unix", at.folder + "/socket"}, "abstract": {"unix", "@" + filepath.Base(at.folder)},
	} {
		l, err := net.Listen(address[0], address[1])
		if err != nil && name == "port6" {
			continue // missing says so
		}
		must(t, err)
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
				at.heard(buf[:n])
				_ = conn.Close()
			}
		}()
	}
	must(t, os.Chmod(at.folder+"/socket", 0o777))
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = udp.Close() })
	at.context["udp_port"] = udp.LocalAddr().(*net.UDPAddr).Port
	go func() {
		buf := make([]byte, 4096)
		for {
			n, _, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			at.heard(buf[:n])
		}
	}()
}

func (at *targets) heard(p []byte) {
	at.mu.Lock()
	at.arrived.Write(p)
	at.mu.Unlock()
	select {
	case at.news <- struct{}{}:
	default:
	}
}

// came says whether nonce has come to a listener; it waits for it so long.
func (at *targets) came(nonce string, wait time.Duration) bool {
	end := time.After(wait)
	for {
		at.mu.Lock()
		found := strings.Contains(at.arrived.String(), nonce)
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

// signalled says whether the victim was signalled; it waits for it so long.
func (at *targets) signalled(wait time.Duration) bool {
	select {
	case <-at.signals:
		return true
	case <-time.After(wait):
		return false
	}
}

// share makes a System V memory segment and a queue that anybody may use.
func (at *targets) share(t *testing.T) {
	var random [3]byte
	_, _ = rand.Read(random[:])
	key := int(random[0])<<16 | int(random[1])<<8 | int(random[2]) | 1<<24
	shm, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o666)
	must(t, err)
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(shm, unix.IPC_RMID, nil) })
	mapped, err := unix.SysvShmAttach(shm, 0, 0)
	must(t, err)
	copy(mapped, at.token)
	must(t, unix.SysvShmDetach(mapped))
	queue, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(key), unix.IPC_CREAT|0o666, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	at.queue = queue
	t.Cleanup(func() { _, _, _ = unix.Syscall(unix.SYS_MSGCTL, queue, unix.IPC_RMID, 0) })
	at.context["shm_key"], at.context["queue_key"] = key, key
}

// refresh puts back what an escape may have taken.
func (at *targets) refresh() {
	message := append(make([]byte, 8), at.token...)
	message[0] = 1
	drain := make([]byte, 128)
	for {
		if _, _, errno := unix.Syscall6(unix.SYS_MSGRCV, at.queue, uintptr(unsafe.Pointer(&drain[0])), 120, 0, 0o4000, 0); errno != 0 {
			break
		}
	}
	_, _, _ = unix.Syscall6(unix.SYS_MSGSND, at.queue, uintptr(unsafe.Pointer(&message[0])), uintptr(len(at.token)), 0o4000, 0, 0)
	at.signalled(0)
}

func (at *targets) startVictim(t *testing.T, python string) {
	cmd := exec.Command(python, "-I", "-c", victimCode, at.folder+"/secret", at.folder+"/db")
	cmd.Env = []string{"GLASSHOUSE_ESCAPE_TOKEN=" + at.token}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	said, err := lines.ReadBytes('\n')
	must(t, err)
	must(t, json.Unmarshal(said, &at.context))
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

func nonce() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// missing says why this machine can't show an escape succeed; "" where it can.
func missing(e escape, at *targets) string {
	if runtime.GOARCH != "amd64" && strings.Contains(strings.Join(e.parts, ""), "call(") {
		return "its system calls are numbered for amd64"
	}
	family := map[string]int{"AF_VSOCK": unix.AF_VSOCK, "AF_ALG": unix.AF_ALG}
	switch e.needs {
	case "":
	case "x32":
		if _, _, errno := unix.RawSyscall(0x40000000|39, 0, 0, 0); errno != 0 {
			return "the kernel has no x32 ABI"
		}
	case "ipv6":
		if at.context["port6"] == nil {
			return "no IPv6 on loopback"
		}
	case "an interface":
		if len(at.context["interfaces"].([]string)) == 0 {
			return "no network device but loopback"
		}
	case "ports":
		if err := unix.Ioperm(0x80, 1, 0); err == unix.ENOSYS {
			return "the kernel has no call for the machine's ports"
		}
	case "CAP_SYS_RESOURCE":
		if held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0); err != nil || held != 1 {
			return "root itself may not raise limits here"
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
