package isolatetest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// Invariant 7: a child with a network can only be a TCP client of the proxy.
// A level without network namespaces refuses such a sandbox.
func TestNetworkReachesOnlyTheProxy(t *testing.T) {
	t.Parallel()
	const code = `
import os, socket
def errno(f, *a):
    try:
        f(*a)
    except OSError as e:
        return e.errno
proxy = socket.create_connection(("127.0.0.1", 3128))
proxy.sendall(b"GET http://10.0.0.1/ HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n")
answer = proxy.recv(100).decode()
[answer[:35], errno(socket.socket, socket.AF_UNIX), errno(socket.socket, socket.AF_INET, socket.SOCK_DGRAM), errno(socket.socket, socket.AF_PACKET, socket.SOCK_RAW),
 errno(socket.socket, 16, socket.SOCK_RAW), errno(socket.create_connection, ("127.0.0.1", 22)), errno(socket.create_server, ("127.0.0.1", 0)), errno(os.stat, "/proc/net"),
 sorted(os.environ)]`
	otherPort := syscall.EACCES
	if abi, _, _ := syscall.Syscall(444, 0, 0, 1); int(abi) < 4 { // Landlock restricts ports from ABI 4 on
		otherPort = syscall.ECONNREFUSED
	}
	want := fmt.Sprintf(
		`["HTTP/1.1 403 10.0.0.1:80 is not in ", 1, 1, 1, 1, %d, 1, 2, ["ARROW_DEFAULT_MEMORY_POOL", "HOME", "HTTPS_PROXY", "HTTP_PROXY", `+
			`"JOBLIB_MULTIPROCESSING", "LANG", "LOGNAME", "MKL_NUM_THREADS", "MPLBACKEND", "MPLCONFIGDIR", `+
			`"NO_PROXY", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS", `+
			`"PATH", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "TMPDIR", "TZ", "USER", "http_proxy", "https_proxy", `+
			`"no_proxy"]]`,
		otherPort,
	)
	i := Shared(t)
	online := func(p *policy.Policy) { p.EnableNetworkAccess, p.AllowedHosts = true, []string{"example.org"} }
	if level, _ := i.Level(); !hasNamespaces(level) {
		p := policy.Default()
		online(&p)
		_, err := OpenSession(i, p, 10*time.Second)
		var refused *sandbox.Error
		if !errors.As(err, &refused) || refused.Fault != sandbox.FaultForbidden ||
			refused.Field != "enable_network_access" ||
			!strings.Contains(refused.Detail, level) {
			t.Errorf("a network without a namespace: got %v, want FaultForbidden", err)
		}
		return
	}
	s := NewSession(t, i, online)
	for range 2 { // the second time in a new process of the same session
		e := Run(t, s, code)
		if got := string(e.Result); got != want {
			t.Errorf("got  %s (%s %s)\nwant %s", got, Why(e), e.Stderr, want)
		}
		if len(e.Connections) != 1 || e.Connections[0].Host != "10.0.0.1" {
			t.Errorf("connections on record: got %+v, want one to 10.0.0.1", e.Connections)
		}
		Run(t, s, "import os\nos._exit(0)")
	}
}

// networkSession opens a session whose sandbox may use the network, or returns nil on a level without network
// namespaces, where code can't make a socket at all (TestForbiddenOperationsFail).
func networkSession(t *testing.T, change func(*policy.Policy)) *supervisor.Session {
	t.Helper()
	i := Shared(t)
	if level, _ := i.Level(); !hasNamespaces(level) {
		return nil
	}
	return NewSession(t, i, func(p *policy.Policy) {
		p.EnableNetworkAccess, p.AllowedHosts = true, []string{"example.org"}
		if change != nil {
			change(p)
		}
	})
}

