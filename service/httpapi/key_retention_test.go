package httpapi_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// History deletes the executions of a key after the days that the key has, with all that belongs to them, even if the
// key is gone. Those of other keys stay, even if they are of the same user and sandbox.
func TestKeyLimitsItsHistory(t *testing.T) {
	t.Parallel()
	var offset atomic.Int64
	now := func() time.Time { return time.Now().UTC().Add(time.Duration(offset.Load())) }
	c := newCompany(t, func(c *companyConfig) {
		c.clock, c.records.ArtifactAge = now, 365*24*time.Hour // files of other tests stay
	})
	operator := client{server: c.server, secret: admin.secret}
	body := map[string]any{"name": "n", "user_id": fmt.Sprintf("%s-%d", t.Name(), users.Add(1)), "role": "developer"}
	long, _ := operator.newKey(t, body)
	body["limits"] = map[string]any{"history_days": 2}
	short, shortID := operator.newKey(t, body)
	limits, _ := operator.keyOf(t, shortID)["limits"].(map[string]any)
	if days, _ := limits["history_days"].(float64); days != 2 {
		t.Errorf("got the limits %v, want history_days 2", limits)
	}
	made, _ := short.newKey(t, map[string]any{"name": "made"})
	a := short.do(t, "POST", "/keys", map[string]any{"name": "n", "limits": map[string]any{"history_days": 9}})
	wantProblem(t, a, http.StatusForbidden, "forbidden", "limits")
	for _, days := range []any{-1, 36501, 1.5, "2"} {
		body["limits"] = map[string]any{"history_days": days}
		wantProblem(t, operator.do(t, "POST", "/keys", body), http.StatusUnprocessableEntity, "invalid-input",
			"history_days")
	}

	id := long.create(t, nil)
	paths := map[string]client{} // of executions, with the key that made them
	for n, user := range []client{long, short, made} {
		code := fmt.Sprintf("await db_query('SELECT 1')\nopen('artifacts/a.txt', 'w').write('%d')", n)
		for _, a := range []answer{
			user.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code}),
			user.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code}),
		} {
			execution, _ := a.get("execution_id").(string)
			paths["/executions/"+execution] = user
			created, _ := time.Parse(time.RFC3339Nano, a.get("created_at").(string))
			want := created.AddDate(0, 0, 2).Format(time.RFC3339Nano)
			if got, _ := a.get("expires_at").(string); (user == long) != (got == "") || got != "" && got != want {
				t.Errorf("got expires_at %q, want %q for the key with days and none for the other", got, want)
			}
		}
		user.ok(t, "POST", "/sandbox/"+id+"/database/query", map[string]any{"query": "SELECT 2"})
	}
	want := func(when string, want ...int) {
		t.Helper()
		for n, list := range []string{"executions", "statements", "artifacts"} {
			got, _ := long.ok(t, "GET", "/"+list+"?limit=100", nil).get(list).([]any)
			if len(got) != want[n] {
				t.Errorf("%s: got %d %s, want %d", when, len(got), list, want[n])
			}
		}
	}
	want("at first", 9, 9, 6)
	operator.ok(t, "DELETE", "/keys/"+shortID, nil)

	offset.Store(int64(47 * time.Hour))
	if err := c.records.ApplyRetention(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("after 47 hours", 9, 9, 6)
	offset.Store(int64(49 * time.Hour))
	if err := c.records.ApplyRetention(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("after 49 hours", 3, 3, 2)
	for path, user := range paths {
		status := http.StatusNotFound
		if user == long {
			status = http.StatusOK
		}
		if a := long.do(t, "GET", path, nil); a.status != status {
			t.Errorf("GET %s: got HTTP %d, want %d", path, a.status, status)
		}
	}
}
