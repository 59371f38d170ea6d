package egress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/egress"
)

// A request that is not a valid proxy request gets an error and reaches no host.
func TestMalformedRequestsAreRejected(t *testing.T) {
	world := newInternet()
	s := startBroker(t, world, "*.example *")
	for request, code := range map[string]string{
		"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n":                                                "400",
		"OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n":                                            "400",
		"GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n":                               "400",
		"GET ftp://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n":                                 "400",
		"GET http:///x HTTP/1.1\r\nHost: a.example\r\n\r\n":                                        "400",
		"GET http:a.example HTTP/1.1\r\nHost: a.example\r\n\r\n":                                   "400",
		"GET http://a.example:99999/ HTTP/1.1\r\nHost: a.example\r\n\r\n":                          "400",
		"GET http://127.1/ HTTP/1.1\r\nHost: a.example\r\n\r\n":                                    "400",
		"GET http://0x7f000001/ HTTP/1.1\r\nHost: a.example\r\n\r\n":                               "400",
		"GET http://2130706433/ HTTP/1.1\r\nHost: a.example\r\n\r\n":                               "400",
		"GET http://a.example%00.evil/ HTTP/1.1\r\nHost: a.example\r\n\r\n":                        "400",
		"GET http://[fe80::1%25eth0]/ HTTP/1.1\r\nHost: a.example\r\n\r\n":                         "400",
		"TRACE http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n":                              "405",
		"CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n":                                    "400",
		"CONNECT a.example:0 HTTP/1.1\r\nHost: a.example\r\n\r\n":                                  "400",
		"CONNECT a.example:443/x HTTP/1.1\r\nHost: a.example\r\n\r\n":                              "400",
		"CONNECT u@a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n":                              "400",
		"CONNECT /x HTTP/1.1\r\nHost: a.example\r\n\r\n":                                           "400",
		"CONNECT http://a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n":                         "400",
		"CONNECT a.example:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc":                "400",
		"CONNECT a.example:443 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": "400",
		"GET http://a.example/ HTTP/1.1\r\n\r\n":                                                   "400",
		"GET http://a.example/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n":                             "400",
		"GET http://a.example/ HTTP/1.1\r\nHost : a\r\n\r\n":                                       "400",
		"GET http://a.example/ HTTP/1.1\r\nHost: a\r\nX\x00: 1\r\n\r\n":                            "400",
		"GET http://a.example/ HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n":                             "400",
		"GET http://a.example/ HTTP/9.1\r\nHost: a\r\n\r\n":                                        "505",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                                         "400",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n":                                     "400",
		"GET http://a.example/" + strings.Repeat("x", 200_000) + " HTTP/1.1\r\nHost: a\r\n\r\n":    "431",
		"GET http://a.example/ HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 200_000):          "431",
		"GET http://a.example/ HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: x\r\n", 40_000):       "431",
	} {
		if answer := s.send(request); !strings.HasPrefix(answer, "HTTP/1.1 "+code+" ") {
			t.Errorf("%.80q: got %.200q, want %s", request, answer, code)
		}
	}
	if log := s.stop(); len(log)+len(world.resolved)+len(world.dialed) > 0 {
		t.Errorf("got records %+v, names resolved %v, addresses dialed %v; want none",
			log, world.resolved, world.dialed)
	}
}

