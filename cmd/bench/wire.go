package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// patience is how long one exchange may take.
const patience = time.Minute

// fresh is for how long an unused connection is still thought to be kept: servers let one go after
// some seconds, uvicorn after five.
const fresh = 2 * time.Second

// wire is a connection that carries one request after another. It runs on the machine
// that it measures, so it must cost little: an http.Transport's connections have two
// goroutines each, through which a request and its answer go, and that is a third of the
// time of a short run.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	used time.Time
}

// dial connects; direct is for who asks one thing at a time.
func dial(ctx context.Context, address string, direct bool) (*wire, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err == nil && direct {
		conn, err = straight(conn.(*net.TCPConn))
	}
	if err != nil {
		return nil, err
	}
	return &wire{conn: conn, in: bufio.NewReader(conn)}, nil
}

// exchange sends a request, which is all of its bytes, and returns the answer's status
// and body. again says whether the connection may be used for another.
func (w *wire) exchange(ctx context.Context, request []byte) (status int, body []byte, again bool, err error) {
	err = w.conn.SetDeadline(time.Now().Add(patience))
	end := context.AfterFunc(ctx, func() { _ = w.conn.SetDeadline(time.Unix(1, 0)) })
	defer end()
	if err == nil {
		_, err = w.conn.Write(request)
	}
	if err != nil {
		return 0, nil, false, errors.Join(ctx.Err(), err)
	}
	answer, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return 0, nil, false, errors.Join(ctx.Err(), err)
	}
	defer answer.Body.Close()
	body = make([]byte, 0, max(answer.ContentLength, 512)+1)
	for err == nil && len(body) <= maxAnswer {
		var n int
		n, err = answer.Body.Read(body[len(body):cap(body)])
		if body = body[:len(body)+n]; len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
	}
	if err != io.EOF {
		return 0, nil, false, errors.Join(ctx.Err(), err, fmt.Errorf("the answer ended after %d bytes, or is larger than %d", len(body), maxAnswer))
	}
	return answer.StatusCode, body, !answer.Close && ctx.Err() == nil, nil
}

// wires are a server's connections that nobody uses.
type wires struct {
	address string
	direct  bool
	idle    chan *wire
}

func newWires(url string, direct bool) wires {
	return wires{strings.TrimPrefix(url, "http://"), direct, make(chan *wire, 64)}
}

// get is one of them, or a new one. One that nobody used for long is let go: the server may
// be about to.
func (s wires) get(ctx context.Context) (*wire, error) {
	for {
		select {
		case w := <-s.idle:
			if time.Since(w.used) < fresh {
				return w, nil
			}
			_ = w.conn.Close()
		default:
			return dial(ctx, s.address, s.direct)
		}
	}
}

// exchange is a wire's. header is of whole lines.
func (s wires) exchange(ctx context.Context, method, path, header string, body []byte) (int, []byte, error) {
	w, err := s.get(ctx)
	if err != nil {
		return 0, nil, err
	}
	request := fmt.Appendf(make([]byte, 0, 512+len(body)), "%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n", method, path, s.address, header, len(body))
	status, answer, again, err := w.exchange(ctx, append(request, body...))
	if w.used = time.Now(); again {
		select {
		case s.idle <- w:
			return status, answer, nil
		default:
		}
	}
	_ = w.conn.Close()
	return status, answer, err
}
