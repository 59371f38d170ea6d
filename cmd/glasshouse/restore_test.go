package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// TestSessionsComeBack kills the service and starts it again. A session has its variables, files and random state, and
// the same rows.
func TestSessionsComeBack(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	cmd, c := start(t, path, dir)
	sandbox := c.newSandbox(t, nil)
	execute := func(code string) map[string]any {
		t.Helper()
		return c.must(t, "POST", "/sandbox/"+sandbox+"/execute", map[string]any{"code": code})
	}
	wantStdout := func(e map[string]any, want string) {
		t.Helper()
		if e["stdout"] != want {
			t.Errorf("got %v, want the output %q", e, want)
		}
	}
	execute("import random, time, uuid\nrows = db_query('SELECT clock_timestamp()::text AS at')\nmade = uuid.uuid4()")
	execute("class Total:\n    n = 1\ntotal = Total()\nopen('notes.txt', 'w').write(str(time.time()))")
	execute("total.n += 1\n1 / 0")
	const state = "print(rows, made, total.n, open('notes.txt').read(), sorted({'a', 'b', 'c'}, key=hash))"
	before := fmt.Sprint(execute(state)["stdout"])
	next := "random.seed(3)\nprint(random.random(), random.random())"
	wantNext := fmt.Sprint(execute(next)["stdout"])
	execute("random.seed(3)\nrandom.random()")

	killService(t, cmd)
	cmd, c = start(t, path, dir)
	e := execute(state)
	wantStdout(e, before)
	restored, _ := e["restored"].(map[string]any)
	if restored["executions"] != 6.0 || restored["exact"] != true {
		t.Errorf("got %v, want 6 executions restored exactly", e["restored"])
	}
	e = execute("print(random.random())")
	if e["restored"] != nil || !strings.HasSuffix(wantNext, " "+fmt.Sprint(e["stdout"])) {
		t.Errorf("got %v, want the second number of %q, and nothing restored again", e, wantNext)
	}

	// A run that the end of the service cuts is left out, and told.
	started := make(chan error, 1)
	go func() {
		started <- c.call(context.Background(), "POST", "/sandbox/"+sandbox+"/execute",
			map[string]any{"code": "total.n = 100\nprint('begun')\ntime.sleep(1000)"}, nil)
	}()
	eventually(t, func() error {
		list, _ := c.must(t, "GET", "/executions?status=running", nil)["executions"].([]any)
		if len(list) == 0 {
			return fmt.Errorf("no execution runs")
		}
		return nil
	})
	killService(t, cmd)
	<-started
	_, c = start(t, path, dir)
	e = execute("print(total.n)")
	wantStdout(e, "2\n")
	restored, _ = e["restored"].(map[string]any)
	if restored["left_out"] != 1.0 || restored["exact"] != false {
		t.Errorf("got %v, want one execution left out", e["restored"])
	}

	c.must(t, "DELETE", "/sandbox/"+sandbox, nil)
	err := c.call(t.Context(), "POST", "/sandbox/"+sandbox+"/execute", map[string]any{"code": "1"}, nil)
	if err == nil || !strings.Contains(err.Error(), "it was deleted") {
		t.Errorf("got %v, want an error that the sandbox was deleted", err)
	}
}
