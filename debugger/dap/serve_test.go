package dap

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"glasshouse/debugger"
	"glasshouse/sandbox"
)

// serve starts Serve within a bubble of synctest, and returns the client's end of the connection. A net.Pipe has no
// buffer: a completed write means that Serve has read the bytes.
func serve(t *testing.T, open Opener) (client net.Conn, ended chan error) {
	t.Helper()
	client, server := net.Pipe()
	ended = make(chan error, 1)
	go func() { ended <- Serve(t.Context(), server, open) }()
	t.Cleanup(func() { client.Close() })
	return client, ended
}

func frame(command string, arguments string) string {
	text := fmt.Sprintf(`{"seq":1,"type":"request","command":%q,"arguments":%s}`, command, arguments)
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(text), text)
}

func padding(kilobytes int) string { return `"` + strings.Repeat("x", kilobytes<<10) + `"` }

func refuse(context.Context, Attach) (*Target, error) { return nil, errors.New("refused") }

// countAccepted returns how many of these messages are read from a client that reads no response.
func countAccepted(client net.Conn, text string, limit int) int {
	_ = client.SetWriteDeadline(time.Now().Add(time.Second))
	for n := range limit {
		if _, err := io.WriteString(client, text); err != nil {
			return n
		}
	}
	return limit
}

func TestClientThatDoesNotAttachIsDisconnected(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{
		"nothing": "", "initialize": frame("initialize", "{}"), "wrong token": frame("attach", `{"token":"x"}`),
	} {
		synctest.Test(t, func(t *testing.T) {
			client, ended := serve(t, refuse)
			go func() { _, _ = io.Copy(io.Discard, client) }()
			_, _ = io.WriteString(client, sent)
			start := time.Now()
			if err := <-ended; err != nil || time.Since(start) != attachTimeout {
				t.Errorf("%s: got %v after %s, want an end after %s", name, err, time.Since(start), attachTimeout)
			}
		})
	}
}

// Attempts to attach do not extend the time that a client without a token has.
func TestAttemptsDoNotDelayTheDisconnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, ended := serve(t, refuse)
		go func() { _, _ = io.Copy(io.Discard, client) }()
		start := time.Now()
		for range 3 {
			_, _ = io.WriteString(client, frame("attach", `{"token":"x"}`))
			time.Sleep(attachTimeout / 4) // in the bubble's time
		}
		if err := <-ended; err != nil || time.Since(start) != attachTimeout {
			t.Errorf("got %v after %s, want an end after %s", err, time.Since(start), attachTimeout)
		}
	})
}

func TestInputIsLimitedBeforeAttach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, _ := serve(t, refuse)
		limit := 2*maxWaitingBeforeAttach + 300 // some messages fit in the read buffer
		if n := countAccepted(client, frame("initialize", "{}"), 1000); n > limit {
			t.Errorf("got %d messages, want at most %d", n, limit)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		client, _ := serve(t, refuse)
		if n := countAccepted(client, frame("initialize", padding(200)), 1000); n > 4 {
			t.Errorf("got %d messages of 200 KB, want at most 4", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		client, ended := serve(t, refuse)
		go func() { _, _ = io.WriteString(client, frame("initialize", padding(256))) }()
		start := time.Now()
		if err := <-ended; err == nil || time.Since(start) != 0 {
			t.Errorf("a message over the limit: got %v after %s, want an error at once", err, time.Since(start))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		client, _ := serve(t, refuse)
		_, _ = io.WriteString(client, frame(strings.Repeat("ä", 100_000), "{}"))
		body, err := readFrame(bufio.NewReader(client), anyBody)
		var got response
		if err != nil || json.Unmarshal(body, &got) != nil || got.Command != strings.Repeat("ä", maxCommandChars) {
			t.Errorf("a long command: got %.300s, %v, want it cut to %d characters", body, err, maxCommandChars)
		}
	})
}

// Names of attach have a limit, because each stack frame repeats the path. The opener does not see longer ones.
func TestNamesOfAttachAreLimited(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"token", "session", "execution", "sandbox", "path"} {
		for bytes, want := range map[int]string{
			sandbox.MaxNameBytes:     "refused",
			sandbox.MaxNameBytes + 1: field + ": it has 1025 bytes, and may have 1024; send a shorter one",
		} {
			synctest.Test(t, func(t *testing.T) {
				client, _ := serve(t, refuse)
				arguments := fmt.Sprintf(`{%q:%q}`, field, strings.Repeat("x", bytes))
				_, _ = io.WriteString(client, frame("attach", arguments))
				body, err := readFrame(bufio.NewReader(client), anyBody)
				var got response
				if err != nil || json.Unmarshal(body, &got) != nil || !strings.Contains(got.Message, want) {
					t.Errorf("%s of %d bytes: got %.300s, %v, want %q", field, bytes, body, err, want)
				}
			})
		}
	}
}

