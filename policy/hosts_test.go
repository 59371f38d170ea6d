package policy_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"glasshouse/policy"
)

func hosts(t testing.TB, entries ...string) policy.Hosts {
	t.Helper()
	h, err := policy.ParseHosts(entries)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHostsHaveACanonicalForm(t *testing.T) {
	longest := strings.Repeat(strings.Repeat("a", 63)+".", 3) + strings.Repeat("a", 61) // 253 characters
	for entry, want := range map[string]string{
		longest:                    longest,
		"example.org":              "example.org",
		"Example.ORG.":             "example.org",
		"example.org:443":          "example.org:443",
		"*.Example.org":            "*.example.org",
		"*.example.org:8443":       "*.example.org:8443",
		"*":                        "*",
		"*:8443":                   "*:8443",
		"bücher.example":           "xn--bcher-kva.example",
		"BÜCHER.example":           "xn--bcher-kva.example",
		"ｅｘａｍｐｌｅ。org":              "example.org",
		"my_bucket.s3.example.org": "my_bucket.s3.example.org",
		"r3---sn-4g5e.example.org": "r3---sn-4g5e.example.org",
		"localhost":                "localhost",
		"192.0.2.7":                "192.0.2.7",
		"192.0.2.7:8080":           "192.0.2.7:8080",
		"10.0.0.0/8":               "10.0.0.0/8",
		"10.0.0.0/8:5000":          "10.0.0.0/8:5000",
		"2001:DB8::1":              "2001:db8::1",
		"[2001:db8::1]":            "2001:db8::1",
		"[2001:db8::1]:8443":       "[2001:db8::1]:8443",
		"[2001:db8::/32]:8443":     "[2001:db8::/32]:8443",
		"fd00::/8":                 "fd00::/8",
		"::ffff:10.0.0.1":          "10.0.0.1",
		"::ffff:10.0.0.0/104":      "10.0.0.0/8",
	} {
		h, err := policy.ParseHosts([]string{entry, entry})
		if err != nil || !slices.Equal(h.List(), []string{want}) {
			t.Errorf("%q: got %v, %v, want %q", entry, h.List(), err, want)
			continue
		}
		if again := hosts(t, want); again.FirstUncovered(h) != "" || h.FirstUncovered(again) != "" {
			t.Errorf("%q and %q allow different hosts, want the same", entry, want)
		}
	}
}

func TestParseHostsRejectsInvalidEntries(t *testing.T) {
	for _, entry := range []string{
		"", " ", ".", "..", "*.", "**", "*.*.org", "a.*.org", "*org", "a..org", ".org", "exa mple.org", "example.org/", "example.org/path", "http://example.org",
		"https://example.org:443/", "user@example.org", "example.org:", "example.org:0", "example.org:65536", "example.org:+80", "example.org:http", "example.org:80:80",
		"127.1", "2130706433", "0x7f000001", "0x7f.1", "1.2.3", "1.2.3.4.5", "256.1.1.1", "１２７.1", "*.1.2.3.4", "[127.0.0.1]", "[example.org]", "[::1", "::1]", "[::1]x",
		"fe80::1%eth0", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "/8", "0.0.0.0/0/0", "::ffff:0.0.0.0/80", "example.org\n", "example.org\x00", "ex\u00adample.org:x",
		"a,b", strings.Repeat("a", 64) + ".org", strings.Repeat("a.", 126) + "aa", strings.Repeat("ü", 100_000), "xn--a.example", "*:",
	} {
		_, err := policy.ParseHosts([]string{"good.example", entry})
		var field *policy.FieldError
		if !errors.As(err, &field) || field.Field != "allowed_hosts" || field.Kind != policy.KindInvalid ||
			!strings.Contains(field.Detail, "entry 2") {
			t.Errorf("%q: got %v, want a FieldError that names entry 2", entry, err)
		}
	}
}

func TestHostsAllowMatchingTargets(t *testing.T) {
	list := hosts(
		t,
		"example.org",
		"*.deep.example",
		"bücher.example",
		"api.example:8443",
		"10.1.0.0/16",
		"[fd00::1]:9000",
		"0.0.0.0/0",
	)
	for target, want := range map[string]bool{
		"example.org:443":           true,
		"example.org:80":            true,
		"EXAMPLE.org.:443":          true,
		"example.org:8443":          false,
		"www.example.org:443":       false,
		"example.org.evil.test:443": false,
		"evilexample.org:443":       false,
		"deep.example:443":          false,
		"a.deep.example:443":        true,
		"b.a.deep.example:80":       true,
		"notdeep.example:443":       false,
		"xn--bcher-kva.example:443": true,
		"Bücher.example:443":        true,
		"api.example:8443":          true,
		"api.example:443":           false,
		"10.1.2.3:80":               true,
		"[::ffff:10.1.2.3]:80":      true,
		"10.2.0.1:80":               true, // by 0.0.0.0/0; RefusalReason refuses reserved addresses
		"10.1.2.3:22":               false,
		"[fd00::1]:9000":            true,
		"[fd00::1]:443":             false,
		"[fd00::2]:9000":            false,
		"[2606:4700::1]:443":        false, // 0.0.0.0/0 is IPv4
		"8.8.8.8:443":               true,
	} {
		to, err := policy.ParseTarget(target, 0)
		if err != nil || list.Allows(to) != want {
			t.Errorf("%s: got allowed %v, want %v (%v)", target, !want, want, err)
		}
	}
	if (policy.Hosts{}).Allows(policy.Target{Name: "example.org", Port: 443}) ||
		(policy.Hosts{}).Allows(policy.Target{}) {
		t.Error("the zero Hosts allows a target, want none allowed")
	}
	for _, bad := range []string{"", ":", ":80", "example.org", "*:80", "*.example.org:80", "10.0.0.0/8:80", "a@example.org:80", "example.org:80/x", "127.1:80", "0x7f000001:80", "[fe80::1%25lo]:80", "[fe80::1%lo]:80", "::1:80x"} {
		if to, err := policy.ParseTarget(bad, 0); err == nil {
			t.Errorf("ParseTarget(%q): got %v, want an error", bad, to)
		}
	}
}

// A reserved address is refused for every name, unless an entry allows the address itself.
func TestReservedAddressesAreRefused(t *testing.T) {
	reserved := []string{
		"127.0.0.1", "127.255.0.1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "0.0.0.0",
		"0.1.2.3", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"168.63.129.16", "::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::",
		"2002:808:808::1", "2001:0:1::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "febf::1", "fec0::1", "ff02::1", "4000::1", "8000::1",
	}
	public := []string{
		"8.8.8.8",
		"1.1.1.1",
		"172.32.0.1",
		"100.128.0.1",
		"11.0.0.1",
		"::ffff:8.8.8.8",
		"64:ff9b::8.8.8.8",
		"2606:4700::1111",
		"2a00:1450::1",
		"2001:4860:4860::8888",
		"2003::1",
		"168.63.129.17",
	}
	wide := hosts(t, "*", "0.0.0.0/0", "::/0", "2000::/3", "8.0.0.0/6") // none of these ranges lies within a reserved range
	for _, text := range reserved {
		addr := netip.MustParseAddr(text)
		if policy.Reserved(addr) == "" || wide.RefusalReason(addr, 443) == "" {
			t.Errorf("%s: got allowed, want refused", text)
		}
		if named := hosts(t, text); named.RefusalReason(addr, 443) != "" || named.RefusalReason(addr, 8443) == "" {
			t.Errorf("%s with an entry: got %q on port 443 and %q on 8443, want it allowed on 443 only",
				text, named.RefusalReason(addr, 443), named.RefusalReason(addr, 8443))
		}
	}
	for _, text := range public {
		if why := (policy.Hosts{}).RefusalReason(netip.MustParseAddr(text), 443); why != "" {
			t.Errorf("%s: got refused (%s), want allowed", text, why)
		}
	}
	if policy.Reserved(netip.Addr{}) == "" || policy.Reserved(netip.MustParseAddr("fe80::1%eth0")) == "" {
		t.Error("the zero address or an address with a zone: got allowed, want refused")
	}
	private := hosts(t, "10.0.0.0/8")
	if private.RefusalReason(netip.MustParseAddr("10.9.9.9"), 80) != "" ||
		private.RefusalReason(netip.MustParseAddr("192.168.0.1"), 80) == "" ||
		private.RefusalReason(netip.MustParseAddr("64:ff9b::10.9.9.9"), 80) == "" {
		t.Error("10.0.0.0/8: got other addresses allowed, want this range only")
	}
}

func TestFirstUncoveredNamesTheEntryBeyondTheList(t *testing.T) {
	for _, c := range []struct {
		operators, asked string
		uncovered        string
	}{
		{"example.org", "example.org", ""},
		{"example.org", "EXAMPLE.org.", ""},
		{"example.org", "example.com", "example.com"},
		{"example.org", "example.org:443", ""},
		{"example.org:443", "example.org", "example.org"},
		{"example.org:443 example.org:80", "example.org", ""},
		{"example.org", "example.org:8443", "example.org:8443"},
		{"example.org", "*.example.org", "*.example.org"},
		{"*.example.org", "example.org", "example.org"},
		{"*.example.org", "a.example.org *.a.example.org *.example.org", ""},
		{"*.a.example.org", "*.example.org", "*.example.org"},
		{"*.example.org", "*", "*"},
		{"*.example.org", "a.badexample.org", "a.badexample.org"},
		{"*", "example.org *.example.org *", ""},
		{"*", "10.0.0.1", "10.0.0.1"},
		{"*", "8.8.8.8", "8.8.8.8"},
		{"*:443", "*", "*"},
		{"10.0.0.0/8", "10.1.0.0/16 10.0.0.1:80", ""},
		{"10.1.0.0/16", "10.0.0.0/8", "10.0.0.0/8"},
		{"10.0.0.0/16", "10.0.0.0/8", "10.0.0.0/8"},
		{"10.1.0.0/16", "10.2.0.1", "10.2.0.1"},
		{"0.0.0.0/0", "8.8.8.8", ""},
		{"0.0.0.0/0", "10.0.0.1", "10.0.0.1"},
		{"0.0.0.0/0", "127.0.0.1", "127.0.0.1"},
		{"::/0", "10.0.0.1", "10.0.0.1"},
		{"10.0.0.1", "inner.example", "inner.example"},
		{"", "example.org", "example.org"},
		{"example.org", "", ""},
	} {
		operators, asked := hosts(t, strings.Fields(c.operators)...), hosts(t, strings.Fields(c.asked)...)
		if got := operators.FirstUncovered(asked); got != c.uncovered {
			t.Errorf("%q within %q: got %q, want %q", c.asked, c.operators, got, c.uncovered)
		}
	}
}

// An accepted list allows no target that the operator's list refuses. The canonical form of a list or target parses to
// the same value.
func FuzzHostsNeverLoosen(f *testing.F) {
	f.Add("example.org *.example.org 10.0.0.0/8", "a.example.org:80 10.1.2.3", "a.example.org:80", "10.1.2.3")
	f.Add("0.0.0.0/0 *", "10.0.0.1 127.0.0.1 *.x", "127.0.0.1:443", "127.0.0.1")
	f.Add("::/0 64:ff9b::/96", "64:ff9b::7f00:1 ::1", "[64:ff9b::7f00:1]:443", "64:ff9b::7f00:1")
	f.Add("*", "\xa8", "\xa8:80", "8.8.8.8")
	f.Fuzz(func(t *testing.T, operators, asked, target, address string) {
		wide, err := policy.ParseHosts(strings.Fields(operators))
		narrow, bad := policy.ParseHosts(strings.Fields(asked))
		if errors.Join(err, bad) != nil {
			return
		}
		again := hosts(t, narrow.List()...)
		if !slices.Equal(again.List(), narrow.List()) || again.FirstUncovered(narrow) != "" ||
			narrow.FirstUncovered(again) != "" {
			t.Errorf("%q: its canonical form %q parses to another list", asked, narrow.List())
		}
		to, err := policy.ParseTarget(target, 0)
		if err != nil {
			return
		}
		if same, err := policy.ParseTarget(to.String(), 0); err != nil || same != to {
			t.Errorf("target %q: got %v, and from its text %v, %v; want the same", target, to, same, err)
		}
		addr, err := netip.ParseAddr(address)
		if to.Name == "" {
			addr = to.Addr
		} else if err != nil {
			return
		}
		if wide.FirstUncovered(narrow) != "" {
			return
		}
		reaches := func(h policy.Hosts) bool { return h.Allows(to) && h.RefusalReason(addr, to.Port) == "" }
		if reaches(narrow) && !reaches(wide) {
			t.Errorf("%q allows %v at %v, and %q does not; want both", narrow.List(), to, addr, wide.List())
		}
	})
}
