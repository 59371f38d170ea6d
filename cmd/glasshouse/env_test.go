package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/sandbox/environment/environmenttest"
)

// operator runs `glasshouse env` on a data folder.
type operator struct{ path, dir string }

func (o operator) try(args ...string) (out string, err error) {
	cmd := exec.Command(o.path, append([]string{"env", args[0], "--data-dir", o.dir}, args[1:]...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Run()
	return said.String(), err
}

func (o operator) env(t *testing.T, args ...string) string {
	t.Helper()
	out, err := o.try(args...)
	if err != nil {
		t.Fatalf("env %q: %v: %s", args, err, out)
	}
	return out
}

// inEnvironment is what a test looks at of an execution.
type inEnvironment struct {
	Status, ID  string
	Result      any
	Environment sandbox.EnvironmentVersion
	Exception   *sandbox.Exception
}

func (r *client) executeIn(t *testing.T, id, code, environment string) (e inEnvironment) {
	t.Helper()
	path, body := "/sandbox/"+id+"/execute", map[string]any{"code": code}
	if id == "" {
		path, body["config"] = "/sandbox/agent/quick-execute", map[string]any{"environment": environment}
	}
	raw := r.must(t, "POST", path, body)
	text, _ := json.Marshal(raw)
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	e.ID = fmt.Sprint(raw["execution_id"])
	return e
}

func (r *client) open(t *testing.T, environment string) string {
	t.Helper()
	return fmt.Sprint(r.must(t, "POST", "/sandbox/create", map[string]any{"environment": environment})["sandbox_id"])
}

// zygotesOf counts the warm interpreters of a service.
func zygotesOf(pid int) int { return len(childrenOf(pid, "/glasshouse/zygote.py")) }

// in waits until something is true.
func in(t *testing.T, what string, is func() bool) {
	t.Helper()
	eventually(t, func() error {
		if is() {
			return nil
		}
		return errors.New("not within 30 s: " + what)
	})
}

const versionOf = "import tinypack\ntinypack.version"

// The operator changes packages while the service works: whatever runs goes on, a session
// keeps what it began with, also when its process is lost, and a new one has what is new.
func TestPackagesChangeUnderWay(t *testing.T) {
	wheels := environmenttest.Pip(t)
	for _, v := range []string{"1.0", "2.0"} {
		environmenttest.Wheel(t, wheels, "tinypack", v, map[string]string{"tinypack/__init__.py": "version = '" + v + "'\n"}, "tinypack-core")
	}
	environmenttest.Wheel(t, wheels, "tinypack-core", "1.5", map[string]string{"tinypack_core.py": ""})
	o := operator{binary(t), dataDir(t)}
	clients := facadeOf(t)
	cmd, r := start(t, o.path, o.dir)
	if e := r.executeIn(t, "", versionOf, "default"); e.Status != "failed" || e.Exception.Type != "ModuleNotFoundError" || !strings.Contains(e.Exception.Hint, "`glasshouse env add tinypack`") {
		t.Fatalf("before it is installed: %+v", e)
	}
	before := r.executeIn(t, "", "1", "default").Environment
	o.env(t, "add", "tinypack==1.0")
	old := r.open(t, "default")
	first := r.executeIn(t, old, "kept = 41\n"+versionOf, "")
	if first.Result != "1.0" || first.Environment.Name != "default" || first.Environment.Digest == before.Digest {
		t.Fatalf("after it is installed: %+v", first)
	}
	zygotes := zygotesOf(cmd.Process.Pid)
	if a := post(t, clients, request("import tinypack\nopen('kept', 'w').write('k')\nprint(tinypack.version)", 20)); a.Stdout != "1.0\n" {
		t.Errorf("a client of the facade: %+v", a)
	}

	// Runs come and go while the packages change.
	var wrong atomic.Value
	var runs, news atomic.Int64
	stop, workers := make(chan struct{}), sync.WaitGroup{}
	for range 3 {
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var e struct {
					Status string
					Result any
				}
				if err := r.call(t.Context(), "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "import time\ntime.sleep(0.05)\n" + versionOf}, &e); err != nil || e.Status != "completed" {
					wrong.Store(fmt.Sprintf("%+v, %v", e, err))
				}
				runs.Add(1)
				if e.Result == "2.0" {
					news.Add(1)
				}
			}
		})
	}
	slow := make(chan inEnvironment, 1)
	busy := fmt.Sprint(r.must(t, "POST", "/sandbox/create", map[string]any{"max_execution_time": 200})["sandbox_id"])
	go func() {
		slow <- r.executeIn(t, busy, "import pathlib, time\nwhile not pathlib.Path('/data/go').exists():\n    time.sleep(0.05)\n"+versionOf, "")
	}()
	o.env(t, "add", "tinypack==2.0")
	in(t, "a run with the new package", func() bool { return news.Load() > 3 })
	close(stop)
	workers.Wait()
	if w := wrong.Load(); w != nil {
		t.Errorf("a run while the packages changed: %v", w)
	}
	r.must(t, "PUT", "/sandbox/"+busy+"/files/go", "on")
	if e := <-slow; e.Status != "completed" || e.Result != "1.0" || e.Environment != first.Environment {
		t.Errorf("what ran meanwhile: %+v", e)
	}
	t.Logf("%d runs, %d of them with the new package", runs.Load(), news.Load())

	if a := post(t, clients, request("import tinypack\nprint(open('kept').read(), tinypack.version)", 20)); a.Stdout != "k 2.0\n" {
		t.Errorf("a client of the facade, whose folder stays: %+v", a)
	}
	fresh := r.open(t, "default")
	if e := r.executeIn(t, fresh, versionOf, ""); e.Result != "2.0" || e.Environment == first.Environment {
		t.Errorf("a new session: %+v", e)
	}
	if e := r.executeIn(t, old, "import tinypack\nkept, tinypack.version", ""); fmt.Sprint(e.Result) != "[41 1.0]" || e.Environment != first.Environment {
		t.Errorf("the old session: %+v", e)
	}
	if e := r.executeIn(t, old, "x = []\nwhile True: x.append(' ' * 10_000_000)", ""); e.Status != "killed" {
		t.Fatalf("%+v", e)
	}
	if e := r.executeIn(t, old, versionOf, ""); e.Result != "1.0" || e.Environment != first.Environment {
		t.Errorf("the old session's next process: %+v", e)
	}
	var status struct {
		Data struct {
			Metadata struct{ Environment sandbox.EnvironmentVersion } `json:"sandbox_metadata"`
		}
	}
	text, _ := json.Marshal(r.must(t, "GET", "/sandbox/"+old+"/status", nil))
	if err := json.Unmarshal(text, &status); err != nil || status.Data.Metadata.Environment != first.Environment {
		t.Errorf("the status of the old session: %s", text)
	}
	record := r.must(t, "GET", "/executions/"+first.ID, nil)
	if got, _ := json.Marshal(record["environment"]); string(got) != fmt.Sprintf(`{"digest":%q,"name":"default"}`, first.Environment.Digest) {
		t.Errorf("in history: %s", got)
	}

	// With the last sandbox that uses it the old one goes, processes and folder.
	folder := filepath.Join(o.dir, "environments", "default", first.Environment.Digest)
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("a folder that is in use: %v", err)
	}
	for _, id := range []string{old, busy} {
		r.must(t, "DELETE", "/sandbox/"+id, nil)
	}
	in(t, "the old folder goes", func() bool { _, err := os.Stat(folder); return os.IsNotExist(err) })
	in(t, "the old zygotes go", func() bool { return zygotesOf(cmd.Process.Pid) == zygotes })
}

