package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// The uploads of one user in all sandboxes have an exact limit. Rejected, replaced, deleted and incomplete uploads do
// not count, and neither do those of deleted sandboxes.
func TestUploadsOfOneUserAreBounded(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	roomy := map[string]any{"upload_max_bytes": 64 << 20, "file_max_bytes": 64 << 20}
	one, two := c.create(t, roomy), c.create(t, roomy)
	all := strings.Repeat("x", 16<<20-4096) // the name counts as one page
	taken := func(a answer) {
		t.Helper()
		if a.status != http.StatusOK {
			t.Fatalf("got HTTP %d, want 200: %s", a.status, a.text)
		}
	}
	taken(c.put(t, one, "deep/er/most", all[:10<<20]))
	wantProblem(t, c.put(t, two, "deep/er/much", all[:7<<20]), 413, "too-large", "all your sandboxes", "16777216")
	wantProblem(t, c.put(t, two, "all", all), 413, "too-large", "all your sandboxes")
	taken(c.put(t, two, "less", all[:5<<20]))
	taken(c.put(t, two, "less", "little")) // for a moment, both versions exist
	for n := range 200 {
		taken(c.put(t, two, fmt.Sprintf("many/%d/x", n), "x"))
	}
	// the bytes would fit, the entries do not
	wantProblem(t, c.put(t, two, "less", all[:4<<20]), 413, "too-large", "all your sandboxes")
	for n := range 200 {
		c.ok(t, "DELETE", fmt.Sprintf("/sandbox/%s/files/many/%d/x", two, n), nil)
	}
	taken(c.put(t, two, "less", all[:4<<20]))
	wantProblem(t, c.put(t, two, "less/x", "a file is in the way"), 422, "invalid-input")
	wantProblem(t, c.put(t, two, "../x", "no name"), 422, "invalid-input")
	wantProblem(t, c.do(t, "POST", "/sandbox/"+two+"/files",
		"--b\r\nContent-Disposition: form-data; name=f; filename=torn\r\n\r\n"+
			all[:1<<20], "Content-Type", "multipart/form-data; boundary=b"), 400, "malformed")
	other := newUser(t, sandbox.RoleAgent)
	taken(other.put(t, other.create(t, roomy), "all", all))

	c.ok(t, "DELETE", "/sandbox/"+two+"/files/less", nil)
	c.ok(t, "DELETE", "/sandbox/"+one, nil)
	taken(c.put(t, two, "all", all))
	wantProblem(t, c.put(t, two, "more", ""), 413, "too-large", "all your sandboxes")
	c.ok(t, "DELETE", "/sandbox/"+two+"/files/all", nil)
	a := c.do(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1",
		"files": []map[string]any{{"path": "a", "content": all[:2<<20]}}})
	if a.get("result") != 1.0 {
		t.Errorf("got %s, want 1", a.text)
	}
	eventually(t, "the deletion of the files that came with a run",
		func() bool { return c.put(t, two, "all", all).status == http.StatusOK })
}

// The uploads of all users share a limit; when it is reached, the answer is 503 with Retry-After. Not parallel: it fills that limit.
func TestUploadsOfAllUsersAreBounded(t *testing.T) {
	one, two := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleAgent)
	one.server, two.server = smallServerURL, smallServerURL
	first, second := one.create(t, nil), two.create(t, nil)
	if a := one.put(t, first, "a", strings.Repeat("a", 3<<20)); a.status != http.StatusOK {
		t.Fatalf("got %s, want HTTP 200", a.text)
	}
	a := two.put(t, second, "b", strings.Repeat("b", 2<<20))
	if wantProblem(t, a, 503, "full", "all sandboxes"); a.header.Get("Retry-After") == "" {
		t.Errorf("got %v, want Retry-After", a.header)
	}
	one.ok(t, "DELETE", "/sandbox/"+first, nil)
	if a := two.put(t, second, "b", strings.Repeat("b", 4<<20-4096)); a.status != http.StatusOK {
		t.Errorf("got %s, want HTTP 200", a.text)
	}
}
