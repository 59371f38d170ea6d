package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestNemoAdvice covers that errors give advice that a client without a config can follow.
func TestNemoAdvice(t *testing.T) {
	t.Parallel()
	url := startCompat(t, withPackages())
	for code, want := range map[string]string{
		"x = bytearray(600 << 20)": "--nemo-memory-mb",
		"import urllib.request\nurllib.request.urlopen('http://example.com')": "work with the files",
		"print(1 + undefined_name)": "NameError: name 'undefined_name' is not defined",
	} {
		a := postCompat(t, url, compatRequest(code, 20))
		if a.Status != "error" || !strings.HasPrefix(a.Stderr, "Traceback") || !strings.Contains(a.Stderr, want) ||
			strings.Contains(a.Stderr, "create") {
			t.Errorf("%s: got %+v, want a traceback with %q and no advice to create something", code, a, want)
		}
	}
}

// TestNemoLimitsAreSettable covers that the operator gives requests more memory, and that the ceiling of the execution
// time holds for them.
func TestNemoLimitsAreSettable(t *testing.T) {
	t.Parallel()
	url := startCompat(t, "GLASSHOUSE_NEMO_MEMORY_MB=900", "--max-execution-time=5", "DEBUG=1")
	if a := postCompat(t, url, compatRequest("x = bytearray(600 << 20)\nprint(len(x))", 20)); a.Status != "completed" {
		t.Errorf("with 900 MB: got %+v, want it completed", a)
	}
	if a := postCompat(t, url, compatRequest("while True: pass", 100)); a.Status != "timeout" {
		t.Errorf("with a ceiling of 5 s: got %+v, want a timeout", a)
	}
	for _, args := range [][]string{
		{"--nemo-memory-mb", "10"}, {"--nemo-memory-mb", "5000", "--max-memory-mb", "4000"},
	} {
		if _, err := parseSettings(args...); err == nil ||
			!strings.Contains(err.Error(), "must be from 64 to --max-memory-mb") {
			t.Errorf("%v: got %v, want it refused", args, err)
		}
	}
}

// TestNemoAnswersPiston covers the requests of a Piston server, which newer clients send.
func TestNemoAnswersPiston(t *testing.T) {
	t.Parallel()
	url := startCompat(t)
	for _, c := range []struct {
		body           string
		status         int
		stdout, stderr string
		code           float64
	}{
		{`{"language": "py", "version": "3.10.0", "files": [{"content": "print(1 + 1)"}], "run_timeout": 10000}`,
			200, "2\n", "", 0},
		{`{"language": "python", "files": [{"content": "1 / 0"}]}`, 200, "", "Traceback", 1},
		{`{"language": "python", "files": [{"content": "print('on')\nwhile True: pass"}], "run_timeout": 1000.0}`,
			200, "on\n", "Timed out", 1},
		{`{"language": "python", "files": [{"content": "print('x' * 5000)"}]}`,
			200, strings.Repeat("x", 5000) + "\n", "", 0},
		{`{"language": "js", "files": [{"content": "1"}]}`, 400, "", "Only python", 1},
		{`{"language": "py", "files": []}`, 400, "", "Invalid field: files", 1},
	} {
		resp, err := http.Post(url+"/api/v2/execute", "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Run struct {
				Stdout, Stderr string
				Code           float64
			}
		}
		err = json.NewDecoder(resp.Body).Decode(&got)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || got.Run.Stdout != c.stdout || got.Run.Code != c.code ||
			!strings.HasPrefix(got.Run.Stderr, c.stderr) || c.stderr == "" && got.Run.Stderr != "" {
			t.Errorf("%s: got HTTP %d %+v, %v, want %+v", c.body, resp.StatusCode, got, err, c)
		}
	}
}

// TestNemoOutput covers output that is binary, and output that has no end.
func TestNemoOutput(t *testing.T) {
	t.Parallel()
	url := startCompat(t)
	const binary = "import os, sys\nos.write(1, bytes([0, 255, 254]))\n" +
		"sys.stdout.buffer.write(bytes(range(128, 256)))\nprint('\\ud800', 'end')"
	a := postCompat(t, url, compatRequest(binary, 20))
	if a.Status != "completed" || !strings.HasSuffix(a.Stdout, " end\n") {
		t.Errorf("binary output: got %+v, want text", a)
	}
	size := 100
	if testing.Short() {
		size = 10
	}
	flood := fmt.Sprintf("for _ in range(%d): print('x' * (1 << 20))\nprint('end')", size)
	a = postCompat(t, url, compatRequest(flood, 60))
	if a.Status != "completed" || len(a.Stdout) > 2000 || !strings.Contains(a.Stdout, "more characters were cut") {
		t.Errorf("%d MiB of output: got %s, %d characters, want 1000 and a note", size, a.Status, len(a.Stdout))
	}
}

// TestNemoClientThatLeaves covers that nothing runs on for a client that has left.
func TestNemoClientThatLeaves(t *testing.T) {
	t.Parallel()
	url, setting := reserveCompat(t)
	_, admin := start(t, binary(t), dataDir(t), setting)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		body := strings.NewReader(compatRequest("while True: pass", 100))
		req, _ := http.NewRequestWithContext(ctx, "POST", url+"/execute", body)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		left <- err
	}()
	id := admin.running(t)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a cancelled request", err)
	}
	eventually(t, func() error {
		if e := admin.must(t, "GET", "/executions/"+id, nil); e["status"] != "cancelled" {
			return fmt.Errorf("got the status %v, want cancelled", e["status"])
		}
		return nil
	})
}
