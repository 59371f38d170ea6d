package dap

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func all() int { return maxMessage }

func TestFramesThatAreRefused(t *testing.T) {
	for _, text := range []string{
		"\r\n", "Content-Length: x\r\n\r\n", "Content-Length: -1\r\n\r\n", "Content-Length: 99999999\r\n\r\n", "nonsense\r\n\r\n",
		"Content-Length: 5\r\n\r\nabc", strings.Repeat("Content-Type: b\r\n", 2000) + "Content-Length: 0\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "POST /a:b HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "Host: x\r\nContent-Length: 2\r\n\r\n{}", "X: " + strings.Repeat("y", 20_000),
	} {
		if body, err := readFrame(bufio.NewReader(strings.NewReader(text)), all); err == nil {
			t.Errorf("%.40q was taken as %q", text, body)
		}
	}
	body, err := readFrame(bufio.NewReader(strings.NewReader("content-length:2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}")), all)
	if err != nil || string(body) != "{}" {
		t.Errorf("%q, %v", body, err)
	}
}

type stream struct {
	io.Reader
	bytes.Buffer
}

func (s *stream) Read(b []byte) (int, error) { return s.Reader.Read(b) }
func (s *stream) Close() error               { return nil }

// Whatever a client sends ahead of its token, nothing is opened, and Serve ends.
func FuzzServe(f *testing.F) {
	f.Add([]byte("Content-Length: 48\r\n\r\n{\"seq\":1,\"type\":\"request\",\"command\":\"initialize\"}"))
	f.Add([]byte("Content-Length: 47\r\n\r\n{\"seq\":2,\"type\":\"request\",\"command\":\"continue\"}"))
	f.Add([]byte("Content-Length: 45\r\n\r\n{\"seq\":3,\"type\":\"request\",\"command\":\"attach\"}"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		s := &stream{Reader: bytes.NewReader(sent)}
		_ = Serve(context.Background(), s, func(context.Context, Attach) (*Target, error) { return nil, errors.New("no") })
		if bytes.Contains(s.Bytes(), []byte(`"command":"continue"`)) && bytes.Contains(s.Bytes(), []byte(`"success":true,"command":"continue"`)) {
			t.Error("a move was made")
		}
	})
}
