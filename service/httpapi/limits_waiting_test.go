package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/httpapi"
)

// mostLargeBodies is how many large bodies of an account may be in memory before their work begins.
const mostLargeBodies = 8

// largeText makes a request large.
var largeText = strings.Repeat("x", 200_000)

// largeJob is a job with a large request.
func largeJob(code string) map[string]any {
	return map[string]any{"code": code, "context": map[string]any{"text": largeText}}
}

// largeCall is a large call of the MCP tool that runs code.
func largeCall(code, session string) map[string]any {
	return map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": "run_python", "arguments": map[string]any{
			"code": code, "session_id": session, "files": map[string]any{"large.txt": largeText},
		},
	}}
}

// sentBody is a body that tells how much of it was read.
type sentBody struct {
	text  *bytes.Reader
	rest  <-chan struct{} // the end of the body arrives when it is closed; nil: at once
	whole chan struct{}   // closed when text was read
	once  sync.Once
}

func newSentBody(t *testing.T, body any) *sentBody {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return &sentBody{text: bytes.NewReader(text), whole: make(chan struct{})}
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.text.Read(p)
	if b.text.Len() == 0 {
		b.once.Do(func() { close(b.whole) })
	}
	if err == io.EOF && b.rest != nil { //nolint:errorlint // bytes.Reader returns it so
		<-b.rest
	}
	return n, err
}

// slotServer is a service of its own with a number of slots for executions.
type slotServer struct{ http.Handler }

func newSlotServer(t *testing.T, slots int) slotServer {
	t.Helper()
	config := testConfig
	config.runs.Parallel = slots
	s := newServices(config)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.drain(ctx)
		s.close()
	})
	api := s.api(config.log)
	api.MCP = s.mcp(config.log)
	return slotServer{httpapi.New(api)}
}

// send sends a request, and returns the answer when it is complete.
func (s slotServer) send(
	ctx context.Context, c client, method, path string, body io.Reader, headers ...string,
) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, path, body)
	r.Header.Set("Authorization", "Bearer "+c.secret)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// create creates a sandbox.
func (s slotServer) create(t *testing.T, c client) string {
	t.Helper()
	w := s.send(t.Context(), c, "POST", "/sandbox/create", strings.NewReader("{}"))
	var created struct {
		ID string `json:"sandbox_id"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &created); err != nil || created.ID == "" {
		t.Fatalf("got %d %s, want a sandbox", w.Code, w.Body)
	}
	return created.ID
}

// Only a few requests with large bodies of an account are in memory while they wait for a slot, whatever way they came.
// The others are not read until one of them begins.
func TestWaitingRequestsHoldFewLargeBodies(t *testing.T) {
	t.Parallel()
	s := newSlotServer(t, 1)
	c, other := newUser(t, sandbox.RoleDeveloper), newUser(t, sandbox.RoleAgent)
	session, debugged, called := s.create(t, c), s.create(t, c), s.create(t, c)
	const quick = "/sandbox/agent/quick-execute"
	requests := []struct {
		path    string
		body    any
		headers []string
	}{
		{quick, largeJob("1"), nil},
		{quick, largeJob("1"), []string{"Prefer", "respond-async"}},
		{quick, largeJob("1"), []string{"Prefer", "respond-async"}},
		{quick, largeJob("1"), []string{"Accept", "text/event-stream"}},
		{quick, map[string]any{"code": "1", "context": map[string]any{"a": make([]int, 100_000)}}, nil},
		{"/sandbox/" + session + "/execute", largeJob("1"), nil},
		{"/sandbox/" + debugged + "/debug/sessions", largeJob("1"), nil},
		{"/mcp", largeCall("1", called), []string{"Accept", both}},
	}
	// try returns false if the machine was so slow that a request waited for too long.
	try := func() bool {
		running, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer stop()
		all.Go(func() {
			s.send(running, other, "POST", quick, strings.NewReader(`{"code": "import time\ntime.sleep(250)"}`))
		})
		eventually(t, "another user's execution to take the only slot", func() bool {
			w := s.send(t.Context(), other, "GET", "/executions?status=running", nil)
			return strings.Contains(w.Body.String(), `"execution_id"`)
		})
		answers := make([]*httptest.ResponseRecorder, len(requests))
		var answered atomic.Int32
		for n, r := range requests {
			body := newSentBody(t, r.body)
			all.Go(func() {
				answers[n] = s.send(t.Context(), c, "POST", r.path, body, r.headers...)
				answered.Add(1)
			})
			<-body.whole
		}
		another, leave := context.WithCancel(t.Context())
		defer leave()
		small, large := newSentBody(t, map[string]any{"code": "1"}), newSentBody(t, largeJob("1"))
		all.Go(func() { s.send(another, c, "POST", quick, large) })
		all.Go(func() { s.send(another, c, "POST", quick, small) })
		<-small.whole
		var isRead bool
		select {
		case <-large.whole:
			isRead = true
		case <-time.After(200 * time.Millisecond):
		}
		if answered.Load() > 0 {
			return false
		}
		if isRead {
			t.Errorf("while %d large bodies wait: the service read another one, want it to wait", mostLargeBodies)
		}
		leave()
		stop()
		all.Wait()
		for n, w := range answers {
			if w.Code >= 300 {
				t.Errorf("%s %s: got %d %.300s, want success", requests[n].path, requests[n].headers, w.Code, w.Body)
			}
		}
		w := s.send(t.Context(), c, "POST", quick, newSentBody(t, largeJob("1")))
		if w.Code != http.StatusOK {
			t.Errorf("after the others: got %d %.300s, want 200", w.Code, w.Body)
		}
		return true
	}
	for tries := 0; !try(); tries++ {
		if tries == 5 {
			t.Fatal("the machine is too slow for this test")
		}
	}
}

// An execution that has begun does not count among the large bodies.
func TestRunningExecutionsHoldNoSlotOfLargeBodies(t *testing.T) {
	t.Parallel()
	s, c := newSlotServer(t, 8), newUser(t, sandbox.RoleDeveloper)
	const code = "import time\ntime.sleep(250)"
	quick, call := newSentBody(t, largeJob(code)), newSentBody(t, largeCall(code, s.create(t, c)))
	running, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() { s.send(running, c, "POST", "/sandbox/agent/quick-execute", quick) })
	all.Go(func() {
		s.send(running, c, "POST", "/mcp", call, "Accept", both, "MCP-Protocol-Version", "2025-11-25")
	})
	eventually(t, "two executions to begin", func() bool {
		w := s.send(t.Context(), c, "GET", "/executions?status=running", nil)
		return strings.Count(w.Body.String(), `"execution_id"`) == 2
	})
	defer s.send(t.Context(), c, "POST", "/sandbox/cleanup-all", nil) // ends the call, which goes on without its client
	rest := make(chan struct{})
	defer close(rest)
	for n := range mostLargeBodies {
		body := newSentBody(t, largeJob("1"))
		body.rest = rest
		all.Go(func() { s.send(t.Context(), c, "POST", "/sandbox/highlight", body) })
		select {
		case <-body.whole:
		case <-time.After(9 * time.Second): // before the service answers 429
			t.Errorf("body %d of %d was not read", n+1, mostLargeBodies)
			return
		}
	}
}
