package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Hosts is a parsed list allowed_hosts: the hosts that a sandbox with network access may connect to. The zero value
// allows nothing. An entry is one of
//
//	example.org         this name
//	*.example.org       every name below it, at any depth, but not example.org itself
//	*                   every name
//	192.0.2.7           this address; an IPv6 address may be in brackets
//	192.0.2.0/24        these addresses
//
// and may end in ":port", as in [2001:db8::/32]:8443. Without a port it allows 80 and 443. Names are compared in
// ASCII (IDNA) and lower case, without a trailing dot.
//
// A name allows the public addresses that it resolves to. A reserved address (private, loopback, link-local; see
// Reserved) is allowed only by an entry for that address, or for a range that lies entirely within one reserved
// range: 10.1.0.0/16 allows private addresses, 0.0.0.0/0 allows only public ones. Therefore a host in a private
// network needs two entries, its name and its address, and a DNS answer cannot open a reserved address.
type Hosts struct {
	rules []hostRule
	list  []string
}

// hostRule is one entry with one port. prefix is valid for entries of addresses only.
type hostRule struct {
	entry      string // as List returns it
	name       string
	subdomains bool // the rule matches the names below name, or every name if name is ""
	prefix     netip.Prefix
	port       uint16
}

// ParseHosts parses the entries of a list. The error is a *FieldError of allowed_hosts that quotes the entry.
func ParseHosts(entries []string) (Hosts, error) {
	var h Hosts
	for i, entry := range entries {
		rule, ports, err := parseEntry(entry)
		if err != nil {
			return Hosts{}, &FieldError{"allowed_hosts", fmt.Sprintf("entry %d, %q: %v", i+1, entry, err), KindInvalid}
		}
		if slices.Contains(h.list, rule.entry) {
			continue
		}
		h.list = append(h.list, rule.entry)
		for _, rule.port = range ports {
			h.rules = append(h.rules, rule)
		}
	}
	return h, nil
}

// List returns the entries in canonical form and in their order, without duplicates.
func (h Hosts) List() []string { return append([]string{}, h.list...) }

// Allows reports whether an entry matches the target. The caller must also check each address that a name resolves to,
// with RefusalReason.
func (h Hosts) Allows(t Target) bool {
	return slices.ContainsFunc(h.rules, func(r hostRule) bool { return r.port == t.Port && r.matches(t) })
}

func (r hostRule) matches(t Target) bool {
	switch {
	case t.Name == "":
		return r.prefix.IsValid() && r.prefix.Contains(t.Addr)
	case r.prefix.IsValid():
		return false
	case r.subdomains:
		return r.name == "" || strings.HasSuffix(t.Name, "."+r.name)
	}
	return r.name == t.Name
}

// RefusalReason returns why a connection to an address is refused, or "" if it is allowed: the address is public, or
// an entry allows this reserved address.
func (h Hosts) RefusalReason(addr netip.Addr, port uint16) string {
	addr = addr.Unmap()
	reason := Reserved(addr)
	isAllowed := func(r hostRule) bool { return r.port == port && r.allowsReserved(addr) }
	if reason == "" || slices.ContainsFunc(h.rules, isAllowed) {
		return ""
	}
	return reason
}

// allowsReserved reports whether the rule allows a reserved address.
func (r hostRule) allowsReserved(addr netip.Addr) bool {
	return r.prefix.IsValid() && r.prefix.Contains(addr) && withinReserved(r.prefix)
}

// FirstUncovered returns the first entry of other that allows more than h, or "". For each port, an entry must lie
// within one entry of h.
func (h Hosts) FirstUncovered(other Hosts) string {
	for _, r := range other.rules {
		if !slices.ContainsFunc(h.rules, func(wide hostRule) bool { return wide.covers(r) }) {
			return r.entry
		}
	}
	return ""
}

func (r hostRule) covers(s hostRule) bool {
	switch {
	case r.port != s.port || r.prefix.IsValid() != s.prefix.IsValid():
		return false
	case r.prefix.IsValid():
		return r.prefix.Bits() <= s.prefix.Bits() && r.prefix.Contains(s.prefix.Addr()) &&
			(withinReserved(r.prefix) || !withinReserved(s.prefix))
	case r.subdomains:
		return r.name == "" || strings.HasSuffix(s.name, "."+r.name) || s.subdomains && s.name == r.name
	}
	return !s.subdomains && r.name == s.name
}

// Target is the host and port of a requested connection. Name is "" if the host is an address.
type Target struct {
	Name string
	Addr netip.Addr
	Port uint16
}

