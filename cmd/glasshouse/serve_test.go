package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestHistorySurvivesARestart stops and kills the service. History keeps what was answered, and records the
// run that was interrupted as cancelled.
func TestHistorySurvivesARestart(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), emptyDataDir(t)
	cmd, c := start(t, path, dir)
	if info, err := os.Stat(filepath.Join(dir, "admin.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got admin.key %v, %v, want mode 0600", info, err)
	}
	id := c.newSandbox(t, nil)
	for _, code := range []string{"x = 41", "x + 1", "1 / 0", "await db_query('UPDATE documents SET processed = true')"} {
		c.must(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code})
	}
	statuses := func(id string) string {
		var history struct{ History []struct{ Status string } }
		text, _ := json.Marshal(c.must(t, "GET", "/sandbox/"+id+"/history", nil))
		_ = json.Unmarshal(text, &history)
		var out []string
		for _, line := range history.History {
			out = append(out, line.Status)
		}
		return strings.Join(out, " ")
	}
	want := "failed failed completed completed"
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		interrupted := c.newSandbox(t, nil)
		go func(c *client) {
			body := map[string]any{"code": "import time\ntime.sleep(25)", "tags": map[string]string{"run": interrupted}}
			_ = c.call(context.Background(), "POST", "/sandbox/"+interrupted+"/execute", body, &map[string]any{})
		}(c)
		eventually(t, func() error {
			if got := statuses(interrupted); got != "running" {
				return fmt.Errorf("the slow run: got history %q, want running", got)
			}
			return nil
		})
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); signal == syscall.SIGTERM && err != nil {
			t.Errorf("after SIGTERM: got %v, want exit code 0", err)
		}
		cmd, c = start(t, path, dir)
		if got := statuses(id); got != want {
			t.Errorf("after %s: got history %q, want %q", signal, got, want)
		}
		if got := statuses(interrupted); got != "cancelled" {
			t.Errorf("after %s: got the interrupted run %q, want cancelled", signal, got)
		}
		for _, form := range []string{"", "&include=record"} {
			tagged := fmt.Sprint(c.must(t, "GET", "/executions?tag=run:"+interrupted+form, nil)["executions"])
			if strings.Count(tagged, "execution_id:") != 1 || !strings.Contains(tagged, "tags:map[run:"+interrupted+"]") {
				t.Errorf("after %s: got the tagged executions %s, want the interrupted run", signal, tagged)
			}
		}
		e := c.must(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "1"})
		if want = "completed " + want; e["restored"] == nil {
			t.Errorf("after %s: a run in the old sandbox: got %v, want it restored", signal, e)
		}
	}
	stop(t, cmd)
	if left := cgroupsOf(cmd.Process.Pid); len(left) > 0 {
		t.Errorf("after the end: got cgroups %v, want none", left)
	}
}

func TestAddressesBeyondLoopbackNeedTLS(t *testing.T) {
	for listen, ok := range map[string]bool{
		"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "0.0.0.0:1": false, ":1": false, "192.0.2.1:1": false,
	} {
		if err := (&settings{server: serverSettings{listen: listen}}).checkAddresses(); (err == nil) != ok {
			t.Errorf("--listen %s: got %v, want it accepted: %v", listen, err, ok)
		}
	}
}

func TestAllowedHosts(t *testing.T) {
	for given, want := range map[string]string{
		"*": "true [*]", "none": "false []", "Example.org, 10.0.0.0/8:5000": "true [example.org 10.0.0.0/8:5000]",
	} {
		s, err := parseSettings("--allowed-hosts", given)
		if err != nil {
			t.Fatal(err)
		}
		enabled, hosts, err := s.isolation.network()
		if got := fmt.Sprint(enabled, " ", hosts); err != nil || got != want {
			t.Errorf("--allowed-hosts %q: got %s, %v, want %s", given, got, err, want)
		}
	}
	s, err := parseSettings("--allowed-hosts", "http://example.org")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.isolation.network()
	if err == nil || !strings.Contains(err.Error(), "--allowed-hosts") || !strings.Contains(err.Error(), "not a URL") {
		t.Errorf("--allowed-hosts with a URL: got %v, want an error that says so", err)
	}
}

