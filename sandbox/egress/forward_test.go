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

// A plain request arrives as it was sent, and every byte of it is counted.
func TestPlainRequest(t *testing.T) {
	world := newInternet()
	passed := make(chan *tally, 1)
	world.listen(t, "data.example", "44.1.1.1", "80", func(c *net.TCPConn) {
		wire := &tally{Conn: c}
		r, err := http.ReadRequest(bufio.NewReader(wire))
		if err != nil {
			t.Error(err)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if r.Host != "data.example" || r.RequestURI != "/a%2Fb//c?q=1;2&x=%zz" || string(body) != "hello" {
			t.Errorf("%s %s %q", r.Host, r.RequestURI, body)
		}
		fmt.Fprintf(wire, "HTTP/1.1 201 Made\r\nContent-Length: 4\r\nX-Answer: 42\r\n\r\nbody")
		passed <- wire
	})
	s := serve(t, world, "data.example")
	r, _ := http.NewRequest("PUT", "http://data.example/", strings.NewReader("hello"))
	r.URL.Opaque = "//data.example/a%2Fb//c?q=1;2&x=%zz"
	answer, err := s.client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != 201 || string(body) != "body" || answer.Header.Get("X-Answer") != "42" || answer.Header.Get("Via") == "" {
		t.Errorf("%v %q %v", answer, body, err)
	}
	c := s.only()
	if c.Host != "data.example" || c.Port != 80 || c.Address != "44.1.1.1:80" || c.Status != sandbox.ConnectionAllowed || c.Reason != "" || c.StartedAt.IsZero() || c.DurationMS <= 0 {
		t.Errorf("%+v", c)
	}
	if wire := <-passed; c.BytesSent != wire.read || c.BytesReceived != wire.written {
		t.Errorf("counted %d and %d, %d and %d passed", c.BytesSent, c.BytesReceived, wire.read, wire.written)
	}
}

// What is between two hops stays there; all else passes (RFC 9110, 7.6.1). The URL
// says which host it is for, whatever the Host header says.
func TestHopByHop(t *testing.T) {
	world := newInternet()
	arrived := make(chan *http.Request, 1)
	world.listen(t, "data.example", "44.1.1.1", "80", func(c *net.TCPConn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			t.Error(err)
		}
		arrived <- r
		io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nX-Kept: 1\r\nContent-Length: 4\r\n\r\nfine")
	})
	s := serve(t, world, "data.example")
	answer := s.say("GET http://DATA.example.:80/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close, X-Private\r\nX-Private: 1\r\nKeep-Alive: 1\r\nProxy-Connection: keep-alive\r\n" +
		"Proxy-Authorization: Basic eDp5\r\nTE: gzip\r\nX-Kept: 1\r\nX-Forwarded-For: 1.2.3.4\r\nCookie: a=b\r\nVia: 1.0 older\r\nAccept-Encoding: br\r\n\r\n")
	r := <-arrived
	want := http.Header{"Accept-Encoding": {"br"}, "Connection": {"close"}, "Cookie": {"a=b"}, "Via": {"1.0 older", "1.1 glasshouse"}, "X-Forwarded-For": {"1.2.3.4"}, "X-Kept": {"1"}}
	if !maps.EqualFunc(r.Header, want, slices.Equal) || r.Host != "data.example" {
		t.Errorf("arrived: %v, host %s", r.Header, r.Host)
	}
	if !strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n") || !strings.Contains(answer, "X-Kept: 1") || !strings.HasSuffix(answer, "fine") {
		t.Errorf("answered %q", answer)
	}
	for _, gone := range []string{"X-Hop", "Keep-Alive", "Proxy-Authenticate"} {
		if strings.Contains(answer, gone) {
			t.Errorf("%s passed: %q", gone, answer)
		}
	}
}

