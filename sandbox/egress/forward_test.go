package egress_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

func get(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	answer, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func TestRequestArrivesUnchangedAndItsBytesAreCounted(t *testing.T) {
	world := newInternet()
	passed := make(chan *byteCounter, 1)
	world.addServer(t, "data.example", "44.1.1.1", "80", func(c *net.TCPConn) {
		wire := &byteCounter{Conn: c}
		r, err := http.ReadRequest(bufio.NewReader(wire))
		if err != nil {
			t.Error(err)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if r.Host != "data.example" || r.RequestURI != "/a%2Fb//c?q=1;2&x=%zz" || string(body) != "hello" {
			t.Errorf("the host got %s %s %q", r.Host, r.RequestURI, body)
		}
		fmt.Fprintf(wire, "HTTP/1.1 201 Made\r\nContent-Length: 4\r\nX-Answer: 42\r\n\r\nbody")
		passed <- wire
	})
	s := startBroker(t, world, "data.example")
	r, _ := http.NewRequest("PUT", "http://data.example/", strings.NewReader("hello"))
	r.URL.Opaque = "//data.example/a%2Fb//c?q=1;2&x=%zz"
	answer, err := s.client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != 201 || string(body) != "body" || answer.Header.Get("X-Answer") != "42" ||
		answer.Header.Get("Via") == "" {
		t.Errorf("response: got %v %q %v", answer, body, err)
	}
	c := s.onlyRecord()
	if c.Host != "data.example" || c.Port != 80 || c.Address != "44.1.1.1:80" ||
		c.Status != sandbox.ConnectionAllowed || c.Reason != "" || c.StartedAt.IsZero() || c.DurationMS <= 0 {
		t.Errorf("record: got %+v", c)
	}
	if wire := <-passed; c.BytesSent != wire.read || c.BytesReceived != wire.written {
		t.Errorf("bytes: counted %d and %d, want %d and %d", c.BytesSent, c.BytesReceived, wire.read, wire.written)
	}
}

// Hop-by-hop headers are not forwarded; all others are (RFC 9110, 7.6.1). The host is that of the URL, not of the Host
// header.
func TestHopByHopHeadersAreNotForwarded(t *testing.T) {
	world := newInternet()
	arrived := make(chan *http.Request, 1)
	world.addServer(t, "data.example", "44.1.1.1", "80", func(c *net.TCPConn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			t.Error(err)
		}
		arrived <- r
		io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"+
			"Proxy-Authenticate: Basic\r\nX-Kept: 1\r\nContent-Length: 4\r\n\r\nfine")
	})
	s := startBroker(t, world, "data.example")
	answer := s.send("GET http://DATA.example.:80/ HTTP/1.1\r\nHost: evil.example\r\n" +
		"Connection: close, X-Private\r\nX-Private: 1\r\nKeep-Alive: 1\r\nProxy-Connection: keep-alive\r\n" +
		"Proxy-Authorization: Basic eDp5\r\nTE: gzip\r\nX-Kept: 1\r\nX-Forwarded-For: 1.2.3.4\r\nCookie: a=b\r\n" +
		"Via: 1.0 older\r\nAccept-Encoding: br\r\n\r\n")
	r := <-arrived
	want := http.Header{
		"Accept-Encoding": {"br"}, "Connection": {"close"}, "Cookie": {"a=b"}, "Via": {"1.0 older", "1.1 glasshouse"},
		"X-Forwarded-For": {"1.2.3.4"}, "X-Kept": {"1"},
	}
	if !maps.EqualFunc(r.Header, want, slices.Equal) || r.Host != "data.example" {
		t.Errorf("the host got headers %v and Host %s; want %v and data.example", r.Header, r.Host, want)
	}
	if !strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n") || !strings.Contains(answer, "X-Kept: 1") ||
		!strings.HasSuffix(answer, "fine") {
		t.Errorf("response: got %q", answer)
	}
	for _, gone := range []string{"X-Hop", "Keep-Alive", "Proxy-Authenticate"} {
		if strings.Contains(answer, gone) {
			t.Errorf("the header %s was forwarded: %q", gone, answer)
		}
	}
}

// Streams are forwarded as they arrive, in both directions, with trailers.
func TestStreamsAreForwardedAtOnce(t *testing.T) {
	world := newInternet()
	world.addWebServer(t, "data.example", "44.1.1.1", func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Trailer", "X-Sum")
		in := bufio.NewReader(r.Body)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				break
			}
			io.WriteString(w, strings.ToUpper(line))
			w.(http.Flusher).Flush()
		}
		w.Header().Set("X-Sum", "7")
	})
	s := startBroker(t, world, "data.example")
	c := s.dialProxy()
	io.WriteString(c, "POST http://data.example/ HTTP/1.1\r\nHost: data.example\r\nTransfer-Encoding: chunked\r\n\r\n")
	out, in := httputil.NewChunkedWriter(c), bufio.NewReader(c)
	io.WriteString(out, "one\n")
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(answer.Body)
	for _, word := range []string{"one", "two", "three"} {
		if got, err := lines.ReadString('\n'); err != nil || got != strings.ToUpper(word)+"\n" {
			t.Fatalf("line: got %q, %v; want %q", got, err, strings.ToUpper(word))
		}
		switch word { // the next line is sent after the last has come back
		case "one":
			io.WriteString(out, "two\n")
		case "two":
			io.WriteString(out, "three\n")
		}
	}
	out.Close()
	io.WriteString(c, "\r\n")
	if rest, err := io.ReadAll(lines); err != nil || len(rest) != 0 || answer.Trailer.Get("X-Sum") != "7" {
		t.Errorf("end: got %q, %v, trailers %v", rest, err, answer.Trailer)
	}
}