// Several environments, each its own: on demand, so that many cost little.
func TestNamedEnvironments(t *testing.T) {
	wheels := environmenttest.Pip(t)
	environmenttest.Wheel(t, wheels, "tinypack", "1.0", map[string]string{"tinypack/__init__.py": "version = '1.0'\n"})
	o := operator{binary(t), dataDir(t)}
	o.env(t, "create", "tiny")
	o.env(t, "add", "--env", "tiny", "tinypack")
	cmd, r := start(t, o.path, o.dir)
	zygotes := zygotesOf(cmd.Process.Pid)
	for n := range 9 {
		o.env(t, "create", "--from", "tiny", fmt.Sprintf("more-%d", n))
	}
	var list struct{ Environments []sandbox.Environment }
	text, _ := json.Marshal(r.must(t, "GET", "/environments", nil))
	if err := json.Unmarshal(text, &list); err != nil || len(list.Environments) != 11 || list.Environments[0].Name != "default" || !slices.Equal(list.Environments[10].Modules, []string{"tinypack"}) {
		t.Errorf("%v: %s", err, text)
	}
	if now := zygotesOf(cmd.Process.Pid); now != zygotes {
		t.Errorf("ten environments that nobody uses have %d zygotes", now-zygotes)
	}
	if e := r.executeIn(t, "", versionOf, "tiny"); e.Result != "1.0" || e.Environment.Name != "tiny" {
		t.Errorf("%+v", e)
	}
	id := r.open(t, "tiny")
	if e := r.executeIn(t, id, "try:\n    import pandas\nexcept ImportError as error:\n    found = error.name\nfound", ""); e.Result != "pandas" {
		t.Errorf("%+v", e)
	}
	if now := zygotesOf(cmd.Process.Pid); now != zygotes+1 {
		t.Errorf("one environment in use has %d zygotes", now-zygotes)
	}
	var packages struct{ Packages []sandbox.Package }
	text, _ = json.Marshal(r.must(t, "GET", "/environments/tiny/packages", nil))
	want := sandbox.Package{Name: "tinypack", Version: "1.0", Summary: "tinypack, for a test", Modules: []string{"tinypack"}}
	if err := json.Unmarshal(text, &packages); err != nil || len(packages.Packages) != 1 || fmt.Sprint(packages.Packages[0]) != fmt.Sprint(want) {
		t.Errorf("%v: %s", err, text)
	}
	if err := r.call(t.Context(), "POST", "/sandbox/create", map[string]any{"environment": "tinny"}, &struct{}{}); err == nil || !strings.Contains(err.Error(), "422") || !strings.Contains(err.Error(), "default, more-0") {
		t.Errorf("an unknown environment: %v", err)
	}
	// What the operator added may be asked for by name, and what is not there may not.
	for module, status := range map[string]string{"tinypack": "completed", "psycopg2": "403"} {
		var e struct{ Status string }
		err := r.call(t.Context(), "POST", "/sandbox/agent/quick-execute", map[string]any{"code": versionOf, "config": map[string]any{"environment": "tiny", "allowed_modules": []string{module}}}, &e)
		if got := fmt.Sprint(e.Status, err); !strings.Contains(got, status) {
			t.Errorf("allowed_modules %s: %s", module, got)
		}
	}
	agent := &client{r.address, fmt.Sprint(r.must(t, "POST", "/keys", map[string]any{"name": "agent"})["key"])}
	agent.must(t, "GET", "/environments", nil)
	if err := agent.call(t.Context(), "POST", "/environments/refresh", nil, &struct{}{}); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("an agent changes environments: %v", err)
	}
	// One that is deleted is there for those who have it, and for nobody else.
	o.env(t, "delete", "tiny")
	if e := r.executeIn(t, id, versionOf, ""); e.Result != "1.0" {
		t.Errorf("a session of an environment that was deleted: %+v", e)
	}
	if err := r.call(context.Background(), "POST", "/sandbox/create", map[string]any{"environment": "tiny"}, &struct{}{}); err == nil || !strings.Contains(err.Error(), "422") {
		t.Errorf("an environment that was deleted: %v", err)
	}
	r.must(t, "DELETE", "/sandbox/"+id, nil)
	in(t, "its folder goes", func() bool {
		_, err := os.Stat(filepath.Join(o.dir, "environments", "tiny"))
		return os.IsNotExist(err)
	})
}

