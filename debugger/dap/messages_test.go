package dap

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
)

func anyBody() int { return maxBodyBytes }

func TestInvalidFramesAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"\r\n", "Content-Length: x\r\n\r\n", "Content-Length: -1\r\n\r\n", "Content-Length: 99999999\r\n\r\n",
		"nonsense\r\n\r\n",
		"Content-Length: 5\r\n\r\nabc", strings.Repeat("Content-Type: b\r\n", 2000) + "Content-Length: 0\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "POST /a:b HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
		"Host: x\r\nContent-Length: 2\r\n\r\n{}", "X: " + strings.Repeat("y", 20_000),
	} {
		if body, err := readFrame(bufio.NewReader(strings.NewReader(text)), anyBody); err == nil {
			t.Errorf("%.40q: got %q, want an error", text, body)
		}
	}
	text := "content-length:2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}"
	if body, err := readFrame(bufio.NewReader(strings.NewReader(text)), anyBody); err != nil || string(body) != "{}" {
		t.Errorf("%q: got %q, %v, want {}", text, body, err)
	}
}

type stream struct {
	io.Reader
	bytes.Buffer
}

func (s *stream) Read(b []byte) (int, error) { return s.Reader.Read(b) }
func (s *stream) Close() error               { return nil }

// FuzzServe checks that Serve ends for any input of a client without a token, and that no request of a session
// succeeds.
func FuzzServe(f *testing.F) {
	for _, command := range []string{"initialize", "continue", "attach"} {
		f.Add([]byte(frame(command, "{}")))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &stream{Reader: bytes.NewReader(b)}
		_ = Serve(t.Context(), s, refuse)
		for _, command := range SessionRequests() {
			if bytes.Contains(s.Bytes(), []byte(`"success":true,"command":"`+command+`"`)) {
				t.Errorf("%s succeeded without a token", command)
			}
		}
	})
}
