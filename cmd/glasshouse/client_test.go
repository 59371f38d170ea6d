package main

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// runCommand runs a command of the program with variables of the environment, and returns what it printed.
func runCommand(t *testing.T, environ []string, input string, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, problems bytes.Buffer
	cmd := exec.Command(binary(t), arguments...)
	cmd.Env = append(os.Environ(), environ...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &problems
	err = cmd.Run()
	return out.String(), problems.String(), err
}

// clientCommands are commands that call a service, with their input.
func clientCommands(file string) map[string][]string {
	return map[string][]string{
		"run":        {"run", file},
		"debug":      {"debug", file},
		"check code": {"check", "code", file},
		"keys list":  {"keys", "list"},
		"login-link": {"login-link"},
	}
}

// TestCommandsUseTheServiceOfTheEnvironment runs each command that calls a service with GLASSHOUSE_URL and
// GLASSHOUSE_KEY. None makes the data folder, which does not exist.
func TestCommandsUseTheServiceOfTheEnvironment(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	_, admin := start(t, binary(t), dir)
	unused := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(t.TempDir(), "x.py")
	if err := os.WriteFile(file, []byte("print('ran')"), 0o644); err != nil {
		t.Fatal(err)
	}
	environ := []string{"GLASSHOUSE_URL=" + admin.address + "/", "GLASSHOUSE_KEY=" + admin.key,
		"GLASSHOUSE_DATA_DIR=" + unused}
	for name, arguments := range clientCommands(file) {
		stdout, stderr, err := runCommand(t, environ, "c\nq\n", arguments...)
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, stderr)
		}
		switch name {
		case "run", "debug":
			if !strings.Contains(stdout, "ran\n") {
				t.Errorf("%s: got %q, want what the code prints", name, stdout)
			}
			fallthrough
		case "check code":
			if want := "glasshouse: using the service at " + admin.address + "\n"; stderr != want {
				t.Errorf("%s: got stderr %q, want %q", name, stderr, want)
			}
		}
	}
	user := admin.newUser(t, "ada")
	environ[1] = "GLASSHOUSE_KEY=" + user.key
	if _, stderr, err := runCommand(t, environ, "", "run", file); err != nil {
		t.Errorf("with an agent's key: %v: %s", err, stderr)
	}
	list := user.must(t, "GET", "/executions", nil)
	if runs, _ := list["executions"].([]any); len(runs) != 1 {
		t.Errorf("got %v, want the run of the agent's key", list)
	}
	if _, err := os.Stat(unused); err == nil {
		t.Error("a command made the data folder, although it used another service")
	}

	// The flag overrides the variable, and without both, the data folder has the service. Its own key is used there.
	environ = []string{"GLASSHOUSE_URL=http://127.0.0.1:1", "GLASSHOUSE_KEY=" + user.key}
	if _, stderr, err := runCommand(t, environ, "", "run", "--url", admin.address, file); err != nil {
		t.Errorf("with --url: %v: %s", err, stderr)
	}
	for _, names := range [][]string{
		{"GLASSHOUSE_URL=", "GLASSHOUSE_KEY="}, {"GLASSHOUSE_URL=", "GLASSHOUSE_KEY=" + user.key},
		{"GLASSHOUSE_URL=http://127.0.0.1:1", "GLASSHOUSE_KEY=gh_of_that_service"},
	} {
		environ = names
		_, stderr, err := runCommand(t, environ, "", "run", "--data-dir", dir, file)
		if err != nil || stderr != "glasshouse: using the service at "+admin.address+"\n" {
			t.Errorf("with --data-dir and %.40q: got %v and %q, want the service of the folder", names, err, stderr)
		}
	}
}

