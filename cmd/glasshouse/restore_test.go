package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox/inputlog"
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
	cmd, c = start(t, path, dir)
	e = execute("print(total.n)")
	wantStdout(e, "2\n")
	restored, _ = e["restored"].(map[string]any)
	if restored["left_out"] != 1.0 || restored["exact"] != false {
		t.Errorf("got %v, want one execution left out", e["restored"])
	}

	// A session that has ended is forked and rolled back as a live one.
	undone := execute("total.n = 'lost'\ndel rows")["execution_id"]
	killService(t, cmd)
	cmd, c = start(t, path, dir)
	forks, _ := c.must(t, "POST", "/sandbox/"+sandbox+"/fork", map[string]any{})["sandboxes"].([]any)
	if len(forks) != 1 {
		t.Fatalf("got %v, want a fork", forks)
	}
	forked := c.must(t, "POST", fmt.Sprint("/sandbox/", forks[0].(map[string]any)["sandbox_id"], "/execute"),
		map[string]any{"code": "print(total.n, 'rows' in globals())"})
	wantStdout(forked, "lost False\n")
	killService(t, cmd)
	_, c = start(t, path, dir)
	c.must(t, "POST", "/sandbox/"+sandbox+"/rollback", map[string]any{"before": undone})
	wantStdout(execute("print(total.n, 'rows' in globals())"), "2 True\n")

	c.must(t, "DELETE", "/sandbox/"+sandbox, nil)
	err := c.call(t.Context(), "POST", "/sandbox/"+sandbox+"/execute", map[string]any{"code": "1"}, nil)
	if err == nil || !strings.Contains(err.Error(), "it was deleted") {
		t.Errorf("got %v, want an error that the sandbox was deleted", err)
	}
}

// TestReplayHidesWhatIsMaskedToday reads the log of a run with masked columns and parameters, and then masks another
// column: neither a replay nor a restored session shows its rows again.
func TestReplayHidesWhatIsMaskedToday(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	const maskParameters, maskName = "--mask-parameters=secret", "--mask-columns=users.name"
	cmd, c := start(t, path, dir, maskParameters, maskName)
	box := c.newSandbox(t, nil)
	execute := func(code string) map[string]any {
		t.Helper()
		return c.must(t, "POST", "/sandbox/"+box+"/execute", map[string]any{"code": code})
	}
	e := execute("rows = db_query('SELECT name, email FROM users WHERE :secret <> country ORDER BY id LIMIT 3', " +
		"{'secret': 'hunter-2'})\nprint(rows)")
	email := strings.Split(strings.SplitAfter(fmt.Sprint(e["stdout"]), "'email': '")[1], "'")[0]
	log := inputLogOf(t, dir, fmt.Sprint(e["execution_id"]))
	for text, isThere := range map[string]bool{"hunter-2": false, email: true, "***": true} {
		if strings.Contains(log, text) != isThere {
			t.Errorf("the log has %q: %v, want %v: %q", text, !isThere, isThere, log)
		}
	}
	replay := func() map[string]any {
		t.Helper()
		return c.must(t, "POST", fmt.Sprint("/executions/", e["execution_id"], "/replay"), map[string]any{})
	}
	if got := replay(); got["stdout"] != e["stdout"] {
		t.Errorf("got %v, want the output %v", got, e["stdout"])
	}

	stop(t, cmd)
	_, c = start(t, path, dir, maskParameters, maskName+",users.email")
	again := replay()
	if shown := fmt.Sprint(again["stdout"], again["error"]); again["status"] != "failed" ||
		!strings.Contains(shown, "masked today") || strings.Contains(shown, email) {
		t.Errorf("got %v, want the rows withheld", again)
	}
	restored := execute("print('rows' in globals())")
	report, _ := restored["restored"].(map[string]any)
	if restored["stdout"] != "False\n" || report["exact"] != false {
		t.Errorf("got %v, want a session without the rows, and that it is told", restored)
	}
}

// inputLogOf returns the text and the answers of a stored input log.
func inputLogOf(t *testing.T, dir, execution string) string {
	t.Helper()
	url, err := embedded.URL(dir, embedded.RoleHistory, embedded.DatabaseHistory)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var data []byte
	eventually(t, func() error {
		return conn.QueryRow(t.Context(), "SELECT log FROM input_logs WHERE execution_id = $1", execution).Scan(&data)
	})
	log, err := inputlog.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%+v", log)
	for _, r := range log.Requests {
		text += string(r.Answer)
	}
	return text
}

// TestRequestsRestoreASessionOnce sends several requests to a session of a service that was killed.
func TestRequestsRestoreASessionOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	cmd, c := start(t, path, dir)
	box := c.newSandbox(t, nil)
	c.must(t, "POST", "/sandbox/"+box+"/execute", map[string]any{"code": "n = 1"})
	killService(t, cmd)
	_, c = start(t, path, dir)
	answers := make(chan map[string]any)
	const requests = 8
	for range requests {
		go func() {
			var e map[string]any
			body := map[string]any{"code": "n += 1; n"}
			err := c.call(context.Background(), "POST", "/sandbox/"+box+"/execute", body, &e)
			if err != nil && !strings.Contains(err.Error(), "409") { // another one has the sandbox
				t.Errorf("got %v, want a result or 409", err)
			}
			answers <- e
		}()
	}
	seen, restored := map[any]bool{}, 0
	for range requests {
		e := <-answers
		if e == nil || e["execution_id"] == nil {
			continue
		}
		if e["status"] != "completed" || seen[e["result"]] {
			t.Errorf("got %v, want each number once", e)
		}
		seen[e["result"]] = true
		if e["restored"] != nil {
			restored++
		}
	}
	if restored != 1 || !seen[2.0] {
		t.Errorf("got %d restored, and the numbers %v; want one, and from 2 on", restored, seen)
	}
}
