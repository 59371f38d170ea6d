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

// ran is what a test looks at of an execution.
type ran struct {
	Status, ID  string
	Result      any
	Environment sandbox.Edition
	Exception   *sandbox.Exception
}

func (r *remote) execute(t *testing.T, id, code, environment string) (e ran) {
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

func (r *remote) open(t *testing.T, environment string) string {
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
	cmd, r := start(t, o.path, o.dir)
	for _, e := range []ran{r.execute(t, "", versionOf, "default")} {
		if e.Status != "failed" || e.Exception.Type != "ModuleNotFoundError" {
			t.Fatalf("before it is installed: %+v", e)
		}
	}
	before := r.execute(t, "", "1", "default").Environment
	o.env(t, "add", "tinypack==1.0")
	old := r.open(t, "default")
	first := r.execute(t, old, "kept = 41\n"+versionOf, "")
	if first.Result != "1.0" || first.Environment.Name != "default" || first.Environment.Digest == before.Digest {
		t.Fatalf("after it is installed: %+v", first)
	}
	zygotes := zygotesOf(cmd.Process.Pid)

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
	slow := make(chan ran, 1)
	busy := r.open(t, "default")
	go func() { slow <- r.execute(t, busy, "import time\ntime.sleep(8)\n"+versionOf, "") }()
	o.env(t, "add", "tinypack==2.0")
	in(t, "a run with the new package", func() bool { return news.Load() > 3 })
	close(stop)
	workers.Wait()
	if w := wrong.Load(); w != nil {
		t.Errorf("a run while the packages changed: %v", w)
	}
	if e := <-slow; e.Status != "completed" || e.Result != "1.0" || e.Environment != first.Environment {
		t.Errorf("what ran meanwhile: %+v", e)
	}
	t.Logf("%d runs, %d of them with the new package", runs.Load(), news.Load())

	fresh := r.open(t, "default")
	if e := r.execute(t, fresh, versionOf, ""); e.Result != "2.0" || e.Environment == first.Environment {
		t.Errorf("a new session: %+v", e)
	}
	if e := r.execute(t, old, "import tinypack\nkept, tinypack.version", ""); fmt.Sprint(e.Result) != "[41 1.0]" || e.Environment != first.Environment {
		t.Errorf("the old session: %+v", e)
	}
	r.execute(t, old, "import ctypes, os\nos._exit(3)", "") // refused, as os is; so:
	if e := r.execute(t, old, "x = []\nwhile True: x.append(' ' * 10_000_000)", ""); e.Status != "killed" {
		t.Fatalf("%+v", e)
	}
	if e := r.execute(t, old, versionOf, ""); e.Result != "1.0" || e.Environment != first.Environment {
		t.Errorf("the old session's next process: %+v", e)
	}
	var status struct {
		Data struct {
			Metadata struct{ Environment sandbox.Edition } `json:"sandbox_metadata"`
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
	if e := r.execute(t, "", versionOf, "tiny"); e.Result != "1.0" || e.Environment.Name != "tiny" {
		t.Errorf("%+v", e)
	}
	id := r.open(t, "tiny")
	if e := r.execute(t, id, "try:\n    import pandas\nexcept ImportError as error:\n    found = error.name\nfound", ""); e.Result != "pandas" {
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
	agent := &remote{r.address, fmt.Sprint(r.must(t, "POST", "/keys", map[string]any{"name": "agent"})["key"])}
	agent.must(t, "GET", "/environments", nil)
	if err := agent.call(t.Context(), "POST", "/environments/refresh", nil, &struct{}{}); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("an agent changes environments: %v", err)
	}
	// One that is deleted is there for those who have it, and for nobody else.
	o.env(t, "delete", "tiny")
	if e := r.execute(t, id, versionOf, ""); e.Result != "1.0" {
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