// A change that is killed, or has no room, leaves what was there, and nothing else.
func TestAChangeThatIsCutOff(t *testing.T) {
	wheels := environmenttest.Pip(t)
	environmenttest.Wheel(t, wheels, "tinypack", "1.0", map[string]string{"tinypack.py": ""})
	environmenttest.Wheel(t, wheels, "large", "1.0", map[string]string{"large.py": strings.Repeat("#", 8<<20)})
	o := operator{binary(t), dataDir(t)}
	o.env(t, "create", "lab")
	o.env(t, "add", "--env", "lab", "tinypack")
	top := filepath.Join(o.dir, "environments", "lab")
	was, err := os.ReadFile(filepath.Join(top, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	same := func() {
		t.Helper()
		if now, err := os.ReadFile(filepath.Join(top, "lock")); err != nil || !bytes.Equal(now, was) {
			t.Errorf("the lock is another one: %s, %v", now, err)
		}
	}
	cmd := exec.Command(o.path, "env", "add", "--data-dir", o.dir, "--env", "lab", "large")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(top, ".new-*")
	in(t, "pip at work", func() bool {
		return count(fresh) == 1 && len(childrenOf(cmd.Process.Pid, filepath.Join(top, ".new-"))) == 1
	})
	pip := childrenOf(cmd.Process.Pid, "")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	same()
	in(t, "pip ends with what started it", func() bool {
		return !slices.ContainsFunc(pip, func(pid int) bool { line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); return len(line) > 0 })
	})
	limited := exec.Command("sh", "-c", `ulimit -f 2000; exec "$0" env add --data-dir "$1" --env lab large`, o.path, o.dir)
	if out, err := limited.CombinedOutput(); err == nil || !strings.Contains(string(out), "file size limit exceeded") || bytes.Count(out, []byte("\n")) > 10 {
		t.Errorf("no room: %v: %s", err, out)
	}
	same()
	if left := count(filepath.Join(top, ".*")); left > 0 {
		t.Errorf("%d are left", left)
	}
	o.env(t, "add", "--env", "lab", "large")
}

// What odd names come to, on the command line and in the API.
func TestOddNames(t *testing.T) {
	o := operator{binary(t), dataDir(t)}
	_, r := start(t, o.path, o.dir)
	for _, name := range []string{"", "..", "../x", "/etc", ".pip", "Ä", "a b", strings.Repeat("a", 5000), "default\n"} {
		for _, args := range [][]string{{"create", "--", name}, {"delete", "--", name}, {"show", "--", name}, {"add", "--env", name, "x"}, {"create", "--from", name + "x", "lab"}} {
			if out, err := o.try(args...); err == nil || len(out) > 500 || !strings.Contains(out, "environment") {
				t.Errorf("%.80q: %v: %s", args, err, out)
			}
		}
		err := r.call(t.Context(), "POST", "/sandbox/create", map[string]any{"environment": name}, &struct{}{})
		if err == nil || !strings.Contains(err.Error(), "422") {
			t.Errorf("the environment %.80q of a sandbox: %v", name, err)
		}
	}
	for _, no := range []string{"../default", "%2e%2e", "nowhere"} {
		if err := r.call(t.Context(), "GET", "/environments/"+no+"/packages", nil, &struct{}{}); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("packages of %s: %v", no, err)
		}
	}
	if err := r.call(t.Context(), "POST", "/sandbox/create", map[string]any{"environment": 3}, &struct{}{}); err == nil || !strings.Contains(err.Error(), "422") {
		t.Errorf("a number: %v", err)
	}
}
