package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/sandbox"
	"glasshouse/service/httpapi"
)

// blockedWriter is a response whose client reads nothing until release is closed.
type blockedWriter struct {
	header  http.Header
	once    sync.Once
	begun   chan struct{} // closed at the first write
	release chan struct{}
	written int
}

func (s *blockedWriter) Header() http.Header { return s.header }
func (s *blockedWriter) WriteHeader(int)     {}
func (s *blockedWriter) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.release
	s.written += len(b)
	return len(b), nil
}

// Only a few large bodies of an account arrive at the same time, because each takes memory until it is complete.
func TestLargeBodiesOfAnAccountAreLimited(t *testing.T) {
	t.Parallel()
	const most = 8
	c := newUser(t, sandbox.RoleAgent)
	large := map[string]any{"code": "1", "context": map[string]any{"text": strings.Repeat("x", 200_000)}}
	var group sync.WaitGroup
	defer group.Wait()
	for range most {
		body, w := io.Pipe()
		defer w.Close()
		r, err := http.NewRequestWithContext(t.Context(), "POST", serverURL+"/sandbox/highlight", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+c.secret)
		r.Header.Set("Content-Type", "application/json")
		group.Go(func() {
			if resp, err := http.DefaultClient.Do(r); err == nil {
				_ = resp.Body.Close()
			}
		})
		if _, err := w.Write(make([]byte, 1<<20)); err != nil { // beyond what the connection buffers alone
			t.Fatal(err)
		}
	}
	if a := c.do(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1"}); a.status != http.StatusOK {
		t.Errorf("a small body: got %d %s, want 200", a.status, a.text)
	}
	other := newUser(t, sandbox.RoleAgent)
	if a := other.do(t, "POST", "/sandbox/agent/quick-execute", large); a.status != http.StatusOK {
		t.Errorf("another account: got %d %.300s, want 200", a.status, a.text)
	}
	// A connection may buffer all of a body that was written, so the service may not have read it yet.
	a := c.do(t, "POST", "/sandbox/agent/quick-execute", large)
	for tries := 0; a.status == http.StatusOK && tries < 100; tries++ {
		a = c.do(t, "POST", "/sandbox/agent/quick-execute", large)
	}
	if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("one large body too many: got %d %.300s, want 429 with Retry-After", a.status, a.text)
	}
	a = c.do(t, "PUT", "/sandbox/"+c.create(t, nil)+"/files/large", strings.Repeat("x", 200_000))
	if a.status >= 300 {
		t.Errorf("an upload, which takes no memory: got %d %.300s, want success", a.status, a.text)
	}
}

// An account that does not read its responses gets only a few responses with records, and no response while large ones
// are unread. Other accounts are not affected. After reading, the account gets responses again.
func TestUnreadResponsesAreLimited(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	handler := httpapi.New(testServices.api(log))
	get := func(ctx context.Context, c client, path string, w http.ResponseWriter) {
		r := httptest.NewRequestWithContext(ctx, "GET", path, nil)
		r.Header.Set("Authorization", "Bearer "+c.secret)
		handler.ServeHTTP(w, r)
	}
	status := func(ctx context.Context, c client, path string) int {
		w := httptest.NewRecorder()
		get(ctx, c, path, w)
		return w.Code
	}
	for _, size := range []int{100_000, 16_000_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			c, other := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleAgent)
			e := c.ok(t, "POST", "/sandbox/agent/quick-execute",
				map[string]any{"code": fmt.Sprintf("print('x' * %d)\n'x' * 1_500_000", size),
					"config": map[string]any{"max_output_size": 16 << 20}})
			id, _ := e.get("execution_id").(string)
			if len(e.text) < size {
				t.Fatalf("got %.300s, want the large output", e.text)
			}
			path, let := "/executions/"+id, make(chan struct{})
			var group sync.WaitGroup
			readers := make([]*blockedWriter, 4)
			for n := range readers {
				w := &blockedWriter{header: http.Header{}, begun: make(chan struct{}), release: let}
				readers[n] = w
				group.Go(func() { get(t.Context(), c, path, w) })
				<-w.begun
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if got := status(ctx, c, path); got == http.StatusOK {
				t.Error("a fifth response was made")
			}
			want := http.StatusOK
			if 4*size > 60_000_000 {
				want = http.StatusTooManyRequests
			}
			if got := status(t.Context(), c, "/sandbox/statistics"); got != want {
				t.Errorf("another response: got HTTP %d, want %d", got, want)
			}
			if got := status(t.Context(), other, "/executions"); got != http.StatusOK {
				t.Errorf("another user: got HTTP %d, want 200", got)
			}
			close(let)
			group.Wait()
			for n, w := range readers {
				if w.written < size {
					t.Errorf("reader %d: got %d bytes, want the whole response", n, w.written)
				}
			}
			if got := status(t.Context(), c, path); got != http.StatusOK {
				t.Errorf("after reading: got HTTP %d, want 200", got)
			}
		})
	}
}