// Streams pass as they come, both ways, with trailers.
func TestPlainStreams(t *testing.T) {
	world := newInternet()
	world.web(t, "data.example", "44.1.1.1", func(w http.ResponseWriter, r *http.Request) {
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
	s := serve(t, world, "data.example")
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
			t.Fatalf("%q %v", got, err)
		}
		switch word { // the next line is sent when the last has come back
		case "one":
			io.WriteString(out, "two\n")
		case "two":
			io.WriteString(out, "three\n")
		}
	}
	out.Close()
	io.WriteString(c, "\r\n")
	if rest, err := io.ReadAll(lines); err != nil || len(rest) != 0 || answer.Trailer.Get("X-Sum") != "7" {
		t.Errorf("%q %v %v", rest, err, answer.Trailer)
	}
}

// One client connection may carry several requests, each to where it names.
func TestKeepAlive(t *testing.T) {
	world := newInternet()
	for i, name := range []string{"a.example", "b.example"} {
		world.web(t, name, fmt.Sprintf("44.1.1.%d", i+1), func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, name) })
	}
	s := serve(t, world, "a.example b.example")
	answer := s.say("GET http://a.example/ HTTP/1.1\r\nHost: x\r\n\r\nGET http://b.example/ HTTP/1.1\r\nHost: x\r\n\r\nGET http://a.example/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if strings.Count(answer, "200 OK") != 3 || strings.Index(answer, "a.example") > strings.Index(answer, "b.example") {
		t.Errorf("%q", answer)
	}
	if log := s.finished(3); len(log) != 3 || log[1].Host != "b.example" {
		t.Errorf("%+v", log)
	}
}

func TestUpgrade(t *testing.T) {
	world := newInternet()
	world.listen(t, "data.example", "44.1.1.1", "80", func(c *net.TCPConn) {
		in := bufio.NewReader(c)
		r, err := http.ReadRequest(in)
		if err != nil || r.Header.Get("Upgrade") != "echo" {
			t.Errorf("%+v %v", r, err)
			return
		}
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.CopyN(c, in, 5)
	})
	s := serve(t, world, "data.example")
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
		t.Errorf("%q %v", echo, err)
	}
}

// An upstream's answer is bounded, and must be one.
func TestBadAnswers(t *testing.T) {
	for name, wire := range map[string]string{
		"not HTTP":    "SSH-2.0-x\r\n\r\n",
		"nothing":     "",
		"a huge head": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 200_000) + "\r\n\r\n",
	} {
		world := newInternet()
		world.listen(t, "data.example", "44.1.1.1", "80", func(c *net.TCPConn) {
			http.ReadRequest(bufio.NewReader(c))
			io.WriteString(c, wire)
		})
		s := serve(t, world, "data.example")
		answer, _ := get(t, s.client(), "http://data.example/")
		if c := s.only(); answer.StatusCode != 502 || !strings.Contains(answer.Status, "data.example:80") || c.Status != sandbox.ConnectionFailed || c.Reason == "" {
			t.Errorf("%s: %s, %+v", name, answer.Status, c)
		}
	}
}

// A client that leaves before the answer ends its request to the host.
func TestLeft(t *testing.T) {
	asked, left := make(chan struct{}), make(chan struct{})
	world := newInternet()
	world.web(t, "data.example", "44.1.1.1", func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(left)
	})
	s := serve(t, world, "data.example")
	c := s.dialProxy()
	fmt.Fprint(c, "GET http://data.example/ HTTP/1.1\r\nHost: data.example\r\n\r\n")
	<-asked
	c.Close()
	<-left
	if c := s.only(); c.Status != sandbox.ConnectionFailed || !strings.Contains(c.Reason, "did not wait") || c.BytesSent == 0 {
		t.Errorf("%+v", c)
	}
}

// An answer that breaks off must not look whole.
func TestBrokenAnswer(t *testing.T) {
	world := newInternet()
	world.listen(t, "data.example", "44.1.1.1", "80", func(c *net.TCPConn) {
		http.ReadRequest(bufio.NewReader(c))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")
	})
	s := serve(t, world, "data.example")
	answer, err := s.client().Get("http://data.example/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("it ended well: %q", body)
	}
}

// tally counts what passes.
type tally struct {
	net.Conn
	read, written int64
}

func (t *tally) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.read += int64(n)
	return n, err
}

func (t *tally) Write(p []byte) (int, error) {
	n, err := t.Conn.Write(p)
	t.written += int64(n)
	return n, err
}
