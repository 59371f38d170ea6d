package nemo

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/compat"
)

func TestInvalidRequestIsExplained(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`[]`:                                    "Invalid JSON data",
		`null`:                                  "Invalid JSON data",
		`{"timeout": 1}`:                        "Missing required field: generated_code",
		`{"generated_code": "1"}`:               "Missing required field: timeout",
		`{"generated_code": null, "timeout":1}`: "Invalid field: generated_code must be a string",
		`{"generated_code": "1", "timeout":0}`:  "Invalid field: timeout must be a number of seconds above 0",
		`{"generated_code": "1", "timeout":1, "language": "perl"}`:        "Only python execution is supported",
		`{"generated_code": "1", "timeout":1, "max_output_characters":0}`: "Invalid field: max_output_characters must be a whole number above 0",
	} {
		if _, got := parseRequest([]byte(body)); got == nil || got.Error() != want {
			t.Errorf("%s: got %v, want %q", body, got, want)
		}
	}
}

func TestRequestIsParsed(t *testing.T) {
	t.Parallel()
	got, err := parseRequest(
		[]byte(`{"generated_code": "print(1)", "timeout": 0.5, "language": "Python3", "max_output_characters": 7}`),
	)
	want := request{code: "print(1)", timeout: 500 * time.Millisecond, maxOutputChars: 7}
	if got != want || err != nil {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got, _ := parseRequest([]byte(`{"generated_code": "", "timeout": 1e-300}`)); got.timeout <= 0 {
		t.Errorf("tiny timeout: got %s, want more than 0", got.timeout)
	}
}

func TestPagesInABrowserAreRefused(t *testing.T) {
	t.Parallel()
	server := &Server{Config: compat.Config{Log: logrus.New()}}
	for _, c := range []struct {
		host, header, value string
		want                int
	}{
		{"localhost:6000", "", "", http.StatusOK},
		{"127.0.0.1:6000", "", "", http.StatusOK},
		{"[::1]:6000", "Origin", "http://[::1]:6000", http.StatusOK},
		{"glasshouse.example", "", "", http.StatusForbidden},
		{"localhost:6000", "Origin", "https://evil.example", http.StatusForbidden},
		{"localhost:6000", "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = c.host
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("host %s, %s %q: got status %d, want %d", c.host, c.header, c.value, w.Code, c.want)
		}
	}
}

func TestAnswerHasTheTracebackThatPythonPrints(t *testing.T) {
	t.Parallel()
	raised := &sandbox.Exception{Type: "ValueError", Message: "no", Line: 2, Traceback: []sandbox.Frame{
		{Line: 2, Function: "<module>", Code: "f()"}, {Line: 1, Function: "f", File: "/work/a.py"},
	}}
	const traceback = `Traceback (most recent call last):
  File "<string>", line 2, in <module>
    f()
  File "/work/a.py", line 1, in f
ValueError: no
`
	for name, c := range map[string]struct {
		execution sandbox.Execution
		want      answer
	}{
		"completed": {
			sandbox.Execution{Status: sandbox.StatusCompleted, Stdout: "1\n"},
			answer{"completed", "1\n", ""},
		},
		"failed": {
			sandbox.Execution{Status: sandbox.StatusFailed, Exception: raised, Stderr: "warning\n"},
			answer{"error", "", "warning\n" + traceback},
		},
		"exit": {
			sandbox.Execution{Status: sandbox.StatusFailed, Exception: &sandbox.Exception{Type: "SystemExit"}},
			answer{"error", "", ""},
		},
		"killed": {
			sandbox.Execution{Status: sandbox.StatusKilled, Error: new("out of memory")},
			answer{"error", "", "out of memory\n"},
		},
		"timeout": {
			sandbox.Execution{Status: sandbox.StatusTimeout, Stderr: "x", Error: new("x")},
			answer{"timeout", "", "Timed out\n"},
		},
	} {
		if got := answerOf(&c.execution); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestLargeBodyIsRefused(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("POST", "/execute", strings.NewReader(strings.Repeat(" ", maxBodyBytes+1)))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	requests := access.New(access.Config{})
	t.Cleanup(requests.Close)
	(&Server{Config: compat.Config{Access: requests, Log: logrus.New()}}).ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("got status %d, want %d", w.Code, http.StatusRequestEntityTooLarge)
	}
}