// A client's connection may carry several requests, each to the host that it names.
func TestKeepAliveReachesEachHost(t *testing.T) {
	world := newInternet()
	for i, name := range []string{"a.example", "b.example"} {
		world.addWebServer(t, name, fmt.Sprintf("44.1.1.%d", i+1), func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, name)
		})
	}
	s := startBroker(t, world, "a.example b.example")
	answer := s.send("GET http://a.example/ HTTP/1.1\r\nHost: x\r\n\r\n" +
		"GET http://b.example/ HTTP/1.1\r\nHost: x\r\n\r\n" +
		"GET http://a.example/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if strings.Count(answer, "200 OK") != 3 || strings.Index(answer, "a.example") > strings.Index(answer, "b.example") {
		t.Errorf("responses: got %q", answer)
	}
	if log := s.waitForRecords(3); len(log) != 3 || log[1].Host != "b.example" {
		t.Errorf("records: got %+v, want three", log)
	}
}

func TestUpgradeBecomesAStream(t *testing.T) {
	world := newInternet()
	world.addServer(t, "data.example", "44.1.1.1", "80", func(c *net.TCPConn) {
		in := bufio.NewReader(c)
		r, err := http.ReadRequest(in)
		if err != nil || r.Header.Get("Upgrade") != "echo" {
			t.Errorf("request: got %+v, %v", r, err)
			return
		}
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.CopyN(c, in, 5)
	})
	s := startBroker(t, world, "data.example")
	c := s.dialProxy()
	io.WriteString(c, "GET http://data.example/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(c)
	answer, err := http.ReadResponse(in, nil)
	if err != nil || answer.StatusCode != 101 {
		t.Fatal(answer, err)
	}
	io.WriteString(c, "hello")
	echo := make([]byte, 5)
	if _, err := io.ReadFull(in, echo); err != nil || string(echo) != "hello" {
		t.Errorf("echo: got %q, %v; want hello", echo, err)
	}
}

func TestInvalidResponsesAreRejected(t *testing.T) {
	for name, wire := range map[string]string{
		"not HTTP":    "SSH-2.0-x\r\n\r\n",
		"nothing":     "",
		"a huge head": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 200_000) + "\r\n\r\n",
	} {
		world := newInternet()
		world.addServer(t, "data.example", "44.1.1.1", "80", func(c *net.TCPConn) {
			http.ReadRequest(bufio.NewReader(c))
			io.WriteString(c, wire)
		})
		s := startBroker(t, world, "data.example")
		answer, _ := get(t, s.client(), "http://data.example/")
		if c := s.onlyRecord(); answer.StatusCode != 502 || !strings.Contains(answer.Status, "data.example:80") ||
			c.Status != sandbox.ConnectionFailed || c.Reason == "" {
			t.Errorf("%s: got status %s, record %+v; want 502 and a failed connection", name, answer.Status, c)
		}
	}
}

func TestClientThatLeavesEndsItsRequest(t *testing.T) {
	asked, left := make(chan struct{}), make(chan struct{})
	world := newInternet()
	world.addWebServer(t, "data.example", "44.1.1.1", func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(left)
	})
	s := startBroker(t, world, "data.example")
	c := s.dialProxy()
	fmt.Fprint(c, "GET http://data.example/ HTTP/1.1\r\nHost: data.example\r\n\r\n")
	<-asked
	c.Close()
	<-left
	record := s.onlyRecord()
	if record.Status != sandbox.ConnectionFailed || !strings.Contains(record.Reason, "did not wait") ||
		record.BytesSent == 0 {
		t.Errorf("record: got %+v, want that the client did not wait", record)
	}
}

func TestTruncatedResponseIsAnError(t *testing.T) {
	world := newInternet()
	world.addServer(t, "data.example", "44.1.1.1", "80", func(c *net.TCPConn) {
		http.ReadRequest(bufio.NewReader(c))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")
	})
	s := startBroker(t, world, "data.example")
	answer, err := s.client().Get("http://data.example/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("reading a truncated response: got %q and no error", body)
	}
}

// byteCounter counts the bytes of a connection.
type byteCounter struct {
	net.Conn
	read, written int64
}

func (t *byteCounter) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.read += int64(n)
	return n, err
}

func (t *byteCounter) Write(p []byte) (int, error) {
	n, err := t.Conn.Write(p)
	t.written += int64(n)
	return n, err
}
