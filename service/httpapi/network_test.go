package httpapi_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"glasshouse/sandbox"
)

// createOnline creates a sandbox with network access to some hosts.
func (c client) createOnline(t testing.TB, hosts ...string) string {
	t.Helper()
	return c.create(t, map[string]any{"enable_network_access": true, "allowed_hosts": hosts, "cpu_percent": 200})
}

// describeConnections writes the connections of an execution, one each as "host:port status address".
func describeConnections(a answer) string {
	var lines []string
	list, _ := a.get("connections").([]any)
	for _, each := range list {
		c := answer{body: each.(map[string]any)}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%v:%v %v %v", c.get("host"), c.get("port"),
			c.get("status"), c.get("address"))))
	}
	return strings.Join(lines, "; ")
}

// Common HTTP clients work unchanged over HTTP and HTTPS, and each connection is recorded.
func TestAllowedHostsAreReached(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	defer c.do(t, "POST", "/sandbox/cleanup-all", nil)
	id := c.createOnline(t, internet.plain(), internet.secure())
	for name, code := range map[string]string{
		"requests": "import requests\nrequests.get(url + '/csv').text",
		"session":  "import requests\nwith requests.Session() as s:\n    got = s.get(url + '/csv').text\ngot",
		"aiohttp":  "import aiohttp\nasync with aiohttp.ClientSession() as s:\n    async with s.get(url + '/csv') as r:\n        got = await r.text()\ngot",
		"request":  "import aiohttp\nasync with aiohttp.request('GET', url + '/csv') as r:\n    got = await r.text()\ngot",
		"pandas":   "import pandas\npandas.read_csv(url + '/csv').to_csv(index=False)",
		"post":     "import requests\nassert requests.post(url + '/len', data=b'x' * 3_000_000).json() == 3_000_000\n'a,b\\n1,2\\n3,4\\n'",
	} {
		for scheme, address := range map[string]string{"http": internet.plain(), "https": internet.secure()} {
			t.Run(name+" "+scheme, func(t *testing.T) {
				a := c.ok(t, "POST", "/sandbox/"+id+"/execute?include=enforced_by", map[string]any{"code": code,
					"context": map[string]any{"url": scheme + "://" + address}})
				if a.get("status") != "completed" || a.get("result") != "a,b\n1,2\n3,4\n" {
					t.Fatalf("got %s, want the CSV", a.text)
				}
				if got := describeConnections(a); got != address+" allowed "+address {
					t.Errorf("got the connections %s", got)
				}
				sent, _ := a.get("usage.network_sent_bytes").(float64)
				received, _ := a.get("usage.network_received_bytes").(float64)
				if name == "post" && sent < 3_000_000 || sent < 50 || received < 50 ||
					!strings.Contains(fmt.Sprint(a.get("enforced_by.network")), "broker") {
					t.Errorf("got the usage %s", a.text)
				}
				record := c.ok(t, "GET", "/executions/"+a.get("execution_id").(string), nil)
				if describeConnections(record) != describeConnections(a) ||
					record.get("usage.network_sent_bytes") != sent {
					t.Errorf("history: got %s, want the same connections", record.text)
				}
			})
		}
	}
}

// A kept-alive connection ends with its execution. The next execution opens another, without an error.
func TestConnectionsEndWithTheExecution(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	defer c.do(t, "POST", "/sandbox/cleanup-all", nil)
	id := c.createOnline(t, internet.plain(), internet.secure())
	code := "import requests\ntry:\n    s\nexcept NameError:\n    s = requests.Session()\n[s.get(url + '/csv').status_code for _ in range(3)]"
	for range 3 {
		a := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code,
			"context": map[string]any{"url": "https://" + internet.secure()}})
		if a.get("status") != "completed" || string(mustJSON(t, a.get("result"))) != "[200,200,200]" ||
			describeConnections(a) != internet.secure()+" allowed "+internet.secure() {
			t.Fatalf("got %s, want three responses over one connection", a.text)
		}
	}
	code = "import aiohttp\ntry:\n    a\nexcept NameError:\n    a = aiohttp.ClientSession()\nasync with a.get(url + '/csv') as r:\n    got = r.status\ngot"
	for range 3 {
		a := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code,
			"context": map[string]any{"url": "http://" + internet.plain()}})
		if a.get("status") != "completed" || a.get("result") != 200.0 {
			t.Fatalf("got %s, want HTTP 200", a.text)
		}
	}
	c.run(t, id, "await a.close()")
}