// Landlock checks the port in connect, so a socket must not be able to connect in another call. Code can't choose
// the size of a socket's buffers either.
func TestSocketOptionsAreRestricted(t *testing.T) {
	t.Parallel()
	s := networkSession(t, nil)
	if s == nil {
		return
	}
	e := Run(t, s, `
import errno, socket
FASTOPEN, FASTOPEN_CONNECT, SNDBUFFORCE, RCVBUFFORCE = 0x20000000, 30, 32, 33
def attempt(call, *args):
    try:
        with socket.socket() as s:
            call(s, *args)
            return "done"
    except OSError as error:
        return errno.errorcode[error.errno]
option = socket.socket.setsockopt
ssh, proxy = ("127.0.0.1", 22), ("127.0.0.1", 3128)
results = {"fast open": attempt(socket.socket.sendto, b"x", FASTOPEN, ssh)}
results["fast open of the proxy"] = attempt(socket.socket.sendto, b"x", FASTOPEN, proxy)
results["fast open by sendmsg"] = attempt(socket.socket.sendmsg, [b"x"], [], FASTOPEN, ssh)
results["connect in the first send"] = attempt(option, socket.IPPROTO_TCP, FASTOPEN_CONNECT, 1)
for number in socket.SO_SNDBUF, socket.SO_RCVBUF, SNDBUFFORCE, RCVBUFFORCE:
    results[f"buffer by option {number}"] = attempt(option, socket.SOL_SOCKET, number, 1 << 20)
{name: result for name, result in results.items() if result != "EPERM"}`)
	if string(e.Result) != "{}" {
		t.Errorf("calls that do not fail with EPERM: got %s (%s %s), want none", e.Result, e.Status, Why(e))
	}
}

// Data that nobody reads fills the buffers of sockets, which no limit of memory counts on some levels. The broker
// reads nothing of these requests, because the name of their host is never resolved.
func TestUnreadSocketsTakeLittleMemory(t *testing.T) {
	t.Parallel()
	i := Shared(t)
	if level, _ := i.Level(); !hasNamespaces(level) {
		return
	}
	machine := func() (values []string) {
		for _, name := range []string{"tcp_rmem", "tcp_wmem"} {
			text, err := os.ReadFile("/proc/sys/net/ipv4/" + name)
			Must(t, err)
			values = append(values, string(text))
		}
		return values
	}
	before := machine()
	super := supervisor.New(i, 20*time.Second)
	super.Network.Resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	p := Policy()
	p.EnableNetworkAccess, p.AllowedHosts = true, []string{"example.org"}
	s, err := super.Open(context.Background(), sandbox.Sandbox{ID: "t", Policy: p}, "")
	Must(t, err)
	defer s.Close()
	const connections = 60
	e := Run(t, s, fmt.Sprintf(`
import select, socket
poll, by_number = select.poll(), {}
for _ in range(%d):
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(b"POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\nContent-Length: 1000000000\r\n\r\n")
    s.setblocking(False)
    by_number[s.fileno()] = s
    poll.register(s, select.POLLOUT)
total, data = 0, b"x" * (1 << 20)
while ready := poll.poll(500):
    for number, _ in ready:
        total += by_number[number].send(data)
total`, connections))
	const maxBytes = connections * 512 << 10
	if sent, err := strconv.Atoi(string(e.Result)); err != nil || sent < connections<<10 || sent > maxBytes {
		t.Errorf("bytes that %d connections accept before somebody reads them: got %s (%s %s), want at most %d",
			connections, e.Result, e.Status, Why(e), maxBytes)
	}
	if strings.HasPrefix(i.Isolation().EnforcedBy["max_memory_mb"], "cgroup") && e.Usage.PeakMemoryMB < 12 {
		t.Errorf("the peak of memory: got %g MB, want the buffers in it", e.Usage.PeakMemoryMB)
	}
	if after := machine(); !slices.Equal(before, after) {
		t.Errorf("the machine's buffer sizes: got %q, want %q as before", after, before)
	}
}
