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
)

// served is a client's end of a connection that Serve has, within a bubble of synctest:
// net.Pipe holds nothing, so what is not read there is not read.
func served(t *testing.T, open Opener) (client net.Conn, over chan error) {
	t.Helper()
	client, server := net.Pipe()
	over = make(chan error, 1)
	go func() { over <- Serve(t.Context(), server, open) }()
	t.Cleanup(func() { client.Close() })
	return client, over
}

func message(command string, arguments string) string {
	text := fmt.Sprintf(`{"seq":1,"type":"request","command":%q,"arguments":%s}`, command, arguments)
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(text), text)
}

func refuse(context.Context, Attach) (*Target, error) { return nil, errors.New("no") }

// takes says how many of these messages are read from a client that reads no answer.
func takes(t *testing.T, client net.Conn, text string, most int) int {
	t.Helper()
	_ = client.SetWriteDeadline(time.Now().Add(time.Second))
	for n := range most {
		if _, err := io.WriteString(client, text); err != nil {
			return n
		}
	}
	return most
}

func TestAClientThatDoesNotAttachEnds(t *testing.T) {
	for name, sends := range map[string]string{"nothing": "", "initialize": message("initialize", "{}"), "a wrong token": message("attach", `{"token":"x"}`)} {
		synctest.Test(t, func(t *testing.T) {
			client, over := served(t, refuse)
			go func() { _, _ = io.Copy(io.Discard, client) }()
			_, _ = io.WriteString(client, sends)
			began := time.Now()
			if err := <-over; err != nil || time.Since(began) != 10*time.Second {
				t.Errorf("%s: it ends after %s: %v", name, time.Since(began), err)
			}
		})
	}
}

// Without a token little is held, in messages, bytes, and of a command's name.
func TestLittleWaitsBeforeAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := served(t, refuse)
		if n := takes(t, client, message("initialize", "{}"), 1000); n > 2*earlyPending+300 { // as many as fit in bufio's 16 KB, too
			t.Errorf("%d messages were taken", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		client, _ := served(t, refuse)
		if n := takes(t, client, message("initialize", `"`+strings.Repeat("x", 200<<10)+`"`), 1000); n > 4 {
			t.Errorf("%d large messages were taken", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		client, over := served(t, refuse)
		go func() { _, _ = io.WriteString(client, message("initialize", `"`+strings.Repeat("x", 256<<10)+`"`)) }()
		began := time.Now()
		if err := <-over; err == nil || time.Since(began) != 0 {
			t.Errorf("a message that is too large was taken: it ends after %s, %v", time.Since(began), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		client, _ := served(t, refuse)
		_, _ = io.WriteString(client, message(strings.Repeat("ä", 100_000), "{}"))
		body, err := readFrame(bufio.NewReader(client), all)
		var said response
		if err != nil || json.Unmarshal(body, &said) != nil || said.Command != strings.Repeat("ä", maxCommand) {
			t.Errorf("%.300s, %v", body, err)
		}
	})
}

// A page in a browser can send a message within HTTP; its first line ends the connection.
func TestHTTPIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, over := served(t, refuse)
		go func() { _, _ = io.WriteString(client, "POST /a:b HTTP/1.1\r\nHost: x\r\n"+message("initialize", "{}")) }()
		began := time.Now()
		if err := <-over; err == nil || time.Since(began) != 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// Who has attached may send large messages, many, and be slow to attach anew; but not
// without bound. Who does not read its answers is left.
func TestAfterAttach(t *testing.T) {
	open := func(context.Context, Attach) (*Target, error) {
		time.Sleep(2 * attachTime) // in the bubble's time: a sandbox that starts slowly
		return &Target{Session: &debugger.Session{}, May: func() error { return errors.New("another drives") }}, nil
	}
	synctest.Test(t, func(t *testing.T) {
		client, over := served(t, open)
		in := bufio.NewReader(client)
		_, _ = io.WriteString(client, message("attach", `{"token":"x"}`))
		for range 2 { // the answer, and initialized
			if body, err := readFrame(in, all); err != nil {
				t.Fatalf("%s, %v", body, err)
			}
		}
		large := message("continue", `"`+strings.Repeat("x", 3<<20)+`"`)
		if n := takes(t, client, large, 100); n < maxWaiting/len(large) || n > maxWaiting/len(large)+1 {
			t.Errorf("%d large messages were taken", n)
		}
		began := time.Now()
		if err := <-over; err == nil || time.Since(began) > writeTime {
			t.Errorf("it ends after %s: %v", time.Since(began), err)
		}
	})
}