// TestCommandsSayWhyNoServiceAnswers gives each command that calls a service an environment that names none.
func TestCommandsSayWhyNoServiceAnswers(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	_, admin := start(t, binary(t), dir)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	listener.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	unused := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(t.TempDir(), "x.py")
	if err := os.WriteFile(file, []byte("print('ran')"), 0o644); err != nil {
		t.Fatal(err)
	}
	commands := clientCommands(file)
	commands["mcp"] = []string{"mcp"}
	commands["replay"] = []string{"replay", "0123456789abcdef"}
	for name, test := range map[string]struct{ url, key, want string }{
		"no key":     {admin.address, "", "no key for " + admin.address + ": set GLASSHOUSE_KEY"},
		"no address": {"", admin.key, "no service runs on " + unused},
		"no scheme": {strings.TrimPrefix(admin.address, "http://"), admin.key,
			"not the address of a service, such as"},
		"unreachable":     {closed, admin.key, "no service answers at " + closed},
		"refused key":     {admin.address, "gh_wrong", "refuses the key in GLASSHOUSE_KEY"},
		"another program": {other.URL, admin.key, "is this Glasshouse's address?"},
	} {
		environ := []string{"GLASSHOUSE_URL=" + test.url, "GLASSHOUSE_KEY=" + test.key, "GLASSHOUSE_DATA_DIR=" + unused}
		for command, arguments := range commands {
			if command == "mcp" && (name == "unreachable" || name == "refused key" || name == "another program") {
				continue // the host of the MCP server gets the error of its first request
			}
			stdout, stderr, err := runCommand(t, environ, "", arguments...)
			if err == nil || !strings.Contains(stderr, test.want) || strings.Contains(stdout, "ran") {
				t.Errorf("%s, %s: got %v, %q and %q, want the error %q", command, name, err, stdout, stderr, test.want)
			}
			if test.key != "" && strings.Contains(stderr, test.key) {
				t.Errorf("%s, %s: got %q, which has the key", command, name, stderr)
			}
		}
		launch := `{"seq":1,"type":"request","command":"launch","arguments":{"program":"` + file + `"}}`
		stdout, _, _ := runCommand(t, environ, "Content-Length: "+strconv.Itoa(len(launch))+"\r\n\r\n"+launch, "dap")
		if !strings.Contains(stdout, test.want) {
			t.Errorf("dap, %s: got %q, want the error %q", name, stdout, test.want)
		}
	}
	if _, err := os.Stat(unused); err == nil {
		t.Error("a command made the data folder, although the environment names a service")
	}
}

// TestCommandsFollowNoRedirect gives each command that calls a service an address that redirects to another server.
func TestCommandsFollowNoRedirect(t *testing.T) {
	t.Parallel()
	var followed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	defer other.Close()
	file := filepath.Join(t.TempDir(), "x.py")
	if err := os.WriteFile(file, []byte("print('ran')"), 0o644); err != nil {
		t.Fatal(err)
	}
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n"
	framed := func(command, arguments string) string {
		message := `{"seq":1,"type":"request","command":"` + command + `","arguments":` + arguments + `}`
		return "Content-Length: " + strconv.Itoa(len(message)) + "\r\n\r\n" + message
	}
	commands := clientCommands(file)
	commands["mcp"] = []string{"mcp"}
	commands["replay"] = []string{"replay", "0123456789abcdef"}
	commands["dap"] = []string{"dap"}
	inputs := map[string][]string{"mcp": {initialize}, "dap": {
		framed("launch", `{"program":"`+file+`"}`), framed("attach", `{"executionId":"1"}`),
	}}
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		redirecting := httptest.NewServer(http.RedirectHandler(other.URL+"/elsewhere", status))
		environ := []string{"GLASSHOUSE_URL=" + redirecting.URL, "GLASSHOUSE_KEY=gh_key",
			"GLASSHOUSE_DATA_DIR=" + filepath.Join(t.TempDir(), "data")}
		for command, arguments := range commands {
			for _, input := range append([]string{""}, inputs[command]...) {
				stdout, stderr, err := runCommand(t, environ, input, arguments...)
				want := redirecting.URL + " redirects to " + other.URL + "/elsewhere"
				if inputs[command] == nil && (err == nil || !strings.Contains(stderr, want)) {
					t.Errorf("%s, %d: got %v, %q and %q, want the error %q", command, status, err, stdout, stderr, want)
				}
				if n := followed.Swap(0); n > 0 {
					t.Errorf("%s, %d, input %q: got %d requests at the other server, want 0",
						command, status, input, n)
				}
			}
		}
		redirecting.Close()
	}
}

// TestRunSaysThatItStartsAService runs a file on a folder without a service.
func TestRunSaysThatItStartsAService(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	python, err := shared.python()
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := runCommand(t, []string{"GLASSHOUSE_PYTHON=" + python}, "6 * 7",
		"run", "--data-dir", dir, "-")
	if err != nil || stdout != "42\n" ||
		!strings.HasPrefix(stderr, "glasshouse: no service runs on "+dir+": starting one") {
		t.Errorf("got %v, %q and %q, want 42 and a line that a service is started", err, stdout, stderr)
	}
}