// Hosts that are not allowed are rejected by name, by address and by the address that a name resolves to. The rejection
// says why and is recorded.
func TestForbiddenHostsAreRejected(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"loop": "127.0.0.1", "private": "10.0.0.1", "cloud": "169.254.169.254",
		"local": "169.254.1.1", "carrier": "100.64.0.1", "here": "0.0.0.0",
		"loop6": "::1", "mapped": "::ffff:127.0.0.1", "link6": "fe80::1", "private6": "fd00::1",
		"nat64": "64:ff9b::7f00:1"} {
		internet.setAddresses(name+".example", address)
	}
	c := newUser(t, sandbox.RoleAgent)
	defer c.do(t, "POST", "/sandbox/cleanup-all", nil)
	id := c.createOnline(t, "*.example", "0.0.0.0/0")
	_, port, _ := net.SplitHostPort(internet.plain())
	fetch := "import requests\nr = requests.get(url, timeout=10)\n[r.status_code, r.reason, r.text]"
	for url, why := range map[string]string{
		"http://loop.example/":                     "a loopback address",
		"http://private.example/":                  "a private address",
		"http://cloud.example/":                    "a link-local address",
		"http://local.example/":                    "a link-local address",
		"http://carrier.example/":                  "a carrier's shared address",
		"http://here.example/":                     "an unspecified address",
		"http://loop6.example/":                    "a loopback address",
		"http://mapped.example/":                   "a loopback address",
		"http://link6.example/":                    "a link-local address",
		"http://private6.example/":                 "a private address",
		"http://nat64.example/":                    "a NAT64 form",
		"http://169.254.169.254/latest/meta-data/": "a link-local address",
		"http://10.0.0.1/":                         "a private address",
		"http://127.0.0.1/":                        "a loopback address",
		"http://data.example:" + port + "/":        "is not in allowed_hosts",
		"http://127.0.0.1:3128/":                   "is not in allowed_hosts",
		"http://[::1]/":                            "is not in allowed_hosts",
		"http://elsewhere.org/":                    "is not in allowed_hosts",
		"http://data.example/inner":                "a link-local address", // by a redirect
	} {
		a := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": fetch,
			"context": map[string]any{"url": url}})
		if result := string(mustJSON(t, a.get("result"))); a.get("status") != "completed" ||
			!strings.HasPrefix(result, "[403,") || strings.Count(result, why) != 2 {
			t.Errorf("%s: got %s, want HTTP 403 with the reason", url, a.text)
		}
		if got := describeConnections(a); !strings.HasSuffix(got, "refused <nil>") {
			t.Errorf("%s: got the connections %s, want one refused", url, got)
		}
	}
	for code, words := range map[string][]string{
		"import requests\nrequests.get('https://loop.example/')":                                                        {"ProxyError", "a loopback address"},
		"import pandas\npandas.read_csv('http://loop.example/csv')":                                                     {"HTTPError", "a loopback address"},
		"import aiohttp\nasync with aiohttp.ClientSession() as s:\n    async with s.get('https://loop.example/'): pass": {"ClientHttpProxyError", "a loopback address"},
		"import requests\nrequests.get('https://nobody.example/')":                                                      {"could not be resolved"},
	} {
		a := c.run(t, id, code)
		for _, word := range words {
			if text := string(mustJSON(t, a.get("exception"))); a.get("status") != "failed" ||
				!strings.Contains(text, word) {
				t.Errorf("%s: want %q in %s", code, word, a.text)
			}
		}
	}
}

// A name is resolved once for each connection: the checked address is the one that is connected to.
func TestDNSRebindingIsRejected(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	defer c.do(t, "POST", "/sandbox/cleanup-all", nil)
	id := c.createOnline(t, "rebind.example")
	internet.setAddresses("rebind.example", "44.1.1.7", "127.0.0.1")
	fetch := "import requests\nrequests.get('http://rebind.example/csv').status_code"
	if a := c.run(t, id, fetch); a.get("result") != 200.0 ||
		describeConnections(a) != "rebind.example:80 allowed 44.1.1.7:80" {
		t.Errorf("got %s, want HTTP 200 from the first address", a.text)
	}
	if a := c.run(t, id, fetch); a.get("result") != 403.0 || internet.wasDialled("127.0.0.1:80") {
		t.Errorf("got %s, want HTTP 403 and no connection to loopback", a.text)
	}
}

