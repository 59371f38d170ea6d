//go:build nightly

package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/history"
	"glasshouse/debugger"
	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
	"glasshouse/service/records"
)

// weekClock is a clock that a test sets forward.
type weekClock struct{ offset atomic.Int64 }

func (c *weekClock) now() time.Time { return time.Now().UTC().Add(time.Duration(c.offset.Load())) }

func (c *weekClock) move(d time.Duration) { c.offset.Add(int64(d)) }

// answered are the executions that were answered, by the time at which they began.
type answered struct {
	mu   sync.Mutex
	list map[string]time.Time
}

// endedToken is what the service says of a token that has expired, or whose key the provider has withdrawn.
var endedToken = regexp.MustCompile("this token has expired|no key of the identity provider has signed it")

// A week passes while users run code: the clock is set forward eight hours at a time. Executions with their recordings
// and files that are older than the limits go, and nothing else does. Tokens, sign-ins, keys and sandboxes expire. The
// identity provider changes its keys every day, and a key can use its CPU time of a day again on the next.
func TestWeek(t *testing.T) {
	const days, stepHours = 7, 6
	ctx := context.Background()
	postgres, start := dbtest.StartPrivate(t), time.Now()
	clock := &weekClock{}
	historyURL := postgres.URL(embedded.RoleHistory, embedded.DatabaseHistory)
	var blobs *blob.Store
	c := newCompany(t, func(c *companyConfig) {
		store, err := history.Open(ctx, history.Config{URL: historyURL, Dir: t.TempDir()}, c.log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		if blobs, err = blob.Open(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = blobs.Close() })
		c.live.History, c.runs.History, c.writes, c.clock = store, store, store, clock.now
		c.records.History, c.records.Blobs = store, blobs
		c.access.History, c.access.AdminKeyID = store, ""
		c.records.HistoryMaxAge, c.records.ArtifactAge, c.records.ArtifactBytes = 3*24*time.Hour, 2*24*time.Hour, 1<<30
		c.records.RecordingRetention = records.RecordingRetention{} // their age is that of PostgreSQL's clock
		c.access.SessionAge = 8 * time.Hour
	})
	c.provider.SetClock(clock.now)
	c.provider.SetLifetime(time.Hour)
	token := func(user string) client {
		return client{server: c.server, secret: c.provider.Sign("ES256", c.provider.IDToken(user))}
	}

	// Four users run code all the time. A user gets another token when the last one has expired.
	done := answered{list: map[string]time.Time{}}
	load, stop := context.WithCancel(ctx)
	var users sync.WaitGroup
	for n := range 4 {
		users.Go(func() {
			mine := token("bert")
			for load.Err() == nil {
				began := clock.now()
				a := mine.do(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": fmt.Sprintf(
					"open('artifacts/a.txt', 'w').write('of user %d at %s')", n, began)})
				id, _ := a.get("execution_id").(string)
				switch {
				case a.status == http.StatusOK && id != "":
					done.mu.Lock()
					done.list[id] = began
					done.mu.Unlock()
				case a.status == http.StatusUnauthorized && endedToken.Match(a.text):
					mine = token("bert")
				case a.status == http.StatusServiceUnavailable, a.status == http.StatusTooManyRequests:
				default:
					t.Errorf("got HTTP %d %s, want an execution", a.status, a.text)
					return
				}
			}
		})
	}
	defer users.Wait()
	defer stop()

	// A key with one second of CPU time per day. A person's key would expire with the token.
	operator := sandbox.Key{ID: "operator", User: "operator", Role: sandbox.RoleAdmin}
	_, secret, err := c.access.CreateKey(ctx, operator, sandbox.Key{Name: "busy", User: "busy",
		Role: sandbox.RoleAgent, Limits: sandbox.KeyLimits{CPUSeconds: 1}})
	if err != nil {
		t.Fatal(err)
	}
	busy := client{server: c.server, secret: secret}
	useCPU := map[string]any{"code": "import time\nwhile time.process_time() < 1.2: pass"}
	begun := func() int {
		done.mu.Lock()
		defer done.mu.Unlock()
		return len(done.list)
	}
	recordings := 0
	for hour := 0; hour < days*24; hour += stepHours {
		anna, root := token("anna"), token("root")
		session := c.as(t, c.signIn(t, "anna"))
		key, keyID := session.newKey(t, map[string]any{"name": "daily", "role": "developer"})
		idle := anna.create(t, map[string]any{"idle_timeout": 3600})
		recorded := anna.do(t, "POST", "/sandbox/"+idle+"/debug", map[string]any{"code": "x = 1\ny = x + 1"})
		if recorded.status != http.StatusOK {
			t.Fatalf("hour %d: got HTTP %d %s, want a recording", hour, recorded.status, recorded.text)
		}
		recordings++
		if hour%24 == 0 { // every day has its CPU time
			busy.ok(t, "POST", "/sandbox/agent/quick-execute", useCPU)
			a := busy.do(t, "POST", "/sandbox/agent/quick-execute", useCPU)
			wantProblem(t, a, http.StatusTooManyRequests, "limit-reached", "CPU time per day")
		}
		before := begun()
		eventually(t, "the load to go on", func() bool { return begun() >= before+4 })

		clock.move(stepHours * time.Hour)
		if hour%24 == 0 {
			c.provider.Rotate()
		}
		wantProblem(t, anna.do(t, "GET", "/me", nil), http.StatusUnauthorized, "unauthorized")
		session.ok(t, "GET", "/me", nil) // 6 of its 8 hours
		key.ok(t, "GET", "/me", nil)
		eventually(t, "the idle sandbox to expire", func() bool {
			return token("anna").do(t, "GET", "/sandbox/"+idle+"/status", nil).status == http.StatusGone
		})
		clock.move(2*time.Hour + time.Minute)
		wantProblem(t, session.do(t, "GET", "/me", nil), http.StatusUnauthorized, "unauthorized", "expired")
		wantProblem(t, key.do(t, "GET", "/me", nil), http.StatusUnauthorized, "unauthorized", "expired")
		if token("root").keyOf(t, keyID) == nil {
			t.Error("a key is not listed any more right after it has expired")
		}
		wantProblem(t, root.do(t, "GET", "/me", nil), http.StatusUnauthorized, "unauthorized")
		hour += 2
		if err := errors.Join(c.records.ApplyRetention(ctx), c.records.Sweep(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	users.Wait()
	if err := errors.Join(c.records.ApplyRetention(ctx), c.records.Sweep(ctx)); err != nil {
		t.Fatal(err)
	}

	// Exactly the executions of the last three days are left, with the files of the last two.
	now := clock.now()
	admin := token("root")
	left := maps.Collect(admin.allExecutions(t))
	kept, gone := 0, 0
	for id, began := range done.list {
		switch age := now.Sub(began); {
		case age < 3*24*time.Hour-time.Minute && !left[id]:
			t.Errorf("execution %s is gone after %s, want it kept for three days", id, age)
		case age > 3*24*time.Hour+time.Minute && left[id]:
			t.Errorf("execution %s is still there after %s", id, age)
		case left[id]:
			kept++
		default:
			gone++
		}
	}
	counts, err := history.Verify(ctx, history.VerifyConfig{URL: historyURL, Blobs: blobs, ReadRecording: readRecording,
		Report: func(problem string) { t.Error(problem) }})
	if err != nil {
		t.Fatal(err)
	}
	if kept == 0 || gone == 0 || counts.Artifacts == 0 || counts.Artifacts >= kept ||
		counts.Recordings == 0 || counts.Recordings >= recordings {
		t.Errorf("got %d executions kept and %d gone, and %+v of %d recordings, want some of each, and fewer files "+
			"than executions", kept, gone, counts, recordings)
	}
	t.Logf("%d days in %.0f s: %d executions, of which %d are left; %+v", days, time.Since(start).Seconds(),
		len(done.list), kept, counts)
}

// readRecording reads every line of a recording.
func readRecording(code string, chunks []sandbox.Chunk, load func(sequence int) ([]byte, error)) error {
	recorded, err := debugger.OpenRecording(code, chunks, load)
	if err == nil {
		_, err = recorded.Lines(1, recorded.Steps())
	}
	return err
}

// allExecutions returns the ids of all executions that the client sees.
func (c client) allExecutions(t *testing.T) func(yield func(string, bool) bool) {
	return func(yield func(string, bool) bool) {
		for after := ""; ; {
			a := c.ok(t, "GET", "/executions?limit=100"+after, nil)
			list, _ := a.get("executions").([]any)
			for _, e := range list {
				if !yield(fmt.Sprint(e.(map[string]any)["execution_id"]), true) {
					return
				}
			}
			next, _ := a.get("next").(string)
			if next == "" {
				return
			}
			after = "&after=" + next
		}
	}
}