// TestSandboxNetworkWorks covers that the service gives up its own capabilities for the network, and can
// still give a sandbox one.
func TestSandboxNetworkWorks(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("here")) }),
	)
	defer server.Close()
	host := server.Listener.Addr().String()
	_, c := start(t, binary(t), dataDir(t), withPackages(), "--allowed-hosts", host)
	e := c.must(t, "POST", "/sandbox/agent/quick-execute", map[string]any{
		"code": "import requests\nrequests.get('" + server.URL + "').text", "config": map[string]any{"enable_network_access": true, "allowed_hosts": []string{host}},
	})
	if e["status"] != "completed" || e["result"] != "here" {
		t.Errorf("got %v, want the answer of the server", e)
	}
}

// TestServiceLimitsItself covers what the service changes about its own process: coarse timers, which
// sandboxes do not inherit, and the privileges that it gives up.
func TestServiceLimitsItself(t *testing.T) {
	t.Parallel()
	cmd, _ := start(t, binary(t), dataDir(t))
	pid := cmd.Process.Pid
	t.Run("timers", func(t *testing.T) {
		timerSlack := func(pid int) (string, error) {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", pid))
			return strings.TrimSpace(string(text)), err
		}
		got, err := timerSlack(pid)
		if errors.Is(err, os.ErrPermission) {
			t.Log("report: not tested, because it needs CAP_SYS_NICE: the timer slack of the service")
			return
		}
		if got != "500000" {
			t.Errorf("got timer slack %s ns of the service, %v, want 500000", got, err)
		}
		eventually(t, func() error {
			zygotes := zygotesOf(pid, "/zygote.py")
			if len(zygotes) == 0 {
				return errors.New("the service has no zygote")
			}
			if got, err := timerSlack(zygotes[0]); got != "50000" {
				return fmt.Errorf("got timer slack %s ns of a zygote, %w, want 50000", got, err)
			}
			return nil
		})
	})
	t.Run("privileges", func(t *testing.T) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		status := map[string]string{}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			status[name] = strings.TrimSpace(value)
		}
		if status["NoNewPrivs"] != "1" {
			t.Errorf("got NoNewPrivs %s, want 1", status["NoNewPrivs"])
		}
		effective, err := strconv.ParseUint(status["CapEff"], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		for name, bit := range map[string]int{
			"SYS_MODULE": 16, "SYS_RAWIO": 17, "SYS_BOOT": 22, "SYS_TIME": 25, "MKNOD": 27, "BPF": 39, "NET_RAW": 13, "NET_ADMIN": 12,
		} {
			if effective&(1<<bit) != 0 {
				t.Errorf("the service has CAP_%s, want it given up", name)
			}
		}
		limits, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
		if !strings.Contains(string(limits), "Max core file size        0                    0") {
			t.Errorf("got limits with core files, want none:\n%s", limits)
		}
	})
}

func TestServiceSaysThatItsPythonHasNoPandas(t *testing.T) {
	t.Parallel()
	bare, err := shared.python()
	if err != nil {
		t.Fatal(err)
	}
	for python, want := range map[string]bool{bare: true, os.Getenv("GLASSHOUSE_PYTHON"): false} {
		cmd := exec.Command(binary(t), "serve", "--listen", "127.0.0.1:0", "--data-dir", dataDir(t),
			"--python", python)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer kill(cmd)
		var printed []string
		for lines := bufio.NewScanner(out); lines.Scan(); {
			printed = append(printed, lines.Text())
			if strings.HasPrefix(lines.Text(), "The documentation of the API") {
				break
			}
		}
		text := strings.Join(printed, "\n")
		if strings.Contains(text, python+" has no pandas") != want || !strings.Contains(text, "Listening on") {
			t.Errorf("with %s: got %q, want a line about pandas: %v", python, text, want)
		}
	}
}

// openTerminal returns both ends of a new terminal: what a program prints on shown can be read from screen.
func openTerminal() (screen, shown *os.File, err error) {
	screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(screen.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)); err != nil {
		return nil, nil, errors.Join(err, screen.Close())
	}
	shown, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	return screen, shown, err
}

