package signin_test

import (
	"net/http"
	"net/netip"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/service/signin"
)

func TestOnlyTheProxyNamesPersons(t *testing.T) {
	t.Parallel()
	p := &signin.Proxy{
		UserHeader: "X-Forwarded-User", RoleHeader: "X-Forwarded-Groups", Rights: rights,
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.1.0/28"), netip.MustParsePrefix("fd00::7/128")},
	}
	const agent, developer, unauthorized = sandbox.RoleAgent, sandbox.RoleDeveloper, sandbox.FaultUnauthorized
	for name, c := range map[string]struct {
		remote        string
		users, groups []string
		role          sandbox.Role // "" if the request has no person
		fault         sandbox.Fault
	}{
		"the proxy":                {"10.0.1.3:9", []string{"anna"}, []string{"staff, data"}, developer, ""},
		"as IPv6":                  {"[::ffff:10.0.1.3]:9", []string{"anna"}, []string{"staff"}, agent, ""},
		"over IPv6":                {"[fd00::7]:9", []string{"anna"}, []string{"staff"}, agent, ""},
		"an address after it":      {"10.0.1.16:9", []string{"anna"}, []string{"root"}, "", ""},
		"another address":          {"127.0.0.1:9", []string{"anna"}, []string{"root"}, "", ""},
		"no address":               {"@", []string{"anna"}, []string{"root"}, "", ""},
		"nobody":                   {"10.0.1.3:9", nil, []string{"root"}, "", ""},
		"no role":                  {"10.0.1.3:9", []string{"anna"}, nil, "", sandbox.FaultForbidden},
		"a value that is similar":  {"10.0.1.3:9", []string{"anna"}, []string{"roots"}, "", sandbox.FaultForbidden},
		"a client's user as well":  {"10.0.1.3:9", []string{"root", "anna"}, []string{"staff"}, "", unauthorized},
		"a client's group as well": {"10.0.1.3:9", []string{"anna"}, []string{"root", "staff"}, "", unauthorized},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{"X-Forwarded-User": c.users,
			"X-Forwarded-Groups": c.groups}}
		person, ok, err := p.Person(r)
		if ok != (c.role != "") || person.Role != c.role && ok || (err != nil) != (c.fault != "") {
			t.Errorf("%s: got %+v, %t, %v, want the role %q", name, person, ok, err, c.role)
		}
		if err != nil && sandbox.FaultOf(err) != c.fault {
			t.Errorf("%s: got %v, want %s", name, err, c.fault)
		}
	}
	var none *signin.Proxy
	if _, ok, err := none.Person(&http.Request{RemoteAddr: "10.0.1.3:9"}); ok || err != nil {
		t.Errorf("without a proxy: got %t, %v, want nobody", ok, err)
	}
}
