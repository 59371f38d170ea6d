package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// Forks have the state of the sandbox, and each changes alone.
func TestForksHaveTheStateOfTheSandbox(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, map[string]any{"max_rows": 500})
	c.run(t, id, now)
	c.run(t, id, "n = 1\nopen('a.txt', 'w').write(rows[0]['at'])")
	c.ok(t, "PUT", "/sandbox/"+id+"/files/b.txt", "uploaded") // by no execution
	forks, _ := c.ok(t, "POST", "/sandbox/"+id+"/fork", map[string]any{"count": 2}).get("sandboxes").([]any)
	if len(forks) != 2 {
		t.Fatalf("got %v, want two sandboxes", forks)
	}
	const state = "print(n, open('a.txt').read() == rows[0]['at'], open('/data/b.txt').read())"
	var ids []string
	for _, f := range forks {
		fork := f.(map[string]any)
		restored, _ := fork["restored"].(map[string]any)
		if restored["executions"] != 2.0 || restored["exact"] != true {
			t.Errorf("got %v, want 2 executions restored exactly", fork)
		}
		ids = append(ids, fork["sandbox_id"].(string))
	}
	c.run(t, ids[0], "n = 2")
	for n, want := range []string{"2 True uploaded\n", "1 True uploaded\n"} {
		if got := c.run(t, ids[n], state); got.get("stdout") != want {
			t.Errorf("fork %d: got %s, want %q", n, got.text, want)
		}
	}
	if got := c.run(t, id, state); got.get("stdout") != "1 True uploaded\n" {
		t.Errorf("the sandbox itself: got %s", got.text)
	}
	// A fork of a fork, and the replay of what a fork ran, go back to the first sandbox.
	last := c.run(t, ids[0], "n += 1; print(n, rows)")
	wantGrade(t, c.replay(t, last, nil), "identical")
	again, _ := c.ok(t, "POST", "/sandbox/"+ids[0]+"/fork", nil).get("sandboxes").([]any)
	if len(again) != 1 {
		t.Fatalf("got %v, want one sandbox", again)
	}
	last = c.run(t, again[0].(map[string]any)["sandbox_id"].(string), state)
	if last.get("stdout") != "3 True uploaded\n" {
		t.Errorf("the fork of a fork: got %s", last.text)
	}
	stranger := newUser(t, sandbox.RoleAgent)
	wantProblem(t, stranger.do(t, "POST", "/sandbox/"+id+"/fork", nil), http.StatusNotFound, "not-found")
}

// A sandbox that is rolled back has the state from before an execution, and goes on from there.
func TestRollback(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	c.run(t, id, now)
	c.run(t, id, "n = 1")
	wrong := c.run(t, id, "n = 'lost'\ndel rows\nopen('wrong.txt', 'w').close()")
	c.run(t, id, "m = 5")
	before := map[string]any{"before": wrong.get("execution_id")}
	e := c.ok(t, "POST", "/sandbox/"+id+"/rollback", before)
	if e.get("restored.executions") != 2.0 || e.get("status") != "completed" {
		t.Errorf("got %s, want 2 executions restored", e.text)
	}
	const state = "import pathlib\nprint(n, len(rows), 'm' in globals(), pathlib.Path('wrong.txt').exists())"
	last := c.run(t, id, state)
	if last.get("stdout") != "1 1 False False\n" {
		t.Errorf("got %s, want the state from before", last.text)
	}
	wantGrade(t, c.replay(t, last, nil), "identical")
	c.run(t, id, "n = 2")
	c.ok(t, "POST", "/sandbox/"+id+"/rollback", map[string]any{"before": last.get("execution_id")})
	if got := c.run(t, id, state); got.get("stdout") != "1 1 False False\n" {
		t.Errorf("the second time: got %s", got.text)
	}
	other := c.create(t, nil)
	wantProblem(t, c.do(t, "POST", "/sandbox/"+other+"/rollback", before), http.StatusUnprocessableEntity,
		"invalid-input", "another sandbox")
}

// Code that runs again captures no write again, whether it is a replay or restores a session.
func TestWritesAreNotCapturedAgain(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, map[string]any{"write_policy": "capture"})
	const write = "db_query(\"UPDATE user_activities SET action = 'view' WHERE id = -1\")"
	first := c.run(t, id, "print("+write+")")
	if !strings.Contains(string(first.text), `"status":"captured"`) {
		t.Fatalf("got %s, want the write captured", first.text)
	}
	user := c.finished(t, first.get("execution_id").(string)).get("user_id").(string)
	wantOne := func(what string) {
		t.Helper()
		list, _ := admin.ok(t, "GET", "/pending-writes?user_id="+user, nil).get("pending_writes").([]any)
		count := 0
		for _, each := range list {
			if each.(map[string]any)["sandbox_id"] == id {
				count++
			} else {
				t.Errorf("%s: got the write %v of another sandbox", what, each)
			}
		}
		if count != 1 {
			t.Errorf("%s: got %d captured writes, want 1", what, count)
		}
	}
	wantGrade(t, c.replay(t, first, nil), "identical")
	wantOne("a replay")
	if other := c.replay(t, first, map[string]any{"code": write + "\n" + write}); other.get("status") != "failed" {
		t.Errorf("a replay that writes twice: got %s, want the second write refused", other.text)
	}
	wantOne("a replay of other code")
	forks, _ := c.ok(t, "POST", "/sandbox/"+id+"/fork", nil).get("sandboxes").([]any)
	if len(forks) != 1 {
		t.Fatalf("got %v, want a fork", forks)
	}
	wantOne("a fork")
}

// A session that is restored opens no connections again.
func TestForksOpenNoConnections(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.createOnline(t, internet.plain())
	code := "import requests\ntry:\n    got = requests.get('http://" + internet.plain() + "/csv').text\n" +
		"except requests.RequestException:\n    got = ''\nlen(got)"
	if first := c.run(t, id, code); first.get("result") == 0.0 || describeConnections(first) == "" {
		t.Fatalf("got %s, want a connection", first.text)
	}
	forks, _ := c.ok(t, "POST", "/sandbox/"+id+"/fork", nil).get("sandboxes").([]any)
	if len(forks) != 1 {
		t.Fatalf("got %v, want a fork", forks)
	}
	fork := forks[0].(map[string]any)
	restored, _ := fork["restored"].(map[string]any)
	if restored["exact"] != false || !strings.Contains(compactJSON(restored["sources"]), "network") {
		t.Errorf("got %v, want a state that is not exact because of the network", restored)
	}
	a := c.run(t, fork["sandbox_id"].(string), "got")
	if got, _ := a.get("result").(string); !strings.HasPrefix(got, "Glasshouse: no connection") {
		t.Errorf("got %s, want that there was no connection", a.text)
	}
}

// A session whose first execution was erased is not restored: its variables are not known.
func TestForkNeedsTheFirstExecution(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	first := c.run(t, id, "n = 1")
	last := c.run(t, id, "m = 2")
	admin.ok(t, "DELETE", "/executions/"+first.get("execution_id").(string), nil)
	replay := "/executions/" + last.get("execution_id").(string) + "/replay"
	for _, path := range []string{"/sandbox/" + id + "/fork", replay} {
		wantProblem(t, c.do(t, "POST", path, map[string]any{}), http.StatusGone, "gone", "no longer kept")
	}
}
