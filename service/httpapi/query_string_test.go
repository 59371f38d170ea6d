package httpapi_test

import (
	"net/url"
	"testing"

	"glasshouse/sandbox"
)

// No part of a request is dropped silently: a query that can't be parsed, a repeated name, a name in another case.
func TestAmbiguousQueryStringsAreRejected(t *testing.T) {
	t.Parallel()
	agent, developer := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleDeveloper)
	for query, says := range map[string]string{
		"status=failed;x=1": "can't be parsed", "status=%zz": "can't be parsed", "limit=1;a": "can't be parsed",
		"status=completed&status=failed": "more than once", "STATUS=failed": "STATUS",
	} {
		wantProblem(t, agent.do(t, "GET", "/executions?"+query, nil), 422, "invalid-input", says)
	}
	if a := agent.do(t, "GET", "/executions?text="+url.QueryEscape("a;b&c=%d"), nil); a.status != 200 {
		t.Errorf("got HTTP %d, want 200: %s", a.status, a.text)
	}
	wantProblem(t, developer.do(t, "POST", "/keys", `{"name":"x","role":"agent","ROLE":"xyz"}`), 422, "invalid-input",
		"ROLE")
	wantProblem(t, admin.do(t, "POST", "/keys", `{"name":"x","limits":{"Requests_per_minute":-7}}`), 422,
		"invalid-input", "Requests_per_minute")
	wantProblem(t, agent.do(t, "POST", "/sandbox/agent/quick-execute", `{"code":"1","CODE":"2"}`), 422, "invalid-input",
		"CODE")
	wantProblem(t, admin.do(t, "POST", "/keys", `{"name":"x","limits":{"requests_per_minute":99999999999999}}`), 422,
		"invalid-input", "requests_per_minute")
}