// Each sandbox has a network of its own: the same address is another broker in each.
func TestSandboxesHaveSeparateNetworks(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	defer c.do(t, "POST", "/sandbox/cleanup-all", nil)
	one, two, off := c.createOnline(t, internet.plain()), c.createOnline(t, "data.example"), c.create(t, nil)
	fetch := func(url string) string { return "import requests\nrequests.get('" + url + "').status_code" }
	allowedURL, there := "http://"+internet.plain()+"/csv", "http://data.example/csv"
	for id, want := range map[string][2]any{one: {200.0, 403.0}, two: {403.0, 200.0}, off: {nil, nil}} {
		for n, url := range []string{allowedURL, there} {
			a := c.run(t, id, fetch(url))
			if list, _ := a.get("connections").([]any); a.get("result") != want[n] ||
				(want[n] == nil) != (len(list) == 0) {
				t.Errorf("%s: got %s", url, a.text)
			}
		}
	}
}

// Without network access, every client fails immediately with an error that says why.
func TestClientsFailImmediatelyWithoutNetwork(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	defer c.do(t, "POST", "/sandbox/cleanup-all", nil)
	id := c.create(t, map[string]any{"profile": "unrestricted"})
	c.run(t, id, "import aiohttp, asyncio, pandas, requests, smtplib") // importing takes long
	for _, code := range []string{
		"import requests\nrequests.get('http://example.org/')",
		"import requests\nrequests.get('http://" + internet.plain() + "/csv')",
		"import requests\nrequests.get('http://x/', proxies={'http': 'http://127.0.0.1:3128'})",
		"import aiohttp\nasync with aiohttp.ClientSession() as s:\n    await s.get('https://example.org/')",
		"import aiohttp\nasync with aiohttp.ClientSession() as s:\n    await s.get('http://127.0.0.1:3128/')",
		"import pandas\npandas.read_csv('https://example.org/data.csv')",
		"import socket\nsocket.create_connection(('127.0.0.1', 3128))",
		"import asyncio\nawait asyncio.open_connection('127.0.0.1', 3128)",
		"import socket\nsocket.gethostbyname('example.org')",
		"import smtplib\nsmtplib.SMTP('mail.example.org')",
	} {
		var a answer
		eventually(t, code+" to fail sooner than a resolver, which gives up after 10 s", func() bool {
			start := time.Now()
			a = c.run(t, id, code)
			return time.Since(start) < 8*time.Second
		})
		message, _ := a.get("exception.message").(string)
		if a.get("status") != "failed" || !strings.Contains(message, "the network is off for this sandbox") ||
			!strings.Contains(message, "enable_network_access") {
			t.Errorf("%s: got %s, want an error that the network is off", code, a.text)
		}
	}
}

