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
	"glasshouse/sandbox"
)

// no is why a request is not brokered. Its reason is one line of ASCII that names the
// host, because it stands in the status line of the answer.
type no struct {
	code   int
	status sandbox.ConnectionStatus
	reason string
	advice string // for the body
}

func refused(reason, advice string) *no {
	return &no{http.StatusForbidden, sandbox.ConnectionRefused, reason, advice}
}

func failed(code int, reason string) *no {
	return &no{code: code, status: sandbox.ConnectionFailed, reason: reason}
}

// maxAddresses is how many addresses of one name are tried.
const maxAddresses = 8

// connect makes the connection to a target, or says why there is none.
func (b *Broker) connect(ctx context.Context, to policy.Target) (net.Conn, netip.AddrPort, *no) {
	var none netip.AddrPort
	if !b.Hosts.Allows(to) {
		return nil, none, refused(to.String()+" is not in allowed_hosts",
			"This sandbox reaches only the hosts and ports of its config key allowed_hosts, which a new sandbox may be created with.")
	}
	ctx, cancel := context.WithTimeout(ctx, b.Limits.ConnectTimeout)
	defer cancel()
	addrs := []netip.Addr{to.Addr}
	if to.Name != "" {
		var err error
		if addrs, err = b.Resolve(ctx, to.Name); err != nil || len(addrs) == 0 {
			return nil, none, failed(unreachable(ctx), to.String()+" could not be resolved"+because(err))
		}
	}
	if why := b.check(to, addrs); why != nil {
		return nil, none, why
	}
	addrs = addrs[:min(len(addrs), maxAddresses)]
	var err error
	for i, addr := range addrs {
		at := netip.AddrPortFrom(addr.Unmap(), to.Port)
		var c net.Conn
		if c, err = b.try(ctx, at, len(addrs)-i); err == nil {
			return c, at, nil
		}
	}
	return nil, none, failed(unreachable(ctx), to.String()+" could not be reached"+because(err))
}

// check refuses a target where any of its addresses is out of bounds: an answer that
// mixes public and inner addresses is not one to pick from.
func (b *Broker) check(to policy.Target, addrs []netip.Addr) *no {
	mine, err := b.LocalAddresses()
	if err != nil {
		return failed(http.StatusBadGateway, "the machine's own addresses could not be listed")
	}
	for _, addr := range addrs {
		addr = addr.Unmap()
		why, advice := b.Hosts.Refuses(addr, to.Port), "Such an address is reached only where allowed_hosts names it as an address, alone or in a range, with its port."
		if policy.Reserved(addr) == "" && slices.Contains(mine, addr) {
			why, advice = "an address of this service's own machine", "It is not reached from a sandbox."
		}
		if why != "" && to.Name != "" {
			return refused(fmt.Sprintf("%s resolves to %s, %s, which is not in allowed_hosts", to, addr.WithZone(""), why), advice)
		} else if why != "" {
			return refused(fmt.Sprintf("%s is %s", to, why), advice)
		}
	}
	return nil
}

// try connects to one address within its share of the time, so that one that never
// answers leaves some to those after it.
func (b *Broker) try(ctx context.Context, at netip.AddrPort, left int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
	}
	return b.Dial(ctx, at)
}

func unreachable(ctx context.Context) int {
	if ctx.Err() != nil {
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// because says in a few words of its own what went wrong: errors of the system name
// the machine's name servers and addresses.
func because(err error) string {
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return ": no such host"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return ": no answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return ": connection refused"
	}
	return ""
}

// resolve asks for the absolute name: the machine's search list must not make
// another host of it.
func resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
}

func dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", to.String())
}

func own() ([]netip.Addr, error) {
	nets, err := net.InterfaceAddrs()
	var list []netip.Addr
	for _, n := range nets {
		if prefix, err := netip.ParsePrefix(n.String()); err == nil {
			list = append(list, prefix.Addr().Unmap())
		}
	}
	return list, err
}
