package timing

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/isolate/isolatetest"
	"glasshouse/sandbox/supervisor"
)

// marks gets a value for each byte that code prints.
type marks chan byte

func (m marks) Print(_ string, text []byte) {
	for _, b := range text {
		m <- b
	}
}
func (marks) PrintLate(string, string, string) {}
func (marks) Note(sandbox.Note)                {}
func (marks) Output(sandbox.Output)            {}

// Guests that send most of a large frame and then wait take a bounded part of the service's heap, and leave room for
// the large frames of other users.
func TestPartialFramesAreBounded(t *testing.T) {
	const guests, allowed = 12, 8 // of one user
	s := supervisor.New(isolatetest.Open(t, isolate.Config{}), 20*time.Second)
	open := func(user string) *supervisor.Session {
		sb := sandbox.Sandbox{ID: user, Owner: user, Policy: isolatetest.Policy()}
		session, err := s.Open(context.Background(), sb, "")
		isolatetest.Must(t, err)
		t.Cleanup(session.Close)
		return session
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sent := make(marks, guests)
	var runs sync.WaitGroup
	peak, _ := heapGrowth(func() {
		for n := range guests {
			session := open("many")
			runs.Go(func() {
				_, err := session.Run(ctx, fmt.Sprint(n), sandbox.Request{Code: `import os, struct, time
rest = memoryview(struct.pack(">IB", 32 << 20, ord("D")) + bytes((32 << 20) - 1))
while rest: rest = rest[os.write(3, rest):]
os.write(1, b".")
time.sleep(60)`}, supervisor.Callbacks{Listener: sent, Ordered: true})
				if err != nil {
					t.Error(err)
				}
			})
		}
		for range allowed {
			<-sent // a guest has sent most of its frame
		}
		e := isolatetest.Run(t, open("one"), "'x' * 4_000_000")
		if e.Status != sandbox.StatusCompleted || len(e.Result) < 4_000_000 {
			t.Errorf("another user: got %s and a result of %d bytes, want completed", e.Status, len(e.Result))
		}
		cancel()
		runs.Wait()
	})
	if more := len(sent); more > 0 {
		t.Errorf("%d guests sent most of a frame, want %d", allowed+more, allowed)
	}
	if limit := int64(allowed * 60 << 20); peak > limit {
		t.Errorf("the heap grew by %d MB, want at most %d MB", peak>>20, limit>>20)
	}
	t.Logf("the heap grew by %d MB", peak>>20)
}