// Host returns the name or the address as in a URL, without the port.
func (t Target) Host() string {
	switch {
	case t.Name != "":
		return t.Name
	case t.Addr.Is6():
		return "[" + t.Addr.String() + "]"
	}
	return t.Addr.String()
}

func (t Target) String() string { return t.Host() + ":" + strconv.Itoa(int(t.Port)) }

// ParseTarget parses host:port. port is the default; if it is 0, text must have a port.
func ParseTarget(text string, port uint16) (Target, error) {
	host, given, err := splitPort(text)
	if err != nil {
		return Target{}, err
	}
	if given != 0 {
		port = given
	}
	if port == 0 {
		return Target{}, fmt.Errorf("has no port")
	}
	if addr, err := parseAddr(host); err == nil {
		return Target{Addr: addr, Port: port}, nil
	}
	name, err := hostName(host)
	return Target{Name: name, Port: port}, err
}

func parseEntry(entry string) (hostRule, []uint16, error) {
	var r hostRule
	if strings.Contains(entry, "://") {
		return r, nil, fmt.Errorf("must be a host, not a URL")
	}
	host, port, err := splitPort(entry)
	if err != nil {
		return r, nil, err
	}
	if strings.Contains(host, "/") {
		r.prefix, err = parsePrefix(host)
		r.entry = r.prefix.String()
	} else if addr, bad := parseAddr(host); bad == nil {
		r.prefix = netip.PrefixFrom(addr, addr.BitLen())
		r.entry = addr.String()
	} else if r.subdomains = host == "*"; r.subdomains {
		r.entry = "*"
	} else {
		host, r.subdomains = strings.CutPrefix(host, "*.")
		r.name, err = hostName(host)
		if r.entry = r.name; r.subdomains {
			r.entry = "*." + r.name
		}
	}
	if err != nil || port == 0 {
		return r, []uint16{80, 443}, err
	}
	if r.prefix.IsValid() && r.prefix.Addr().Is6() {
		r.entry = "[" + r.entry + "]"
	}
	r.entry += ":" + strconv.Itoa(int(port))
	return r, []uint16{port}, nil
}

// splitPort splits a host from its port, which is 0 if there is none. An IPv6 address needs brackets only if a port
// follows.
func splitPort(text string) (host string, port uint16, err error) {
	host, rest := text, ""
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if host, rest, ok = strings.Cut(inner, "]"); !ok || !strings.Contains(host, ":") {
			return "", 0, fmt.Errorf("has brackets around something other than an IPv6 address")
		}
	} else if strings.Count(text, ":") == 1 {
		at := strings.IndexByte(text, ':')
		host, rest = text[:at], text[at:]
	}
	if rest == "" {
		return host, 0, nil
	}
	digits, ok := strings.CutPrefix(rest, ":")
	n, bad := strconv.ParseUint(digits, 10, 16)
	if !ok || bad != nil || n == 0 {
		return "", 0, fmt.Errorf("must have a port from 1 to 65535 after the colon")
	}
	return host, uint16(n), nil
}

func parseAddr(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	if err == nil && addr.Zone() != "" {
		err = fmt.Errorf("has a zone")
	}
	return addr.Unmap(), err
}

func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err == nil && p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	switch {
	case err != nil:
		return p, fmt.Errorf("must be a host, or a range of addresses like 192.0.2.0/24")
	case p != p.Masked():
		return p, fmt.Errorf("has bits set beyond its prefix length; did you mean %s?", p.Masked())
	}
	return p, nil
}

// names converts a name as users write it to the form in the DNS, where underscores and unusual hyphens occur.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false), idna.CheckHyphens(false))

// maxHostText is the maximum length of a name in bytes: the time of the IDNA conversion grows faster than its input.
const maxHostText = 1000

// hostName returns the canonical form of a name. It refuses text that a URL parser or resolver may take for an address
// (127.1, 0x7f000001), and names that change in a second IDNA conversion.
func hostName(text string) (string, error) {
	if len(text) > maxHostText {
		return "", fmt.Errorf("is not a host name")
	}
	ascii, err := names.ToASCII(text)
	name := strings.ToLower(strings.TrimSuffix(ascii, "."))
	if again, bad := names.ToASCII(name); err != nil || bad != nil || again != name || len(name) > 253 {
		return "", fmt.Errorf("is not a host name")
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if last = label; label == "" || len(label) > 63 ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", fmt.Errorf("is not a host name")
		}
	}
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "", fmt.Errorf("is neither a name nor an address")
	}
	return name, nil
}
