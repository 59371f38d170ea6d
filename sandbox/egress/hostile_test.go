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

// What is not a proxy's request gets an answer of its own and reaches nobody.
func TestMalformed(t *testing.T) {
	world := newInternet()
	s := serve(t, world, "*.example *")
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
		if answer := s.say(request); !strings.HasPrefix(answer, "HTTP/1.1 "+code+" ") {
			t.Errorf("%.80q: %.200q", request, answer)
		}
	}
	if log := s.stop(); len(log)+len(world.looked)+len(world.dialled) > 0 {
		t.Errorf("%+v, looked up %v, connected to %v", log, world.looked, world.dialled)
	}
}

// Whatever a request says of its length, the host sees exactly one, on a connection
// of its own; what follows is a request to the broker, judged by itself.
func TestSmuggling(t *testing.T) {
	const hidden = "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"
	for name, request := range map[string]string{
		"CL and TE":         "POST http://data.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"TE and CL":         "POST http://data.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 100\r\n\r\n0\r\n\r\n" + hidden,
		"two CL":            "POST http://data.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 70\r\n\r\n" + hidden,
		"list CL":           "POST http://data.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 70\r\n\r\n" + hidden,
		"signed CL":         "POST http://data.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n" + hidden,
		"two TE":            "POST http://data.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden,
		"strange TE":        "POST http://data.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
		"spaced TE":         "POST http://data.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + hidden,
		"bad chunk":         "POST http://data.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + hidden,
		"dropped by header": "POST http://data.example/ HTTP/1.1\r\nHost: x\r\nConnection: Content-Length\r\nContent-Length: 3\r\n\r\nabc" + hidden,
		"folded":            "POST http://data.example/ HTTP/1.1\r\nHost: x\r\nX: a\r\n Content-Length: 70\r\nContent-Length: 0\r\n\r\n" + hidden,
		"body on GET":       "GET http://data.example/ HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
	} {
		world := newInternet()
		seen := make(chan string, 10)
		gone := world.listen(t, "data.example", "44.1.1.1", "80", func(c *net.TCPConn) {
			in := bufio.NewReader(c)
			r, err := http.ReadRequest(in)
			if err != nil {
				return // the broker thought better of it, and closed
			}
			body, err := io.ReadAll(r.Body)
			if err == nil {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
			rest, _ := io.ReadAll(in)
			seen <- fmt.Sprintf("%s%s", body, rest)
		})
		s := serve(t, world, "data.example")
		answer := s.say(request)
		log := s.stop()
		for _, c := range log[min(1, len(log)):] {
			if c.Host != "evil.test" || c.Status != sandbox.ConnectionRefused {
				t.Errorf("%s: %+v", name, c)
			}
		}
		gone()
		close(seen)
		for got := range seen {
			if strings.Contains(got, "evil") {
				t.Errorf("%s: the host was sent %q", name, got)
			}
		}
		if strings.Count(answer, "HTTP/1.1 200") > 1 || !strings.Contains(answer, "HTTP/1.1 ") {
			t.Errorf("%s: %q", name, answer)
		}
	}
}

// A head that never ends, a body that never comes, an answer that is not read: each
// is cut, and the broker goes on.
func TestSlow(t *testing.T) {
	world := newInternet()
	world.web(t, "data.example", "44.1.1.1", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			io.Copy(io.Discard, r.Body)
			return
		}
		io.Copy(w, zeros{})
	})
	s := serve(t, world, "data.example", func(c *egress.Config) {
		c.Limits.HeaderTimeout, c.Limits.IdleTimeout = 100*time.Millisecond, 100*time.Millisecond
	})
	for name, text := range map[string]string{
		"nothing": "", "half a line": "GET http://da", "half a head": "GET http://data.example/ HTTP/1.1\r\nHost: x\r\nX: ",
		"half a body": "POST http://data.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf",
	} {
		if answer := s.say(text); strings.Contains(answer, "200 OK") {
			t.Errorf("%s: %q", name, answer)
		}
	}
	deaf := s.dialProxy() // reads no answer, while the host has no end of one
	io.WriteString(deaf, "GET http://data.example/ HTTP/1.1\r\nHost: x\r\n\r\n")
	log := s.finished(2)
	for _, c := range log {
		if !strings.Contains(c.Reason, "no byte for too long") {
			t.Errorf("%+v", c)
		}
	}
}

// Each of many clients that drip a head a byte at a time is out of the door in time,
// and the others are served meanwhile.
func TestSlowLoris(t *testing.T) {
	world := newInternet()
	world.web(t, "data.example", "44.1.1.1", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") })
	s := serve(t, world, "data.example", func(c *egress.Config) { c.Limits.HeaderTimeout, c.Limits.MaxConnections = 300*time.Millisecond, 60 })
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
		t.Errorf("%q", body)
	}
	for range cap(ended) {
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("a slow client is still there")
		}
	}
}
