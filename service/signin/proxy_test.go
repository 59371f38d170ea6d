package signin_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
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

// The bytes after a request whose end is not clear do not count as a request: a client of the proxy may have written
// them.
func TestRequestsAreNotSmuggledThroughTheProxy(t *testing.T) {
	t.Parallel()
	p := &signin.Proxy{UserHeader: "X-Forwarded-User", Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	server := httptest.NewServer(p.CloseUnclear(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "served "+r.Header.Get(p.UserHeader)+"\n")
	})))
	defer server.Close()
	const smuggled = "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-User: root\r\n\r\n"
	for name, c := range map[string]struct {
		headers, body string
		isLast        bool
	}{
		"a length": {"Content-Length: 2\r\n", "{}", false},
		"no body":  {"", "", false},
		"chunks":   {"Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n", true},
		"chunks and a length": {
			fmt.Sprintf("Transfer-Encoding: chunked\r\nContent-Length: %d\r\n", len(smuggled)+5), "0\r\n\r\n", true},
		"an upgrade": {"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 7\r\n", "", true},
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		request := "POST / HTTP/1.1\r\nHost: x\r\nX-Forwarded-User: anna\r\n" + c.headers + "\r\n" + c.body
		// The last request makes the server close each connection.
		last := strings.Replace(smuggled, "root", "anna\r\nConnection: close", 1)
		if _, err := io.WriteString(conn, request+smuggled+last); err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(conn) // the server may reset a connection with bytes that it does not read
		_ = conn.Close()
		text := string(answer)
		if !strings.Contains(text, "served anna") || strings.Contains(text, "served root") == c.isLast {
			t.Errorf("%s: got %q, want what follows to be served: %t", name, text, !c.isLast)
		}
	}
}
