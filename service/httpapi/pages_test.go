package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"glasshouse/service/webui"
)

// The pages need no key, and take any query: they read it themselves. Data need a key, also from a page.
func TestPagesNeedNoKey(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/ui/", "/ui/executions/1234?step=", "/ui/?status=failed&status=killed"} {
		a := (client{}).do(t, "GET", path, nil)
		if a.status != http.StatusOK || !strings.Contains(string(a.text), `<div id="app">`) {
			t.Errorf("%s: got HTTP %d %s, want the document of the pages", path, a.status, a.text)
		}
		if got := a.header.Get("Content-Security-Policy"); got != webui.Policy {
			t.Errorf("%s: got the policy %q, want %q", path, got, webui.Policy)
		}
	}
	if a := (client{}).do(t, "GET", "/ui/assets/unknown.js", nil); a.status != http.StatusNotFound {
		t.Errorf("an unknown asset: got HTTP %d, want 404", a.status)
	}
	wantProblem(t, (client{}).do(t, "POST", "/ui/", "{}"), http.StatusUnauthorized, "unauthorized")
	wantProblem(t, (client{}).do(t, "GET", "/executions", nil), http.StatusUnauthorized, "unauthorized")
}
