package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// wantArtifacts requires that an execution left files, each as CHANGE PATH.
func wantArtifacts(t *testing.T, what string, a answer, want ...string) {
	t.Helper()
	list, _ := a.get("artifacts").([]any)
	var got []string
	for _, each := range list {
		file := each.(map[string]any)
		got = append(got, file["change"].(string)+" "+file["path"].(string))
	}
	if compactJSON(got) != compactJSON(want) {
		t.Errorf("%s: got the files %v, want %v: %s", what, got, want, a.text)
	}
}

// The files of earlier executions are not those of a replay, a fork or a rollback, which restores them.
func TestRestoredFilesAreNotCollectedAgain(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	const write = "open('/session/artifacts/x.txt', 'w').write('one')"
	first := c.run(t, id, write)
	wantArtifacts(t, "the first execution", first, "new x.txt")
	second := c.run(t, id, "1 + 1")
	wantArtifacts(t, "the second execution", second)
	again := c.replay(t, second, nil)
	wantGrade(t, again, "identical")
	wantArtifacts(t, "the replay", again)
	third := c.run(t, id, "open('/session/artifacts/x.txt', 'a').write('two')")
	again = c.replay(t, third, nil)
	wantGrade(t, again, "identical")
	wantArtifacts(t, "the replay of a change", again, "changed x.txt")

	forks, _ := c.ok(t, "POST", "/sandbox/"+id+"/fork", nil).get("sandboxes").([]any)
	if len(forks) != 1 {
		t.Fatalf("got %v, want a fork", forks)
	}
	fork := forks[0].(map[string]any)
	wantArtifacts(t, "the fork", c.finished(t, fork["execution_id"].(string)))
	inFork := c.run(t, fork["sandbox_id"].(string), "2 + 2")
	wantArtifacts(t, "an execution of the fork", inFork)
	wantGrade(t, c.replay(t, inFork, nil), "identical")

	back := c.ok(t, "POST", "/sandbox/"+id+"/rollback", map[string]any{"before": third.get("execution_id")})
	wantArtifacts(t, "the rollback", back)
	after := c.run(t, id, "3 + 3")
	wantArtifacts(t, "the execution after the rollback", after)
	wantGrade(t, c.replay(t, after, nil), "identical")
	c.ok(t, "POST", "/sandbox/"+id+"/rollback", map[string]any{"before": first.get("execution_id")})
	wantArtifacts(t, "the same code after a rollback to the beginning", c.run(t, id, write), "new x.txt")
}

// A replay and an execution that restored a session cannot be replayed themselves, and the answer says why.
func TestReplayOfAReplayIsRefused(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	first := c.run(t, id, "1")
	again := c.replay(t, first, map[string]any{"code": "2"})
	path := func(a any) string { return "/executions/" + a.(string) + "/replay" }
	wantProblem(t, c.do(t, "POST", path(again.get("execution_id")), map[string]any{}), http.StatusGone, "gone",
		"a replay keeps no inputs of its own", first.get("execution_id").(string), "same code")
	forks, _ := c.ok(t, "POST", "/sandbox/"+id+"/fork", nil).get("sandboxes").([]any)
	if len(forks) != 1 {
		t.Fatalf("got %v, want a fork", forks)
	}
	restored := forks[0].(map[string]any)["execution_id"]
	wantProblem(t, c.do(t, "POST", path(restored), map[string]any{}), http.StatusUnprocessableEntity,
		"invalid-input", "restored a session", "no code of its own")
}

// The list of a tag has no replays, and lists filter by the kinds replay and restore.
func TestReplaysAreListedByTheirKind(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	first := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{
		"code": "1", "tags": map[string]any{"report": "q3"}})
	again := c.replay(t, first, nil)
	wantGrade(t, again, "identical")
	if tags := c.finished(t, again.get("execution_id").(string)).get("tags"); tags != nil {
		t.Errorf("got the tags %v of a replay, want none", tags)
	}
	c.ok(t, "POST", "/sandbox/"+id+"/fork", nil)
	wantProblem(t, c.do(t, "GET", "/executions?kind=replays", nil), http.StatusUnprocessableEntity, "invalid-input",
		"query.kind", "replay, restore")
	for query, want := range map[string]string{"tag=report:q3": "execute", "kind=replay": "replay",
		"kind=restore": "restore"} {
		list, _ := c.ok(t, "GET", "/executions?"+query, nil).get("executions").([]any)
		if len(list) != 1 || list[0].(map[string]any)["kind"] != want {
			t.Errorf("%s: got %v, want one execution of the kind %s", query, list, want)
			continue
		}
		of := list[0].(map[string]any)["replay_of"]
		if want == "replay" && of != first.get("execution_id") || want != "replay" && of != nil {
			t.Errorf("%s: got replay_of %v of the kind %s, original %v", query, of, want, first.get("execution_id"))
		}
	}
}

// Who explains an execution without a recording learns how to make one.
func TestExplainNamesTheReplay(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1"})
	for _, what := range []string{"explain", "why"} {
		wantProblem(t, c.do(t, "GET", "/executions/"+first.get("execution_id").(string)+"/"+what, nil),
			http.StatusNotFound, "not-found", `POST /executions/`+first.get("execution_id").(string)+`/replay`,
			`\"record\": true`)
	}
}

// The first line of the text says that both failed: "identical" alone would look like a success.
func TestReplayTextSaysThatBothFailed(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1 + 'a'"})
	c.server = serveMCP(t)
	text := c.toolText(t, mcpVersion, "replay_execution", map[string]any{"execution_id": first.get("execution_id")})
	line, _, _ := strings.Cut(text, "\n")
	const want = "(both failed: TypeError: unsupported operand"
	if !strings.HasPrefix(line, "identical: ") || !strings.Contains(line, want) {
		t.Errorf("got %q, want the error of both", text)
	}
}
