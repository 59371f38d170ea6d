package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/httpapi"
)

// Large records are encoded in the turn of their user. Responses without one do not wait.
func TestLargeResponsesTakeTurns(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	cpu := limit.NewCPU(2)
	handler := httpapi.New(httpapi.Config{Service: testService, Log: log, Version: "test", CPU: cpu})
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
