package dap

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	godap "github.com/google/go-dap"
)

// Limits of one message. MaxFrameBytes is the whole message with its headers.
const (
	maxHeaderBytes = 4 << 10
	maxBodyBytes   = 1 << 20
	MaxFrameBytes  = maxHeaderBytes + maxBodyBytes
)

// writeTimeout bounds how long a client may take to read one message.
const writeTimeout = 30 * time.Second

// message is a request of a client. Clients may use any seq.
type message struct {
	godap.Request
	Arguments json.RawMessage `json:"arguments"`
}

// readFrame reads one message: headers, an empty line, and a body of Content-Length bytes. maxBody is called when the
// length is known, and returns the limit. readFrame rejects headers that the protocol does not define, because a web
// page can make a browser send HTTP headers to this port.
func readFrame(in *bufio.Reader, maxBody func() int) ([]byte, error) {
	size, headers := -1, 0
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = errors.New("a header line is too long")
		}
		if err != nil {
			return nil, err
		}
		if headers += len(line); headers > maxHeaderBytes {
			return nil, fmt.Errorf("the headers have more than %d bytes", maxHeaderBytes)
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			break
		}
		name, value, ok := strings.Cut(text, ":")
		switch name = strings.TrimSpace(name); {
		case !ok || !strings.EqualFold(name, "Content-Length") && !strings.EqualFold(name, "Content-Type"):
			return nil, fmt.Errorf("unexpected header %.40q", text)
		case strings.EqualFold(name, "Content-Length"):
			size, err = strconv.Atoi(strings.TrimSpace(value))
			if limit := maxBody(); err != nil || size < 0 || size > limit {
				return nil, fmt.Errorf("invalid Content-Length %.20q: at most %d bytes are allowed", value, limit)
			}
		}
	}
	if size < 0 {
		return nil, errors.New("the Content-Length header is missing")
	}
	body := make([]byte, size)
	_, err := io.ReadFull(in, body)
	return body, err
}

// writer writes whole messages and numbers them. It may be used by several goroutines.
type writer struct {
	mu  sync.Mutex
	out io.Writer
	seq int
}

type response struct {
	godap.Response
	Body any `json:"body,omitempty"`
}

type event struct {
	godap.Event
	Body any `json:"body,omitempty"`
}

// errCancelled is the protocol's own word for a request that was cancelled.
var errCancelled = errors.New("cancelled")

// braces replaces the characters that have a meaning in the format of an error.
var braces = strings.NewReplacer("{", "(", "}", ")")

// respond sends the response to a request. A request that failed because ctx ended was cancelled.
func (w *writer) respond(ctx context.Context, to message, body any, err error) error {
	if err != nil && ctx.Err() != nil {
		err = errCancelled
	}
	r := response{
		Response: godap.Response{
			ProtocolMessage: godap.ProtocolMessage{Type: "response"}, RequestSeq: to.Seq, Success: err == nil,
			Command: to.Command,
		},
		Body: body,
	}
	if err != nil {
		r.Message = err.Error()
		r.Body = godap.ErrorResponseBody{Error: &godap.ErrorMessage{Id: 1, Format: braces.Replace(err.Error())}}
	}
	return w.write(&r, &r.Seq)
}

// sendEvent sends an event.
func (w *writer) sendEvent(name string, body any) error {
	e := event{godap.Event{ProtocolMessage: godap.ProtocolMessage{Type: "event"}, Event: name}, body}
	return w.write(&e, &e.Seq)
}

// forward numbers a message that another sender made, and writes it.
func (w *writer) forward(message map[string]json.RawMessage) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	message["seq"] = strconv.AppendInt(nil, int64(w.seq), 10)
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return writeFrame(w.out, text)
}

// write numbers a message and writes it; seq is its number.
func (w *writer) write(message any, seq *int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	*seq = w.seq
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return writeFrame(w.out, text)
}

// writeFrame writes a message with its header. It waits at most writeTimeout for a reader of a connection.
func writeFrame(to io.Writer, body []byte) error {
	if out, ok := to.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // if the connection is closed, the write reports it
	}
	_, err := to.Write(append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body)), body...))
	return err
}