// Also without import rules, code can reach other hosts only through the broker.
func TestNetworkIsReachedOnlyThroughTheBroker(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	defer c.do(t, "POST", "/sandbox/cleanup-all", nil)
	id := c.create(t, map[string]any{"profile": "unrestricted", "enable_network_access": true,
		"allowed_hosts": []string{internet.plain()}})
	_, port, _ := net.SplitHostPort(internet.plain())
	a := c.run(t, id, `
import socket, errno
def refused(f, *a, codes=(errno.EPERM, errno.EACCES, errno.ECONNREFUSED, errno.ENETUNREACH)):
    try:
        f(*a)
    except OSError as e:
        return e.errno in codes
    return False
S = socket
kinds = [(f, t, p) for f in range(0, 48) for t in (1, 2, 3, 5, 10) for p in (0, 1, 6, 17, 132, 255, 262)]
made = []
for f, t, p in kinds:
    try:
        S.socket(f, t, p).close()
        made.append((f, t, p))
    except OSError as e:
        pass
tcp = S.socket()
{
  "made": made,
  "bind": refused(tcp.bind, ("127.0.0.1", 0), codes=[errno.EPERM]), "listen": refused(tcp.listen, codes=[errno.EPERM]),
  "options": [refused(tcp.setsockopt, level, name, b"tls\0", codes=[errno.EPERM]) for level, name in ((6, 31), (6, 13), (1, 26), (1, 15), (0, 10), (41, 26), (1, 36))],
  "nodelay": tcp.setsockopt(6, 1, 1),
  "connect": [refused(S.create_connection, to) for to in (("127.0.0.1", `+port+`), ("127.0.0.1", 22), ("10.0.0.1", 80), ("44.1.1.1", 443), ("::1", 22))],
  "elsewhere": [refused(S.create_connection, to) for to in (("44.1.1.1", 3128), ("10.0.0.1", 3128), ("127.0.0.2", 3128), ("::1", 3128))],
  "interfaces": refused(S.if_nameindex, codes=[errno.EPERM]),
}`)
	want := `{"bind":true,"connect":[true,true,true,true,true],"elsewhere":[true,true,true,true],"interfaces":true,"listen":true,` +
		`"made":[[2,1,0],[2,1,6],[10,1,0],[10,1,6]],"nodelay":null,"options":[true,true,true,true,true,true,true]}`
	if got := string(mustJSON(t, a.get("result"))); got != want {
		t.Errorf("got %s", a.text)
	}
	if a := c.run(t, id,
		"import requests\ns = requests.Session()\ns.trust_env = False\ns.get('http://data.example/')"); !strings.Contains(fmt.Sprint(a.get("exception.message")), "HTTP proxy") {
		t.Errorf("got %s, want an error that names the HTTP proxy", a.text)
	}
}

// The deletion of a sandbox and the timeout of an execution end their connections and remove the sandbox's network.
// Not parallel: it counts the brokers of the process.
func TestNetworkEndsWithTheSandbox(t *testing.T) {
	c := newUser(t, sandbox.RoleAgent)
	defer c.do(t, "POST", "/sandbox/cleanup-all", nil)
	before := brokerListeners(t)
	holdCode := "import requests\nrequests.get('http://" + internet.plain() + "/hold')"
	id := c.createOnline(t, internet.plain())
	if brokerListeners(t) != before+1 {
		t.Errorf("got %d brokers with %d before, want one more", brokerListeners(t), before)
	}
	done := make(chan answer, 1)
	go func() { done <- c.do(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": holdCode}) }()
	receive(t, internet.holding)
	c.ok(t, "DELETE", "/sandbox/"+id, nil)
	receive(t, internet.released)
	a := <-done
	if a.status != http.StatusOK || a.get("status") != "cancelled" || describeConnections(a) != internet.plain()+
		" failed "+internet.plain() {
		t.Errorf("got HTTP %d %s, want it cancelled with a failed connection", a.status, a.text)
	}
	if brokerListeners(t) != before {
		t.Errorf("got %d brokers, want %d as before", brokerListeners(t), before)
	}
	id = c.create(t, map[string]any{"enable_network_access": true, "allowed_hosts": []string{internet.plain()},
		"max_execution_time": 2, "cpu_percent": 200})
	c.run(t, id, "import requests") // importing takes long
	a = c.run(t, id, holdCode)
	receive(t, internet.holding)
	receive(t, internet.released)
	if a.get("status") != "timeout" || describeConnections(a) != internet.plain()+" failed "+internet.plain() {
		t.Errorf("got %s, want a timeout with a failed connection", a.text)
	}
}

func receive(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(2 * time.Minute):
		t.Fatal("waited two minutes for a request to be held or released")
	}
}

// brokerListeners counts the listening sockets of this process on the brokers' port. Each holds a network namespace,
// which leaves no other trace outside.
func brokerListeners(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, each := range open {
		fd, err := strconv.Atoi(each.Name())
		if err != nil {
			t.Fatal(err)
		}
		if on, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN); err != nil || on == 0 {
			continue
		}
		if name, err := syscall.Getsockname(fd); err == nil {
			if in, ok := name.(*syscall.SockaddrInet4); ok && in.Port == 3128 {
				n++
			}
		}
	}
	return n
}
