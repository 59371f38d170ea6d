package isolate

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/egress"
	"glasshouse/sandbox/protocol"
)

// Address of the proxy for a child that may use the network.
//
// Before such a child locks itself down it moves to a new network namespace, which has
// only a loopback device. There it binds one listener, which it sends to the service.
// Landlock lets it connect to that port only, and the system call filter lets it be a TCP
// client only.
const (
	proxyHost = "127.0.0.1"
	proxyPort = 3128
)

// network returns the description of a child's network for its Enter message.
func (env *warmEnvironment) network() *protocol.Network {
	variables := egress.Environment(net.JoinHostPort(proxyHost, strconv.Itoa(proxyPort)))
	if env.caBundle != "" {
		maps.Copy(variables, map[string]string{"SSL_CERT_FILE": innerCABundle, "REQUESTS_CA_BUNDLE": innerCABundle})
	}
	network := &protocol.Network{Host: proxyHost, Port: proxyPort, Environment: variables}
	if env.isolator.sysctls != nil {
		network.Sysctls = networkSysctls
	}
	return network
}

// networkSysctls limit each buffer of a TCP socket of a network namespace to 256 KiB. The
// values are the smallest, the first and the largest size. No limit of a level without cgroups
// counts these buffers, and version 1 control groups count only those of the child's end of a
// connection, not those of the service's end. Smaller buffers would make downloads slower.
var networkSysctls = map[string]string{
	"ipv4/tcp_rmem": "4096 65536 262144",
	"ipv4/tcp_wmem": "4096 16384 262144",
}

// openSysctls opens /proc/sys/net, through which a child writes networkSysctls. It returns an
// error if that folder is missing or read-only, as in a container.
func openSysctls() (*os.File, error) {
	folder, err := os.OpenFile("/proc/sys/net", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	var fs unix.Statfs_t
	if err = unix.Fstatfs(int(folder.Fd()), &fs); err == nil && fs.Flags&unix.ST_RDONLY != 0 {
		err = unix.EROFS
	}
	if err != nil {
		_ = folder.Close()
		return nil, fmt.Errorf("%s: %w", folder.Name(), err)
	}
	return folder, nil
}

// innerCABundle is where user code finds the certificates that it trusts.
const innerCABundle = "/etc/ssl/certs/ca-certificates.crt"

// machineCABundles are the paths of the bundle on Debian, Fedora, SUSE and Alpine.
var machineCABundles = []string{
	innerCABundle,
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
}

// findCABundle returns the bundle of certificates that user code trusts: the configured
// bundle, else the machine's, else that of the package certifi, else "".
func findCABundle(configured string, packageFolders []string) (string, error) {
	if configured != "" {
		info, err := os.Stat(configured)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a file", configured)
		}
		if err != nil {
			return "", fmt.Errorf("the CA bundle: %w", err)
		}
		return configured, nil
	}
	paths := slices.Clone(machineCABundles)
	for _, folder := range packageFolders {
		paths = append(paths, filepath.Join(folder, "certifi", "cacert.pem"))
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", nil
}
