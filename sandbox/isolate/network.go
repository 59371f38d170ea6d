package isolate

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"glasshouse/sandbox/egress"
	"glasshouse/sandbox/protocol"
)

// A child whose sandbox has the network on is made when it is asked for. Before it
// locks itself down it moves to a network namespace of its own and binds one listener on the
// loopback there, which it hands to the service; nothing else is in that namespace,
// and nothing leads out of it. Landlock lets the child connect to that one port, and
// its filter to be a client of TCP, and no more.
const (
	proxyHost = "127.0.0.1"
	proxyPort = 3128
)

// network is what a child with a network is told of it.
func (e *edition) network() *protocol.Network {
	env := egress.Environment(net.JoinHostPort(proxyHost, strconv.Itoa(proxyPort)))
	if e.bundle != "" {
		maps.Copy(env, map[string]string{"SSL_CERT_FILE": bundleInside, "REQUESTS_CA_BUNDLE": bundleInside})
	}
	return &protocol.Network{Host: proxyHost, Port: proxyPort, Environment: env}
}

// bundleInside is where code finds the certificates that it trusts.
const bundleInside = "/etc/ssl/certs/ca-certificates.crt"

// bundles are where machines keep theirs: Debian, Fedora, SUSE, Alpine.
var bundles = []string{bundleInside, "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}

// certificates is the bundle that code trusts: the given one, else the machine's, else
// that of certifi among the packages, else "".
func certificates(given string, packages []string) (string, error) {
	if given != "" {
		info, err := os.Stat(given)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a file", given)
		}
		if err != nil {
			return "", fmt.Errorf("the CA bundle: %w", err)
		}
		return given, nil
	}
	from := slices.Clone(bundles)
	for _, dir := range packages {
		from = append(from, filepath.Join(dir, "certifi", "cacert.pem"))
	}
	for _, path := range from {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", nil
}

// tcpClient lets a child make TCP sockets, over IPv4 and IPv6, tune and connect them.
func tcpClient(calls verdicts) {
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	deny := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	calls.add([]bpf.Instruction{allow}, unix.SYS_CONNECT)
	calls.add([]bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipFalse: 7},
		bpf.LoadAbsolute{Off: dataArg1, Size: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^uint32(unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC)},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipFalse: 4},
		bpf.LoadAbsolute{Off: dataArg2, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipFalse: 1}, // not SCTP, MPTCP, SMC
		allow,
		deny,
	}, unix.SYS_SOCKET)
	socket := among(dataArg2, unix.SO_KEEPALIVE, unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_LINGER, unix.SO_REUSEADDR, unix.SO_RCVTIMEO, unix.SO_SNDTIMEO)
	tcp := among(dataArg2, unix.TCP_NODELAY, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT, unix.TCP_USER_TIMEOUT, unix.TCP_QUICKACK)
	calls.add(slices.Concat([]bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArg1, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOL_SOCKET, SkipFalse: uint8(len(socket))},
	}, socket, []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipFalse: uint8(len(tcp))},
	}, tcp, []bpf.Instruction{deny}), unix.SYS_SETSOCKOPT)
}
