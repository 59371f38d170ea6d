package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// compatAnswer is an answer of the compatibility API.
type compatAnswer struct {
	code   int
	Status string `json:"process_status"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// startCompat starts the service with the compatibility API and returns the API's URL. The arguments are
// those of start.
func startCompat(t *testing.T, arguments ...string) string {
	t.Helper()
	url, setting := reserveCompat(t)
	start(t, binary(t), dataDir(t), append(arguments, setting)...)
	return url
}

// reserveCompat returns a URL for the compatibility API and the setting with which a service listens there.
func reserveCompat(t *testing.T) (url, setting string) {
	t.Helper()
	address := reserveAddress(t)
	return "http://" + address, "GLASSHOUSE_COMPAT=nemo=" + address
}

// reserveAddress returns a free loopback address.
func reserveAddress(t *testing.T) string {
	t.Helper()
	// The kernel gives ports of its own range (ip_local_port_range, from 32768) to outgoing connections at any time, so
	// the port is below it.
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("none of 100 ports of 127.0.0.1 is free")
	return ""
}

// postCompat sends a request to the compatibility API. headers are pairs of name and value.
func postCompat(t testing.TB, url, body string, headers ...string) compatAnswer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/execute", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	a := compatAnswer{code: resp.StatusCode}
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		t.Fatalf("got answer %s, %v, want JSON", text, err)
	}
	return a
}

func compatRequest(code string, timeout any) string {
	text, _ := json.Marshal(map[string]any{"generated_code": code, "timeout": timeout, "language": "python"})
	return string(text)
}

// exchange is a recorded request of a client, with the fields that the client needs in the answer.
type exchange struct {
	Name     string            `json:"name"`
	Method   string            `json:"method"`
	Path     string            `json:"path"`
	Headers  map[string]string `json:"headers"`
	Body     string            `json:"body"`
	Code     int               `json:"code"`
	Answer   map[string]any    `json:"answer"`
	Contains map[string]string `json:"contains"`
}

// TestCompatAnswersRecordedClients sends requests that published clients sent; the files name the clients.
func TestCompatAnswersRecordedClients(t *testing.T) {
	t.Parallel()
	url := startCompat(t, withPackages())
	files, err := filepath.Glob("testdata/compat/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("got no recordings, %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var recorded struct {
			Client    string     `json:"client"`
			Exchanges []exchange `json:"exchanges"`
		}
		if err := json.Unmarshal(text, &recorded); err != nil || len(recorded.Exchanges) == 0 {
			t.Fatalf("%s: %v", file, err)
		}
		for _, x := range recorded.Exchanges {
			t.Run(filepath.Base(file)+"/"+x.Name, func(t *testing.T) {
				req, err := http.NewRequestWithContext(
					t.Context(),
					x.Method,
					url+x.Path,
					bytes.NewReader([]byte(x.Body)),
				)
				if err != nil {
					t.Fatal(err)
				}
				for name, value := range x.Headers {
					req.Header.Set(name, value)
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				var got map[string]any
				if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode != x.Code {
					t.Errorf("got HTTP %d: %v, want %d", resp.StatusCode, got, x.Code)
				}
				for key, want := range x.Answer {
					if got[key] != want {
						t.Errorf("got %s %q, want %q", key, got[key], want)
					}
				}
				for key, part := range x.Contains {
					if !strings.Contains(fmt.Sprint(got[key]), part) {
						t.Errorf("got %s %q, want it to contain %q", key, got[key], part)
					}
				}
			})
		}
	}
}

func TestCompatRunsCode(t *testing.T) {
	t.Parallel()
	url := startCompat(t)
	for _, c := range []struct {
		name, code     string
		timeout        any
		status, stdout string
		stderr         string // the beginning of it
	}{
		{"plain", "print('hello')", 10, "completed", "hello\n", ""},
		{"a dict", `{'generated_code': 'print("in a dict")'}`, 10, "completed", "in a dict\n", ""},
		{"JSON", `{"generated_code": "print(\"in JSON\")\nprint(2)"}`, 10, "completed", "in JSON\n2\n", ""},
		{"Markdown", "```python\nprint('fenced')\n```", 10, "completed", "fenced\n", ""},
		{"Markdown in prose", "Here it is:\n\n```python\nx = 1\n```\nand then\n```\nprint(x)\n```\nDone.", 10, "completed", "1\n", ""},
		{"a fence in a string", "s = '''\n```python\nprint('no')\n```\n'''\nprint(len(s.splitlines()))", 10, "completed", "4\n", ""},
		{"a dict that the code uses", "{'generated_code': 1}\nprint('mine')", 10, "completed", "mine\n", ""},
		{"os, sys and open", "import os, sys\nopen('f.txt', 'w').write('x')\nprint(os.getcwd(), sys.version_info[0], os.path.exists('f.txt'))", 10, "completed", "/session 3 True\n", ""},
		{"exec and a main", "exec('y = 2')\nif __name__ == '__main__':\n    print(y, eval('y + 1'))", 10, "completed", "2 3\n", ""},
		{"stderr", "import sys\nprint('e', file=sys.stderr)", 10, "completed", "", "e\n"},
		{"an exit", "import sys\nprint('before')\nsys.exit()\nprint('after')", 10, "completed", "before\n", ""},
		{"an exit with a number", "import sys\nsys.exit(3)", 10, "error", "", ""},
		{"a failure", "def f():\n    return 1 / 0\nprint('before')\nf()", 10, "error", "before\n", "Traceback (most recent call last):\n  File \"<string>\", line 4, in <module>\n    f()\n  File \"<string>\", line 2, in f\n    return 1 / 0\nZeroDivisionError: division by zero\n"},
		{"a syntax error", "print('x'\n", 10, "error", "", "Traceback (most recent call last):\n" +
			"  File \"<string>\", line 1\n    print('x'\n         ^\nSyntaxError: "},
		{"two failures", "try:\n    1 / 0\nexcept ZeroDivisionError:\n" +
			"    e = KeyError('k')\n    e.add_note('a note')\n    raise e", 10, "error", "",
			"Traceback (most recent call last):\n  File \"<string>\", line 2, in " +
				"<module>\n    1 / 0\nZeroDivisionError: division by zero\n\nDuring handling of the above exception, " +
				"another exception occurred:\n\nTraceback (most recent call last):\n  File \"<string>\", line 6, in " +
				"<module>\n    raise e\nKeyError: 'k'\na note\n"},
		{"a cause", "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e", 10, "error", "",
			"Traceback (most recent call last):\n  File \"<string>\", line 2, in <module>\n    1 / 0\n" +
				"ZeroDivisionError: division by zero\n\nThe above exception was the direct cause of the following " +
				"exception:\n\nTraceback"},
		{"no database", "db_query('SELECT 1')", 10, "error", "", "Traceback"},
		{"no helpers in the namespace", "print([n for n in dir() if n[:2] != '__'])", 10, "completed",
			"['exit', 'get_ipython', 'help', 'quit']\n", ""},
		{"a timeout", "import time\nprint('on')\ntime.sleep(30)", 1, "timeout", "on\n", "Timed out\n"},
		{"a timeout of half a second", "import time\nprint('on')\ntime.sleep(30)", 0.5, "timeout", "on\n", "Timed out\n"},
		{"code that catches the interrupt", "import signal\nprint('on')\nwhile True:\n    try:\n        while True: pass\n    except BaseException: pass", 1, "timeout", "on\n", "Timed out\n"},
		{"memory", "x = b'x' * (1 << 33)", 20, "error", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := postCompat(t, url, compatRequest(c.code, c.timeout))
			unexpected := c.stderr == "" && c.name != "memory" && a.Stderr != ""
			if a.code != 200 || a.Status != c.status || a.Stdout != c.stdout ||
				!strings.HasPrefix(a.Stderr, c.stderr) ||
				unexpected {
				t.Errorf("got %+v, want status %s, stdout %q and stderr %q", a, c.status, c.stdout, c.stderr)
			}
		})
	}
	for body, want := range map[string]string{
		`{"timeout": 1}`:                             "Missing required field: generated_code",
		`{"generated_code": "1"}`:                    "Missing required field: timeout",
		`{"generated_code": 1, "timeout": 1}`:        "Invalid field: generated_code",
		`{"generated_code": "1", "timeout": 0}`:      "Invalid field: timeout",
		`{"generated_code": "1", "timeout": "soon"}`: "Invalid field: timeout",
		`{"generated_code":`:                         "Invalid JSON data",
		`null`:                                       "Invalid JSON data",
		`[1]`:                                        "Invalid JSON data",
		`{"generated_code":"1","timeout":1,"language":"cobol"}`:   "Only python execution is supported",
		`{"generated_code":"1","timeout":1,"max_output_chars":0}`: "Invalid field: max_output_chars",
	} {
		if a := postCompat(t, url, body); a.code != 400 || a.Status != "error" || a.Stdout != "" ||
			!strings.HasPrefix(a.Stderr, want) {
			t.Errorf("%s: got %+v, want HTTP 400 and %q", body, a, want)
		}
	}
	ok := compatRequest("print(1)", 5)
	if a := postCompat(t, url, ok, "Content-Type", "text/plain"); a.code != 400 || a.Stderr != "Request must be JSON" {
		t.Errorf("a request that is not JSON: got %+v, want HTTP 400", a)
	}
	for _, headers := range [][]string{{"Origin", "https://example.com"}, {"Host", "example.com"}, {"Sec-Fetch-Site", "cross-site"}, {"Origin", "null"}} {
		if a := postCompat(t, url, ok, headers...); a.code != 403 {
			t.Errorf("a request with %v: got %+v, want HTTP 403", headers, a)
		}
	}
	for _, path := range []string{"/", "/execute", "/any/path"} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 || string(text) != `{"status":"ok"}`+"\n" {
			t.Errorf("GET %s: got HTTP %d %s, want the status ok", path, resp.StatusCode, text)
		}
	}
	// Long output is truncated with a note; a request may raise the limit.
	long := "print('é' * 200_000)"
	truncated := strings.Repeat("é", 1000) + "\n[... 199001 more characters were cut ...]\n"
	if a := postCompat(t, url, compatRequest(long, 20)); a.Status != "completed" || a.Stdout != truncated {
		t.Errorf("a long output: got %d bytes that end in %q", len(a.Stdout), a.Stdout[max(0, len(a.Stdout)-60):])
	}
	whole := strings.Replace(compatRequest(long, 20), `{`, `{"max_output_chars":3e5,`, 1)
	if a := postCompat(t, url, whole); a.Stdout != strings.Repeat("é", 200_000)+"\n" {
		t.Errorf("with max_output_chars: got %d bytes, want all", len(a.Stdout))
	}
}

// TestCompatRequestsShareAFolder covers that requests share their files and no other state.
func TestCompatRequestsShareAFolder(t *testing.T) {
	t.Parallel()
	url := startCompat(t)
	postCompat(
		t,
		url,
		compatRequest("import math\nmath.kept = leaked = 1\nopen('data.csv', 'w').write('a,b\\n1,2\\n')", 10),
	)
	if a := postCompat(t, url, compatRequest("import math\nprint(open('data.csv').read(), hasattr(math, 'kept'), 'leaked' in globals())", 10)); a.Stdout != "a,b\n1,2\n False False\n" {
		t.Errorf("the next request: got %+v, want the file and no variable", a)
	}
	var all sync.WaitGroup
	const waitForAll = "import time, pathlib\nhere = pathlib.Path()\n(here / '%d.txt').write_text('x')\n" +
		"while len(list(here.glob('?.txt'))) < 4: time.sleep(0.01)\nprint(%d)"
	for n := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			a := postCompat(t, url, compatRequest(fmt.Sprintf(waitForAll, n, n), 30))
			if a.Stdout != fmt.Sprintf("%d\n", n) {
				t.Errorf("request %d of four concurrent ones: got %+v", n, a)
			}
		}()
	}
	all.Wait()
	const names = "['0.txt', '1.txt', '2.txt', '3.txt', 'artifacts', 'data.csv']\n"
	if a := postCompat(t, url, compatRequest("import os\nprint(sorted(os.listdir()))", 10)); a.Stdout != names {
		t.Errorf("got %+v, want the files %s", a, names)
	}
	// A process that ends hard leaves the files.
	if a := postCompat(t, url, compatRequest("import os\nos._exit(1)", 10)); a.Status != "error" || a.Stderr == "" {
		t.Errorf("a hard exit: got %+v, want an error", a)
	}
	if a := postCompat(t, url, compatRequest("print(open('data.csv').read())", 10)); a.Stdout != "a,b\n1,2\n\n" {
		t.Errorf("after a hard exit: got %+v, want the file", a)
	}
}

// TestCompatFolderOnTheHost covers that code and host share the files in the folder that OUTPUT_DATA_PATH names. Code
// sees no files above that folder.
func TestCompatFolderOnTheHost(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(emptyDataDir(t), "out")
	url := startCompat(t, "OUTPUT_DATA_PATH="+folder)
	if err := os.WriteFile(filepath.Join(folder, "in.txt"), []byte("from outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if a := postCompat(t, url, compatRequest("print(open('in.txt').read())\nopen('out.txt', 'a').write('inside ')", 10)); a.Stdout != "from outside\n" ||
			a.Status != "completed" {
			t.Errorf("got %+v, want the file of the host", a)
		}
	}
	if text, err := os.ReadFile(filepath.Join(folder, "out.txt")); err != nil || string(text) != "inside inside " {
		t.Errorf("on the host: got %q, %v, want the output of both requests", text, err)
	}
	if a := postCompat(t, url, compatRequest("import os\nprint(sorted(os.listdir('/session/..')), os.path.exists('"+folder+"'))", 10)); strings.Contains(
		a.Stdout,
		"admin.key",
	) ||
		!strings.HasSuffix(a.Stdout, "False\n") {
		t.Errorf("got %+v, want neither the key nor the folder's path", a)
	}
}

func TestCompatAddresses(t *testing.T) {
	for _, c := range []struct{ compat, want, problem string }{
		{"nemo=127.0.0.1:6000", "nemo=127.0.0.1:6000", ""},
		{"nemo=localhost:6000,jupyter=[::1]:8888", "jupyter=[::1]:8888,nemo=localhost:6000", ""},
		{"jupyter", "jupyter=main", ""},
		{"jupyter=main", "jupyter=main", ""},
		{"jupyter=0.0.0.0:8888", "", "keys would cross the network in clear text"},
		{"nemo=0.0.0.0:6000", "", "asks for no key"},
		{"nemo=:6000", "", "asks for no key"},
		{"nemo=example.com:6000", "", "asks for no key"},
		{"nemo", "", "must be nemo=ADDRESS"},
		{"nemo=main", "", "must be nemo=ADDRESS"},
		{"jupyter=8888", "", "must be jupyter=ADDRESS"},
		{"jupiter=127.0.0.1:8888", "", `there is no compatibility API "jupiter" in this build; it has `},
	} {
		s, err := parseSettings("--compat", c.compat)
		if err == nil {
			err = s.checkAddresses()
		}
		switch {
		case c.problem == "" && (err != nil || s.compat.apis.String() != c.want):
			t.Errorf("--compat %s: got %s, %v, want %s", c.compat, &s.compat.apis, err, c.want)
		case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
			t.Errorf("--compat %s: got the error %v, want one with %q", c.compat, err, c.problem)
		}
	}
	s, err := parseSettings("--compat", "jupyter=0.0.0.0:8888", "--allow-remote-plaintext")
	if err = errors.Join(err, s.checkAddresses()); err != nil {
		t.Errorf("beyond loopback with --allow-remote-plaintext: got %v, want it accepted", err)
	}
}

// TestVariablesOfOtherServersSetCompat covers that the variables of other servers work, and that the log says so.
func TestVariablesOfOtherServersSetCompat(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		variables, args []string
		listen, folder  string
		lines           int
	}{
		{nil, nil, "", "", 0},
		{nil, []string{"--compat", "nemo=[::1]:7", "--nemo-folder", folder}, "[::1]:7", folder, 0},
		{[]string{"SANDBOX_PORT=6001", "OUTPUT_DATA_PATH=" + folder}, nil, "127.0.0.1:6001", folder, 2},
		{[]string{"SANDBOX_HOST=localhost"}, nil, "localhost:6000", "", 1},
		{[]string{"SANDBOX_HOST=::1", "SANDBOX_PORT=7"}, nil, "[::1]:7", "", 1},
		{[]string{"SANDBOX_PORT=6001"}, []string{"--compat", "nemo=127.0.0.1:6003"}, "127.0.0.1:6003", "", 0},
		{[]string{"OUTPUT_DATA_PATH=" + folder}, nil, "", "", 0},
	} {
		for _, name := range []string{"SANDBOX_HOST", "SANDBOX_PORT", "OUTPUT_DATA_PATH"} {
			t.Setenv(name, "")
		}
		for _, variable := range c.variables {
			name, value, _ := strings.Cut(variable, "=")
			t.Setenv(name, value)
		}
		s, err := parseSettings(c.args...)
		got := s.compat
		if err != nil || got.apis[nemoAPI] != c.listen || got.folder != c.folder || len(got.notes) != c.lines {
			t.Errorf("%v %v: got %v, folder %q, lines %q, %v", c.variables, c.args, &got.apis, got.folder,
				got.notes, err)
			t.Errorf("want nemo=%s, folder %q, %d lines", c.listen, c.folder, c.lines)
		}
	}
	t.Setenv("SANDBOX_HOST", "0.0.0.0")
	if _, err := parseSettings(); err != nil {
		t.Errorf("got %v, want the error only where the service starts", err)
	}
}

// TestCompatAPIsHaveAListenerOrAFolder starts Jupyter's API both ways.
func TestCompatAPIsHaveAListenerOrAFolder(t *testing.T) {
	t.Parallel()
	own := reserveAddress(t)
	start(t, binary(t), dataDir(t), "--compat", "jupyter="+own)
	_, main := start(t, binary(t), dataDir(t), "--compat", "jupyter")
	for _, url := range []string{"http://" + own + "/api", main.address + "/jupyter/api"} {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 || !strings.Contains(string(text), `"version"`) {
			t.Errorf("GET %s: got HTTP %d %s, want the version", url, resp.StatusCode, text)
		}
	}
	main.must(t, "GET", "/healthz", nil) // the main API is served in addition to it
}
