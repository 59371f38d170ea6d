package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Hosts is a parsed allowed_hosts: what a sandbox with the network on may
// reach. The zero value allows nothing. An entry is one of
//
//	example.org         this name
//	*.example.org       every name below it, at any depth, and not itself
//	*                   every name
//	192.0.2.7           this address; an IPv6 address may be in brackets
//	192.0.2.0/24        these addresses
//
// and may end in ":port" ([2001:db8::/32]:8443); without one it means the ports
// 80 and 443. Names are compared in ASCII (IDNA) and lower case, without a
// trailing dot.
//
// A name allows the public addresses that it resolves to. An address that is
// reserved (private, loopback, link-local, ...: Reserved) is allowed only where
// an entry names it as an address, alone or in a range that lies wholly within
// what it is reserved with: 10.1.0.0/16 names private addresses, and 0.0.0.0/0
// means the public ones. So a name of an inner host needs two entries, its own
// and its address's, and no answer of a name server opens anything.
type Hosts struct {
	rules []hostRule
	list  []string
}

// hostRule is one pattern with one port. Prefix is valid for addresses only.
type hostRule struct {
	entry  string // as List has it
	name   string
	below  bool // the names below name; every name where it is ""
	prefix netip.Prefix
	port   uint16
}

// ParseHosts reads the entries of a list. Its error is a *FieldError of
// allowed_hosts that quotes the entry.
func ParseHosts(entries []string) (Hosts, error) {
	var h Hosts
	for i, entry := range entries {
		rule, ports, err := parseEntry(entry)
		if err != nil {
			return Hosts{}, &FieldError{"allowed_hosts", fmt.Sprintf("entry %d, %q, %v", i+1, entry, err), WhyInvalid}
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

// List is the entries in the one form that each has, in the order given,
// without duplicates.
func (h Hosts) List() []string { return append([]string{}, h.list...) }

// Allows says whether an entry stands for what is asked for. The addresses that
// a name then resolves to must be asked about with Refuses.
func (h Hosts) Allows(t Target) bool {
	return slices.ContainsFunc(h.rules, func(r hostRule) bool { return r.port == t.Port && r.matches(t) })
}

func (r hostRule) matches(t Target) bool {
	switch {
	case t.Name == "":
		return r.prefix.IsValid() && r.prefix.Contains(t.Addr)
	case r.prefix.IsValid():
		return false
	case r.below:
		return r.name == "" || strings.HasSuffix(t.Name, "."+r.name)
	}
	return r.name == t.Name
}

// Refuses says why no connection may be made to an address, and "" where it
// may: it is public, or an entry names it.
func (h Hosts) Refuses(addr netip.Addr, port uint16) string {
	addr = addr.Unmap()
	why := Reserved(addr)
	if why == "" || slices.ContainsFunc(h.rules, func(r hostRule) bool { return r.port == port && r.opens(addr) }) {
		return ""
	}
	return why
}

// opens says whether the rule names a reserved address as reserved.
func (r hostRule) opens(addr netip.Addr) bool {
	return r.prefix.IsValid() && r.prefix.Contains(addr) && withinReserved(r.prefix)
}

// Lacks returns the first entry of other that reaches further than h does, ""
// where there is none. An entry must lie within one entry of h, a port at a time.
func (h Hosts) Lacks(other Hosts) string {
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
	case r.below:
		return r.name == "" || strings.HasSuffix(s.name, "."+r.name) || s.below && s.name == r.name
	}
	return !s.below && r.name == s.name
}

// Target is one host and port that code asks for. Name is "" where it asks
// for an address.
type Target struct {
	Name string
	Addr netip.Addr
	Port uint16
}

// Host is the name or the address, as a URL has it, without the port.
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

// ParseTarget reads host:port. A port of 0 means that one must be given,
// another stands where none is.
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
	} else if r.below = host == "*"; r.below {
		r.entry = "*"
	} else {
		host, r.below = strings.CutPrefix(host, "*.")
		r.name, err = hostName(host)
		if r.entry = r.name; r.below {
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

// splitPort takes a host and its port apart; the port is 0 where there is none.
// Brackets hold IPv6, which may stand without them where no port follows.
func splitPort(text string) (host string, port uint16, err error) {
	host, rest := text, ""
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if host, rest, ok = strings.Cut(inner, "]"); !ok || !strings.Contains(host, ":") {
			return "", 0, fmt.Errorf("has brackets that hold no IPv6 address")
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
		return "", 0, fmt.Errorf("must end in a port from 1 to 65535 after its colon")
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
	case err != nil || p.Addr().Is4In6():
		return p, fmt.Errorf("must be a host, or a range of addresses like 192.0.2.0/24")
	case p != p.Masked():
		return p, fmt.Errorf("has bits after its length; the range is %s", p.Masked())
	}
	return p, nil
}

// names maps what people write to what the DNS holds. Underscores and odd
// hyphens do exist there.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false), idna.CheckHyphens(false))

// maxHostText bounds what is read as a name: IDNA takes time that grows faster
// than its input.
const maxHostText = 1000

// hostName returns the one form of a name. What a URL parser or a resolver
// might take for an address (127.1, 0x7f000001) is not a name, nor is what IDNA
// would map once more.
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