// A page in a browser can send a message within an HTTP request. The request's first line ends the connection.
func TestHTTPIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, ended := serve(t, refuse)
		go func() {
			_, _ = io.WriteString(client, "POST /a:b HTTP/1.1\r\nHost: x\r\n"+frame("initialize", "{}"))
		}()
		start := time.Now()
		if err := <-ended; err == nil || time.Since(start) != 0 {
			t.Errorf("got %v after %s, want an error at once", err, time.Since(start))
		}
	})
}

// Only a request in UTF-8 is executed. Another message that names a command is ignored, or ends the connection.
func TestOtherMessagesAreNotExecuted(t *testing.T) {
	t.Parallel()
	body := `{"seq":1,"type":"response","request_seq":1,"command":"attach","arguments":{"token":"x"}}`
	for name, sent := range map[string]string{
		"a response": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"not UTF-8":  strings.Replace(frame("attach", `{"token":"x"}`), `"x"`, "\"\xff\"", 1),
	} {
		synctest.Test(t, func(t *testing.T) {
			client, ended := serve(t, func(_ context.Context, in Attach) (*Target, error) {
				t.Errorf("%s: the token %q was used, want no attach", name, in.Token)
				return nil, errors.New("refused")
			})
			go func() { _, _ = io.Copy(io.Discard, client) }()
			_, _ = io.WriteString(client, sent)
			<-ended
		})
	}
}

// A second attach would leave the first session open.
func TestClientAttachesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, _ := serve(t, func(context.Context, Attach) (*Target, error) {
			return &Target{Session: &debugger.Session{}}, nil
		})
		in := bufio.NewReader(client)
		for _, want := range []string{"", errAlreadyAttached.Error()} {
			_, _ = io.WriteString(client, frame("attach", `{"token":"x"}`))
			for got := (response{}); got.Type != "response"; { // the event initialized follows the first one
				body, err := readFrame(in, anyBody)
				if err != nil || json.Unmarshal(body, &got) != nil || got.Type == "response" && got.Message != want {
					t.Fatalf("got %s, %v, want a response with the message %q", body, err, want)
				}
			}
		}
	})
}

// An attached client may send many large messages, up to a limit. A client that does not read the responses is
// disconnected.
func TestRequestsOfAttachedClientAreBounded(t *testing.T) {
	t.Parallel()
	open := func(context.Context, Attach) (*Target, error) {
		time.Sleep(2 * attachTimeout) // in the bubble's time: a sandbox that starts slowly
		return &Target{Session: &debugger.Session{},
			MayDrive: func() error { return errors.New("another client drives") }}, nil
	}
	synctest.Test(t, func(t *testing.T) {
		client, ended := serve(t, open)
		in := bufio.NewReader(client)
		_, _ = io.WriteString(client, frame("attach", `{"token":"x"}`))
		for range 2 { // the response and the event initialized
			if body, err := readFrame(in, anyBody); err != nil {
				t.Fatalf("got %s, %v", body, err)
			}
		}
		large := frame("continue", padding(900))
		want := maxWaitingBytes / len(large)
		if n := countAccepted(client, large, 100); n < want || n > want+1 {
			t.Errorf("got %d large messages, want %d", n, want)
		}
		start := time.Now()
		if err := <-ended; err == nil || time.Since(start) > writeTimeout {
			t.Errorf("got %v after %s, want an error within %s", err, time.Since(start), writeTimeout)
		}
	})
}
