package dap

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What a client may send: headers in all, and one message. MaxFrame is both.
const (
	maxHeader  = 4 << 10
	maxMessage = 4 << 20
	MaxFrame   = maxHeader + maxMessage
)

// writeTime is how long a client may take to read one message.
const writeTime = 30 * time.Second

// request is what a client sends. Seq is any number.
type request struct {
	Seq       int             `json:"seq"`
	Type      string          `json:"type"`
	Command   string          `json:"command"`
	Arguments json.RawMessage `json:"arguments"`
}

// readFrame reads one message: headers, an empty line, and as many bytes as
// Content-Length says. most is asked for once that is known. Other headers are none of
// the protocol's: a page in a browser could send them, as HTTP.
func readFrame(in *bufio.Reader, most func() int) ([]byte, error) {
	size, header := -1, 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, bufio.ErrBufferFull) {
				err = errors.New("a header is too long")
			}
			return nil, err
		}
		if header += len(line); header > maxHeader {
			return nil, errors.New("the headers are too long")
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			break
		}
		name, value, ok := strings.Cut(text, ":")
		switch name = strings.TrimSpace(name); {
		case !ok || !strings.EqualFold(name, "Content-Length") && !strings.EqualFold(name, "Content-Type"):
			return nil, fmt.Errorf("%.40q is no header", text)
		case strings.EqualFold(name, "Content-Length"):
			if size, err = strconv.Atoi(strings.TrimSpace(value)); err != nil || size < 0 || size > most() {
				return nil, fmt.Errorf("a message of %.20s bytes", value)
			}
		}
	}
	if size < 0 {
		return nil, errors.New("there is no Content-Length")
	}
	body := make([]byte, size)
	_, err := io.ReadFull(in, body)
	return body, err
}

// writer sends messages, numbered, whole ones only.
type writer struct {
	mu  sync.Mutex
	out io.Writer
	seq int
}

type response struct {
	Seq        int    `json:"seq"`
	Type       string `json:"type"`
	RequestSeq int    `json:"request_seq"`
	Success    bool   `json:"success"`
	Command    string `json:"command"`
	Message    string `json:"message,omitempty"`
	Body       any    `json:"body,omitempty"`
}

type event struct {
	Seq   int    `json:"seq"`
	Type  string `json:"type"`
	Event string `json:"event"`
	Body  any    `json:"body,omitempty"`
}

func (w *writer) respond(to request, body any, err error) error {
	r := response{Type: "response", RequestSeq: to.Seq, Success: err == nil, Command: to.Command, Body: body}
	if err != nil {
		r.Message = err.Error()
		r.Body = map[string]any{"error": map[string]any{"id": 1, "format": strings.NewReplacer("{", "(", "}", ")").Replace(err.Error()), "showUser": false}}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	r.Seq = w.seq
	return w.send(r)
}

func (w *writer) tell(kind string, body any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	return w.send(event{w.seq, "event", kind, body})
}

func (w *writer) send(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if out, ok := w.out.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = out.SetWriteDeadline(time.Now().Add(writeTime)) // of a connection that is closed, which writing says, too
	}
	_, err = w.out.Write(append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(text)), text...))
	return err
}