// The host gets one request on its own connection, in whatever way the request states its length. The bytes after it
// are another request to the broker, which checks that request too.
func TestSmuggledRequestsDoNotReachTheHost(t *testing.T) {
	const hidden = "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"
	const post = "POST http://data.example/ HTTP/1.1\r\nHost: x\r\n"
	for name, request := range map[string]string{
		"CL and TE":         post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"TE and CL":         post + "Transfer-Encoding: chunked\r\nContent-Length: 100\r\n\r\n0\r\n\r\n" + hidden,
		"two CL":            post + "Content-Length: 0\r\nContent-Length: 70\r\n\r\n" + hidden,
		"list CL":           post + "Content-Length: 0, 70\r\n\r\n" + hidden,
		"signed CL":         post + "Content-Length: +0\r\n\r\n" + hidden,
		"two TE":            post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden,
		"strange TE":        post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
		"spaced TE":         post + "Transfer-Encoding : chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + hidden,
		"bad chunk":         post + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + hidden,
		"dropped by header": post + "Connection: Content-Length\r\nContent-Length: 3\r\n\r\nabc" + hidden,
		"folded":            post + "X: a\r\n Content-Length: 70\r\nContent-Length: 0\r\n\r\n" + hidden,
		"body on GET":       "GET http://data.example/ HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
	} {
		world := newInternet()
		seen := make(chan string, 10)
		gone := world.addServer(t, "data.example", "44.1.1.1", "80", func(c *net.TCPConn) {
			in := bufio.NewReader(c)
			r, err := http.ReadRequest(in)
			if err != nil {
				return // the broker closed the connection
			}
			body, err := io.ReadAll(r.Body)
			if err == nil {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
			rest, _ := io.ReadAll(in)
			seen <- fmt.Sprintf("%s%s", body, rest)
		})
		s := startBroker(t, world, "data.example")
		answer := s.send(request)
		log := s.stop()
		for _, c := range log[min(1, len(log)):] {
			if c.Host != "evil.test" || c.Status != sandbox.ConnectionRefused {
				t.Errorf("%s: got record %+v, want a refused evil.test", name, c)
			}
		}
		gone()
		close(seen)
		for got := range seen {
			if strings.Contains(got, "evil") {
				t.Errorf("%s: the host got the hidden request: %q", name, got)
			}
		}
		if strings.Count(answer, "HTTP/1.1 200") > 1 || !strings.Contains(answer, "HTTP/1.1 ") {
			t.Errorf("%s: got responses %q, want at most one 200", name, answer)
		}
	}
}

// The broker closes a connection whose client does not send its header or body, or does not read the response.
func TestSlowClientsAreCut(t *testing.T) {
	world := newInternet()
	world.addWebServer(t, "data.example", "44.1.1.1", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			io.Copy(io.Discard, r.Body)
			return
		}
		io.Copy(w, zeros{})
	})
	s := startBroker(t, world, "data.example", func(c *egress.Config) {
		c.Limits.HeaderTimeout, c.Limits.IdleTimeout = 100*time.Millisecond, 100*time.Millisecond
	})
	for name, text := range map[string]string{
		"nothing": "", "half a line": "GET http://da",
		"half a header": "GET http://data.example/ HTTP/1.1\r\nHost: x\r\nX: ",
		"half a body":   "POST http://data.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf",
	} {
		if answer := s.send(text); strings.Contains(answer, "200 OK") {
			t.Errorf("%s: got %q, want no success", name, answer)
		}
	}
	deaf := s.dialProxy() // does not read the response, which does not end
	io.WriteString(deaf, "GET http://data.example/ HTTP/1.1\r\nHost: x\r\n\r\n")
	log := s.waitForRecords(2)
	for _, c := range log {
		if !strings.Contains(c.Reason, "no byte for too long") {
			t.Errorf("record: got %+v, want it cut as idle", c)
		}
	}
}

// The broker disconnects clients that send their header byte by byte, and serves other clients at the same time.
func TestSlowLorisClientsAreCut(t *testing.T) {
	world := newInternet()
	world.addWebServer(t, "data.example", "44.1.1.1", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "served")
	})
	s := startBroker(t, world, "data.example", func(c *egress.Config) {
		c.Limits.HeaderTimeout, c.Limits.MaxConnections = 300*time.Millisecond, 60
	})
	ended := make(chan error, 100)
	for range cap(ended) {
		c := s.dialProxy()
		go func() {
			drip := time.NewTicker(20 * time.Millisecond)
			defer drip.Stop()
			for range drip.C {
				if _, err := c.Write([]byte("G")); err != nil {
					ended <- nil
					return
				}
			}
		}()
		go io.Copy(io.Discard, c)
	}
	if _, body := get(t, s.client(), "http://data.example/"); body != "served" {
		t.Errorf("another client: got %q, want served", body)
	}
	for range cap(ended) {
		select {
		case <-ended:
		case <-time.After(testTimeout):
			t.Fatal("a slow client is still connected")
		}
	}
}
