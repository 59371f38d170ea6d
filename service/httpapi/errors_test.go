package httpapi_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"glasshouse/sandbox"
)

func contextOf(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

func TestProblemNamesTheField(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	execute, create := "/sandbox/"+id+"/execute", "/sandbox/create"
	big := strings.Repeat("#", 100_001)
	for _, x := range []struct {
		method, path, body string
		status             int
		kind, word         string
	}{
		{"POST", execute, `{"code":`, 400, "malformed", "JSON"},
		{"POST", execute, `{"code": 1}`, 422, "invalid-input", `"code"`},
		{"POST", execute, `{}`, 422, "invalid-input", "code"},
		{"POST", execute, `[]`, 422, "invalid-input", "object"},
		{"POST", execute, `{"code": "1", "speed": 9}`, 422, "invalid-input", "speed"},
		{"POST", execute, `{"code": "1", "context": [1]}`, 422, "invalid-input", "context"},
		{"POST", execute, `{"code": "1", "context": {"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) +
			`}}`, 422, "invalid-input", "context"},
		{"POST", execute, `{"code": "` + big + `"}`, 413, "too-large", "max_code_size"},
		{"POST", execute, `{"code": "` + strings.Repeat("#", 20<<20) + `"}`, 413, "too-large", ""},
		{"POST", execute, `{"code": "1", "files": [{}]}`, 422, "invalid-input", "files"},
		{"POST", execute, `{"code": "1", "files": [{"path": "x"}]}`, 422, "invalid-input", "files[0]"},
		{"POST", execute, `{"code": "1", "files": [{"path": "../x", "content": ""}]}`, 422, "invalid-input", "path"},
		{"POST", "/sandbox/nobody/execute", `{"code":"1"}`, 404, "not-found", "sandbox"},
		{"GET", "/sandbox/nobody/status", "", 404, "not-found", "sandbox"},
		{"GET", "/executions/nobody", "", 404, "not-found", "execution"},
		{"GET", "/nowhere", "", 404, "not-found", "/docs"},
		{"PUT", execute, `{}`, 405, "method-not-allowed", "PUT"},
		{"POST", create, `{"max_memory": 64}`, 422, "invalid-input", "did you mean max_memory_mb?"},
		{"POST", create, `{"config": {"max_memory": 64}}`, 422, "invalid-input", "did you mean max_memory_mb?"},
		{"POST", create, `{"user_id": 1}`, 422, "invalid-input", "the user of its key"},
		{"POST", create, `{"config": {}, "max_rows": 1}`, 422, "invalid-input", "one of the two places"},
		{"POST", create, `{"config": 1}`, 422, "invalid-input", "config"},
		{"POST", "/database/query", `{"query": "SELECT 1", "params": {}}`, 422, "invalid-input",
			"did you mean parameters?"},
		{"POST", execute, `{"code": "1", "files": [{"path": "x", "contents": ""}]}`, 422, "invalid-input",
			"did you mean content?"},
		{"POST", create, `{"MAX_MEMORY_MB": 64}`, 422, "invalid-input", "MAX_MEMORY_MB"},
		{"POST", create, `{"max_memory_mb": "64"}`, 422, "invalid-input", "max_memory_mb"},
		{"POST", create, `{"max_memory_mb": 1}`, 422, "invalid-input", "max_memory_mb"},
		{"POST", create, `{"max_memory_mb": 1024}`, 422, "invalid-input", "512"},
		{"POST", create, `{"profile": "root"}`, 422, "invalid-input", "profile"},
		{"POST", create, `{"profile": "unrestricted"}`, 403, "forbidden", "admin"},
		{"POST", create, `{"enable_network_access": true}`, 422, "invalid-input", "allowed_hosts"},
		{"POST", create, `{"allowed_hosts": ["elsewhere.org"]}`, 403, "forbidden", "elsewhere.org"},
		{"POST", "/sandbox/agent/quick-execute", `{"code":"1","config":{"max_rows":0}}`, 422, "invalid-input",
			"max_rows"},
		{"POST", "/sandbox/agent/quick-execute", `{"code":"1","config":{"max_row":1}}`, 422, "invalid-input",
			"did you mean max_rows?"},
		{"POST", "/sandbox/agent/analyze-data", `{"table_name":"users","analysis_type":"histogram"}`, 422,
			"invalid-input", "summary, schema, tables"},
		{"POST", "/sandbox/agent/analyze-data?table_name=users&analysis_type=histogram", "", 422,
			"invalid-input", "summary, schema, tables"},
		{"POST", "/sandbox/agent/analyze-data", `{"analysis_type":"summary"}`, 422, "invalid-input", "table_name"},
		{"POST", "/sandbox/agent/analyze-data?table_name=users&limit=x", "", 422, "invalid-input", "limit"},
		{"GET", "/sandbox/" + id + "/history?limit=0", "", 422, "invalid-input", "limit"},
		{"POST", "/sandbox/" + id + "/check", `{}`, 422, "invalid-input", "code"},
		{"POST", "/sandbox/" + id + "/complete", `{"code": "x", "cursor": 2}`, 422, "invalid-input", "cursor"},
		{"POST", "/sandbox/nobody/check", `{"code": "1"}`, 404, "not-found", "sandbox"},
		{"GET", "/sandbox/nobody/variables", "", 404, "not-found", "sandbox"},
		{"GET", "/sandbox/" + id + "/files/a/b.csv", "", 404, "not-found", "a/b.csv"},
		{"GET", "/executions?status=foo", "", 422, "invalid-input", "completed"},
		{"GET", "/executions?user=somebody", "", 422, "invalid-input", "user"},
		{"GET", "/executions?since=yesterday", "", 422, "invalid-input", "RFC 3339"},
		{"POST", "/debug/sessions/s/stepIn", `{}`, 403, "forbidden", "developer"},
		{"GET", "/pending-writes", "", 403, "forbidden", "admin"},
	} {
		for _, root := range []string{"", "/api/v1"} {
			c.prefix = root
			var body any
			if x.body != "" {
				body = x.body
			}
			a := c.do(t, x.method, x.path, body)
			name := x.body
			if len(name) > 60 {
				name = name[:60]
			}
			t.Run(x.method+root+x.path+name, func(t *testing.T) { wantProblem(t, a, x.status, x.kind, x.word) })
		}
	}
	c.prefix = ""
	wantProblem(t, c.do(t, "POST", execute, `{"code":"1"}`, "Content-Type", "text/plain"),
		http.StatusUnsupportedMediaType, "invalid-input", "header Content-Type: application/json")
	if a := c.run(t, id, "1+1"); a.get("result") != 2.0 {
		t.Errorf("the next execution: got %s, want 2", a.text)
	}
}

func TestKeysSeeTheirOwnOnly(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/healthz", "/readyz", "/docs", "/openapi.json"} {
		if a := (client{}).do(t, "GET", path, nil); a.status != http.StatusOK {
			t.Errorf("%s without a key: got HTTP %d, want 200: %s", path, a.status, a.text)
		}
	}
	for _, c := range []client{{}, {secret: "gh_wrong"}} {
		a := c.do(t, "POST", "/sandbox/create", `{}`)
		wantProblem(t, a, http.StatusUnauthorized, "unauthorized")
		if a.header.Get("WWW-Authenticate") == "" {
			t.Error("got no WWW-Authenticate header")
		}
	}
	agent, developer := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleDeveloper)
	id := agent.create(t, nil)
	eid, _ := agent.run(t, id, "1").get("execution_id").(string)
	for _, path := range []string{"/sandbox/" + id + "/status", "/sandbox/" + id + "/history", "/executions/" + eid} {
		wantProblem(t, developer.do(t, "GET", path, nil), http.StatusNotFound, "not-found")
		admin.ok(t, "GET", path, nil)
	}
	wantProblem(t, developer.do(t, "GET", "/executions?after="+eid, nil), http.StatusUnprocessableEntity,
		"invalid-input", "cursor")
	wantProblem(t, agent.do(t, "POST", "/keys", `{"name":"more"}`), http.StatusForbidden, "forbidden")
	wantProblem(t, developer.do(t, "POST", "/keys", `{"name":"more","role":"admin"}`), http.StatusForbidden,
		"forbidden")
	wantProblem(t, developer.do(t, "POST", "/keys", `{"name":"more","user_id":"root"}`), http.StatusForbidden,
		"forbidden")
	created := developer.ok(t, "POST", "/keys", `{"name":"more"}`)
	secret, _ := created.get("key").(string)
	more := client{secret: secret}
	more.ok(t, "GET", "/executions", nil)
	if keys, _ := developer.ok(t, "GET", "/keys", nil).get("keys").([]any); len(keys) != 2 {
		t.Errorf("the keys of a user with two: got %v, want no others", keys)
	}
	developer.ok(t, "DELETE", "/keys/"+created.get("id").(string), nil)
	wantProblem(t, more.do(t, "GET", "/executions", nil), http.StatusUnauthorized, "unauthorized", "revoked")
	if a := admin.ok(t, "GET", "/keys", nil); strings.Contains(string(a.text), secret) {
		t.Error("the list of keys has a secret")
	}
}

