package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/httpapi"
)

// A request shows the weight of its key. Only an admin sets it, and keys that a key creates have it too.
func TestKeysHaveWeights(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	users := new(limit.Users)
	userAccess := newAccess(t, func(c *access.Config) { c.Users = users })
	api := testServices.api(log)
	api.Access, api.CPU = userAccess, limit.NewCPU(2, users)
	handler := httpapi.New(api)
	weight := func(c client) int {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/executions", nil)
		r.Header.Set("Authorization", "Bearer "+c.secret)
		handler.ServeHTTP(httptest.NewRecorder(), r)
		return users.Weight(t.Name())
	}
	heavy := newLimitedUser(t, sandbox.RoleDeveloper, map[string]any{"weight": 7})
	a := heavy.ok(t, "POST", "/keys", map[string]any{"name": "more"})
	if limits, _ := a.get("limits").(map[string]any); limits["weight"] != 7.0 {
		t.Errorf("a key that a key made: got the limits %v, want the weight 7", limits)
	}
	made := client{}
	made.secret, _ = a.get("key").(string)
	ordinary := newLimitedUser(t, sandbox.RoleAgent, map[string]any{})
	for n, c := range []client{ordinary, made, ordinary, heavy} {
		if got, want := weight(c), []int{1, 7, 7, 7}[n]; got != want {
			t.Errorf("request %d: got the user's weight %d, want %d", n, got, want)
		}
	}
	keys, _ := heavy.ok(t, "GET", "/keys", nil).get("keys").([]any)
	for n, want := range []any{7.0, 7.0, nil} {
		key, _ := keys[n].(map[string]any)
		if limits, _ := key["limits"].(map[string]any); limits["weight"] != want {
			t.Errorf("key %d in the list: got the limits %v, want the weight %v", n, limits, want)
		}
	}
	wantProblem(t, heavy.do(t, "POST", "/keys", `{"name":"x","limits":{"weight":8}}`), 403, "forbidden", "limits")
	for _, wrong := range []string{"0", "101", "1.5", `"7"`} {
		wantProblem(t, admin.do(t, "POST", "/keys", `{"name":"x","limits":{"weight":`+wrong+`}}`), 422, "invalid-input",
			"weight")
	}
}

// The JSON of large bodies is decoded, and large values of rows are encoded, in the turn of their user. The turn ends
// before the work for which the body was sent begins, and it ends too if the body is refused.
func TestLargeBodiesTakeTurns(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	users := new(limit.Users)
	cpu, userAccess := limit.NewCPU(2, users), newAccess(t, func(c *access.Config) { c.Users = users })
	api := testServices.api(log)
	api.Access, api.CPU = userAccess, cpu
	handler := httpapi.New(api)
	send := func(c client, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+c.secret)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	many, few := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleAgent)
	keys := many.ok(t, "GET", "/keys", nil)
	user, _ := keys.get("keys").([]any)[0].(map[string]any)["user_id"].(string)
	text := strings.Repeat("x", 100_000)
	requests := []struct {
		path, body string
		status     int
	}{
		{"/database/query", `{"query": "SELECT :t AS t", "parameters": {"t": "` + text + `"}}`, 200},
		{"/database/query", `{"query": "SELECT :t AS t", "parameter": {"t": "` + text + `"}}`, 422},
		{"/database/query", `{"query": "SELECT repeat('x', 100000) AS t"}`, 200},
		{"/sandbox/agent/quick-execute", `{"code": "len(t)", "context": {"t": "` + text + `"}}`, 200},
		{"/sandbox/agent/quick-execute", `{"code": "len(t)", "context": {"t": "` + text + `}`, 400},
	}
	holds, release := make(chan struct{}), make(chan struct{})
	go cpu.Compute("another", 1<<20, func() { close(holds); <-release })
	<-holds
	done := make([]chan *httptest.ResponseRecorder, len(requests))
	for n, r := range requests {
		done[n] = make(chan *httptest.ResponseRecorder, 1)
		go func() { done[n] <- send(many, r.path, r.body) }()
	}
	for cpu.Waiting(user) < len(requests) {
		for n := range done {
			select {
			case w := <-done[n]:
				t.Fatalf("request %d did not wait for its turn: HTTP %d, %.200s", n, w.Code, w.Body)
			case <-time.After(time.Millisecond):
			}
		}
	}
	if w := send(few, "/database/query", `{"query": "SELECT 1 AS one"}`); w.Code != http.StatusOK {
		t.Errorf("another user: got HTTP %d, want 200", w.Code)
	}
	close(release)
	for n, r := range requests {
		if w := <-done[n]; w.Code != r.status {
			t.Errorf("request %d: got HTTP %d, %.200s, want %d", n, w.Code, w.Body, r.status)
		}
	}
}

// Large records are encoded in the turn of their user. Responses without one do not wait.
func TestLargeResponsesTakeTurns(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	users := new(limit.Users)
	cpu, userAccess := limit.NewCPU(2, users), newAccess(t, func(c *access.Config) { c.Users = users })
	api := testServices.api(log)
	api.Access, api.CPU = userAccess, cpu
	handler := httpapi.New(api)
	get := func(c client, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		r.Header.Set("Authorization", "Bearer "+c.secret)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	many, few := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleAgent)
	var path string
	for c, code := range map[client]string{many: "print('x' * 500_000)", few: "print('x')"} {
		e := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code})
		if id, _ := e.get("execution_id").(string); c == many {
			path = "/executions/" + id
		}
	}
	user, _ := many.ok(t, "GET", path, nil).get("user_id").(string)
	holds, release := make(chan struct{}), make(chan struct{})
	go cpu.Compute("another", 1<<20, func() { close(holds); <-release })
	<-holds
	done := make(chan *httptest.ResponseRecorder, 2)
	for _, path := range []string{path, "/executions?include=record"} {
		go func() { done <- get(many, path) }()
	}
	for cpu.Waiting(user) < 2 {
		select {
		case w := <-done:
			t.Fatalf("a large response did not wait for its turn: HTTP %d, %.200s", w.Code, w.Body)
		case <-time.After(time.Millisecond):
		}
	}
	if w := get(few, "/executions"); w.Code != http.StatusOK {
		t.Errorf("another user: got HTTP %d, want 200", w.Code)
	}
	close(release)
	for range 2 {
		if w := <-done; w.Code != http.StatusOK || w.Body.Len() < 500_000 {
			t.Errorf("got HTTP %d and %d bytes, want the large record", w.Code, w.Body.Len())
		}
	}

	// A user's computations pause after a request of another user.
	var began, ended time.Time
	cpu.Compute(user, 1<<20, func() {
		began = time.Now()
		get(few, "/executions")
		ended = time.Now()
	})
	cpu.Compute(user, 1<<20, func() {
		if took, pause := ended.Sub(began), time.Since(ended); pause < 3*took {
			t.Errorf("got a pause of %s after a computation of %s, want three times as long", pause, took)
		}
	})
}
