package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"glasshouse/policy"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// rejection says why a request gets no connection. The reason names the host. It is one line of ASCII, because the
// response has it in its status line.
type rejection struct {
	code   int // of HTTP
	status sandbox.ConnectionStatus
	reason string
	advice string // for the body
}

// refused returns the rejection of a host that the sandbox may not reach.
func refused(reason, advice string) *rejection {
	return &rejection{http.StatusForbidden, sandbox.ConnectionRefused, reason, advice}
}

// failed returns the rejection of a host that cannot be reached.
func failed(code int, reason string) *rejection {
	return &rejection{code: code, status: sandbox.ConnectionFailed, reason: reason}
}

const maxAddresses = 8 // how many addresses of a name are tried

// connect connects to a target, or returns why it does not.
func (b *Broker) connect(ctx context.Context, to policy.Target) (net.Conn, netip.AddrPort, *rejection) {
	var none netip.AddrPort
	if !b.Hosts.Allows(to) {
		return nil, none, refused(to.String()+" is not in allowed_hosts", "This sandbox reaches only the hosts and "+
			"ports in its config key allowed_hosts. Set this key when you create a sandbox.")
	}
	ctx, cancel := context.WithTimeout(ctx, b.Limits.ConnectTimeout)
	defer cancel()
	addrs := []netip.Addr{to.Addr}
	if to.Name != "" {
		var err error
		if addrs, err = b.Resolve(ctx, to.Name); err != nil || len(addrs) == 0 {
			return nil, none, failed(errorCode(ctx), to.String()+" could not be resolved"+describe(err))
		}
	}
	if r := b.checkAddresses(to, addrs); r != nil {
		return nil, none, r
	}
	addrs = addrs[:min(len(addrs), maxAddresses)]
	var err error
	for i, addr := range addrs {
		at := netip.AddrPortFrom(addr.Unmap(), to.Port)
		var c net.Conn
		if c, err = b.dialWithShare(ctx, at, len(addrs)-i); err == nil {
			return c, at, nil
		}
	}
	return nil, none, failed(errorCode(ctx), to.String()+" could not be reached"+describe(err))
}

// checkAddresses refuses a target if any of its addresses is not allowed, because a name server that mixes public and
// internal addresses is not trusted.
func (b *Broker) checkAddresses(to policy.Target, addrs []netip.Addr) *rejection {
	local, err := b.LocalAddresses()
	if err != nil {
		return failed(http.StatusBadGateway, "the machine's own addresses could not be listed")
	}
	for _, addr := range addrs {
		addr = addr.Unmap()
		reason := b.Hosts.RefusalReason(addr, to.Port)
		advice := "A sandbox reaches such an address only if allowed_hosts has the address or its range, with the port."
		if policy.Reserved(addr) == "" && slices.Contains(local, addr) {
			reason, advice = "an address of this service's own machine", "A sandbox cannot reach it."
		}
		if reason != "" && to.Name != "" {
			text := fmt.Sprintf("%s resolves to %s, %s, which is not in allowed_hosts", to, addr.WithZone(""), reason)
			return refused(text, advice)
		} else if reason != "" {
			return refused(fmt.Sprintf("%s is %s", to, reason), advice)
		}
	}
	return nil
}

// dialWithShare dials one address within its share of the remaining time, so that an address that does not answer
// leaves time for the next ones. left is the number of remaining addresses, including this one.
func (b *Broker) dialWithShare(ctx context.Context, at netip.AddrPort, left int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
	}
	c, err := b.Dial(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := checkDescriptor(b.Descriptors, c); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func errorCode(ctx context.Context) int {
	if ctx.Err() != nil {
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// describe returns a fixed text for the cause of an error. It does not use the texts of system errors, because they
// contain the machine's name servers and addresses.
func describe(err error) string {
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return ": no such host"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return ": no answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return ": connection refused"
	case errors.Is(err, limit.ErrNoDescriptors), errors.Is(err, syscall.EMFILE):
		return ": the service has no file descriptors left for it, try again later"
	}
	return ""
}

// resolve looks up the absolute name. The trailing dot prevents that the resolver appends a domain of the machine's
// search list.
func resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
}

func dialTCP(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", to.String())
}

func interfaceAddresses() ([]netip.Addr, error) {
	nets, err := net.InterfaceAddrs()
	var list []netip.Addr
	for _, n := range nets {
		if prefix, err := netip.ParsePrefix(n.String()); err == nil {
			list = append(list, prefix.Addr().Unmap())
		}
	}
	return list, err
}
