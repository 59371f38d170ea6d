package isolatetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/supervisor"
)

// A child with the network on has the one listener of its own; it may be a TCP client
// of that, and of nothing else. A level without network namespaces has no such child.
func TestNetworkOfItsOwn(t *testing.T) {
	const probe = `
import os, socket
def no(f, *a):
    try:
        f(*a)
    except OSError as e:
        return e.errno
proxy = socket.create_connection(("127.0.0.1", 3128))
proxy.sendall(b"GET http://10.0.0.1/ HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n")
said = proxy.recv(100).decode()
[said[:35], no(socket.socket, socket.AF_UNIX), no(socket.socket, socket.AF_INET, socket.SOCK_DGRAM), no(socket.socket, socket.AF_PACKET, socket.SOCK_RAW),
 no(socket.socket, 16, socket.SOCK_RAW), no(socket.create_connection, ("127.0.0.1", 22)), no(socket.create_server, ("127.0.0.1", 0)), no(os.stat, "/proc/net"),
 sorted(os.environ)]`
	elsewhere := syscall.EACCES
	if version, _, _ := syscall.Syscall(444, 0, 0, 1); int(version) < 4 { // Landlock's, which knows ports from 4 on
		elsewhere = syscall.ECONNREFUSED
	}
	want := fmt.Sprintf(`["HTTP/1.1 403 10.0.0.1:80 is not in ", 1, 1, 1, 1, %d, 1, 2, ["ARROW_DEFAULT_MEMORY_POOL", "HOME", "HTTPS_PROXY", "HTTP_PROXY", `+
		`"LANG", "MKL_NUM_THREADS", "MPLBACKEND", "MPLCONFIGDIR", "NO_PROXY", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS", `+
		`"PATH", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "TMPDIR", "TZ", "http_proxy", "https_proxy", "no_proxy"]]`, elsewhere)
	i := raise(t, "")
	online := func(p *policy.Policy) { p.EnableNetworkAccess, p.AllowedHosts = true, []string{"example.org"} }
	if level, _ := i.Level(); level == isolate.LevelLandlock || level == isolate.LevelRLimits {
		p := policy.Default()
		online(&p)
		_, err := supervisor.New(i, 10*time.Second).Open(context.Background(), sandbox.Sandbox{ID: "t", Policy: p}, "")
		var no *sandbox.Error
		if !errors.As(err, &no) || no.Fault != sandbox.FaultForbidden || no.Field != "enable_network_access" || !strings.Contains(no.Detail, level) {
			t.Errorf("a network without a namespace: %v", err)
		}
		return
	}
	s := open(t, i, online)
	for range 2 { // the second is a new child of the same sandbox
		e := run(t, s, probe)
		if got := string(e.Result); got != want {
			t.Errorf("%s %v %s", got, e.Error, e.Stderr)
		}
		if len(e.Connections) != 1 || e.Connections[0].Host != "10.0.0.1" {
			t.Errorf("%+v", e.Connections)
		}
		run(t, s, "import os\nos._exit(0)")
	}
}