// TestSecretsArePrintedOnTerminalsOnly starts the service with a pipe, a file, the journal and a terminal as its
// output, and signs in with a link. What is kept has neither the admin key nor a link nor the key of the sign-in.
func TestSecretsArePrintedOnTerminalsOnly(t *testing.T) {
	t.Parallel()
	for name, hasSecrets := range map[string]bool{"pipe": false, "file": false, "journal": false, "terminal": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := dataDir(t)
			python, err := shared.python()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(binary(t), "serve", "--listen", "127.0.0.1:0", "--data-dir", dir,
				"--access-log", "--python", python)
			var out, in *os.File
			switch name {
			case "pipe":
				out, in, err = os.Pipe()
			case "file":
				path := filepath.Join(t.TempDir(), "log")
				if in, err = os.Create(path); err == nil {
					out, err = os.Open(path)
				}
			case "journal": // of a unit whose output is a terminal
				cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(t.TempDir(), "missing"))
				out, in, err = openTerminal()
			case "terminal":
				out, in, err = openTerminal()
			}
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd.Stdout, cmd.Stderr = in, in
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer kill(cmd)
			_ = in.Close() // the service has its own
			var printed strings.Builder
			last, lines := "glasshouse login-link --data-dir '"+dir+"'`", bufio.NewReader(out)
			eventually(t, func() error { // a file ends before the service has written all
				for err = nil; err == nil && !strings.Contains(printed.String(), last); {
					var line string
					line, err = lines.ReadString('\n')
					printed.WriteString(line)
				}
				return err
			})
			link := regexp.MustCompile(`http\S+/login\?token=\w+`).FindString(printed.String())
			if !hasSecrets {
				link, _ = loginLink(t, "--data-dir", dir)
			}
			secret := openLink(t, link)
			wantSession(t, dir, link, secret, 8*time.Hour)
			stop(t, cmd)
			_, _ = io.Copy(&printed, lines) // a terminal without a program is an error
			text, file := printed.String(), filepath.Join(dir, "admin.key")
			key, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, token, _ := strings.Cut(link, "token=")
			if !strings.Contains(text, "request_id") || strings.Contains(text, secret) {
				t.Errorf("got %s, want a log of the sign-in without its key", text)
			}
			if strings.Contains(text, token) != hasSecrets || strings.Contains(text, "token=") != hasSecrets ||
				strings.Contains(text, strings.TrimSpace(string(key))) != hasSecrets || !strings.Contains(text, file) {
				t.Errorf("got %s, want where the admin key is, with secrets: %t", text, hasSecrets)
			}
			isJournal := name == "journal"
			if strings.Contains(text, "Bearer $(cat '"+file+"')") == isJournal ||
				strings.Contains(text, "Try next") == isJournal ||
				strings.Count(text, strings.TrimSpace(string(key))) > 1 {
				t.Errorf("got %s, want the commands to try unless it is the journal, and the key once at most", text)
			}
		})
	}
}

// Commands of processes are short enough for ps, and code does not inherit the variables of its zygote.
func TestProcessesOfTheServiceAreReadable(t *testing.T) {
	t.Parallel()
	cmd, admin := start(t, binary(t), dataDir(t))
	result := admin.must(t, "POST", "/sandbox/agent/quick-execute", map[string]any{
		"code":   "import os; [n for n in os.environ if 'GLASSHOUSE' in n]",
		"config": map[string]any{"profile": "unrestricted"},
	})["result"]
	if list, ok := result.([]any); !ok || len(list) > 0 {
		t.Errorf("got %v, want no variables of the service", result)
	}
	zygotes := 0
	for _, p := range descendants(cmd.Process.Pid) {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		if bytes.Contains(command, []byte("zygote.py")) {
			zygotes++
			if len(command) > 1000 {
				t.Errorf("got a command of %d bytes, %.200q, want at most 1000", len(command), command)
			}
		}
	}
	if zygotes == 0 {
		t.Error("got no process of a zygote")
	}
}