func TestSandboxesPerUserAreLimited(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	for range 4 {
		c.create(t, nil)
	}
	a := c.do(t, "POST", "/sandbox/create", `{}`)
	wantProblem(t, a, http.StatusTooManyRequests, "limit-reached")
	if a.header.Get("Retry-After") == "" {
		t.Error("got no Retry-After header")
	}
	c.ok(t, "POST", "/sandbox/cleanup-all", nil)
	c.create(t, nil)
	if a := c.do(t, "POST", "/sandbox/create", nil); a.status != http.StatusOK {
		t.Errorf("create without a body: got %s, want a sandbox", a.text)
	}
}

// Not parallel: it stops every zygote of the process.
func TestExhaustedPoolAnswers503WithRetryAfter(t *testing.T) {
	c := newUser(t, sandbox.RoleAgent)
	c.server = smallServerURL
	zygotes := 0
	var stop func(process string)
	stop = func(process string) {
		tasks, _ := filepath.Glob("/proc/" + process + "/task/*/children")
		for _, task := range tasks {
			body, _ := os.ReadFile(task)
			for word := range strings.FieldsSeq(string(body)) {
				line, _ := os.ReadFile("/proc/" + word + "/cmdline")
				if pid, _ := strconv.Atoi(word); pid > 0 && strings.Contains(string(line), "zygote.py") {
					zygotes++
					if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
				} else if strings.HasPrefix(string(line), "glasshouse-launcher") {
					stop(word)
				}
			}
		}
	}
	stop("self")
	if zygotes == 0 {
		t.Fatal("found no zygote to stop")
	}
	var a answer
	for range 10 { // until the pool is empty
		if a = c.do(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1"}); a.status != http.StatusOK {
			break
		}
	}
	wantProblem(t, a, http.StatusServiceUnavailable, "full")
	if a.header.Get("Retry-After") == "" {
		t.Error("got no Retry-After header")
	}
}

func TestOpenAPIAndDocsAreServed(t *testing.T) {
	t.Parallel()
	a := (client{}).do(t, "GET", "/openapi.json", nil)
	if version, _ := a.get("openapi").(string); !strings.HasPrefix(version, "3.1") {
		t.Errorf("got the OpenAPI version %q, want 3.1", version)
	}
	paths, _ := a.get("paths").(map[string]any)
	for _, path := range []string{"/sandbox/create", "/sandbox/{id}/execute", "/sandbox/{id}/debug",
		"/sandbox/agent/quick-execute", "/executions/{id}/cancel", "/keys"} {
		if paths[path] == nil {
			t.Errorf("%s is not in OpenAPI", path)
		}
	}
	page := (client{}).do(t, "GET", "/docs", nil)
	if strings.Contains(string(page.text), "://") {
		t.Error("the page names another host")
	}
	metrics := admin.do(t, "GET", "/metrics", nil)
	if !strings.Contains(string(metrics.text), "# TYPE glasshouse_") {
		t.Errorf("got the metrics %s, want Prometheus's format", metrics.text)
	}
}
