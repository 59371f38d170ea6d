package policy

import "net/netip"

// reserved lists the ranges that are not the public internet: those in IANA's registries of special-purpose
// addresses, multicast, and the metadata services of clouds. A range comes before the wider ranges that contain
// it, so the most specific reason is found first. Ranges that embed an IPv4 address (6to4, Teredo) are refused
// entirely; of NAT64, Reserved checks the embedded address.
var reserved = []struct {
	prefix netip.Prefix
	why    string
}{
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address, where clouds keep metadata"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's metadata address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier's shared address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved address"},
	{netip.MustParsePrefix("192.0.2.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("198.51.100.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay"},
	{netip.MustParsePrefix("198.18.0.0/15"), "an address for benchmarks"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},

	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{nat64, "a NAT64 form of a reserved address"},
	{netip.MustParsePrefix("fc00::/7"), "a private address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fec0::/10"), "a private address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("2001:db8::/32"), "an address for documentation"},
	{netip.MustParsePrefix("3fff::/20"), "an address for documentation"},
	{netip.MustParsePrefix("2001::/32"), "a Teredo address, which embeds another"},
	{netip.MustParsePrefix("2001::/23"), "a reserved address"},
	{netip.MustParsePrefix("2002::/16"), "a 6to4 address, which embeds another"},
	// Everything except 2000::/3, the only range that is allocated for global unicast.
	{netip.MustParsePrefix("::/3"), "a reserved address"},
	{netip.MustParsePrefix("4000::/2"), "a reserved address"},
	{netip.MustParsePrefix("8000::/1"), "a reserved address"},
}

var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Reserved returns the purpose for which an address is reserved, or "" for a public address.
func Reserved(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		b := addr.As16()
		if Reserved(netip.AddrFrom4([4]byte(b[12:]))) == "" {
			return ""
		}
	}
	for _, r := range reserved {
		if r.prefix.Contains(addr) {
			return r.why
		}
	}
	if !addr.IsValid() {
		return "no address"
	}
	return ""
}

// withinReserved reports whether a range lies entirely within one reserved range.
func withinReserved(p netip.Prefix) bool {
	for _, r := range reserved {
		if r.prefix.Bits() <= p.Bits() && r.prefix.Contains(p.Addr()) {
			return true
		}
	}
	return false
}
