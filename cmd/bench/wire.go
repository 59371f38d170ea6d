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

// wire is a connection that carries one request after another. It runs on the machine
// that it measures, so it must cost little: an http.Transport's connections have two
// goroutines each, through which a request and its answer go, and that is a third of the
// time of a short run.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(ctx context.Context, address string) (*wire, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &wire{conn, bufio.NewReader(conn)}, nil
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
	idle    chan *wire
}

func newWires(url string) wires {
	return wires{strings.TrimPrefix(url, "http://"), make(chan *wire, 64)}
}

// exchange is a wire's, on one that is idle or on a new one. header is of whole lines.
func (s wires) exchange(ctx context.Context, method, path, header string, body []byte) (int, []byte, error) {
	var w *wire
	select {
	case w = <-s.idle:
	default:
		var err error
		if w, err = dial(ctx, s.address); err != nil {
			return 0, nil, err
		}
	}
	request := fmt.Appendf(make([]byte, 0, 512+len(body)), "%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n", method, path, s.address, header, len(body))
	status, answer, again, err := w.exchange(ctx, append(request, body...))
	if again {
		select {
		case s.idle <- w:
			return status, answer, nil
		default:
		}
	}
	_ = w.conn.Close()
	return status, answer, err
}
