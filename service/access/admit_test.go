package access_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// unreadWriter is a response whose client reads nothing until release is closed.
type unreadWriter struct {
	*httptest.ResponseRecorder
	begun, release chan struct{}
}

func (w unreadWriter) Write(b []byte) (int, error) {
	select {
	case w.begun <- struct{}{}:
	default:
	}
	<-w.release
	return len(b), nil
}

// A user who does not read large answers gets no other answer until they are read. Other users do.
func TestUnreadAnswersAreLimited(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *access.Config) { c.Unread = limit.NewResponses(1 << 20) })
	secrets := map[string]string{
		"ada": s.newKey(t, "ada", sandbox.KeyLimits{}), "grace": s.newKey(t, "grace", sandbox.KeyLimits{}),
	}
	hold := func(user string, answer any) http.Handler {
		return limit.StallTimeout(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _, end, err := s.Admit(r.Context(), secrets[user])
			if err != nil {
				w.WriteHeader(sandbox.FaultStatus[sandbox.FaultOf(err)])
				return
			}
			defer end()
			_ = json.NewEncoder(w).Encode(answer)
		}), limit.DefaultStallTimeout)
	}
	status := func(user string) int {
		w := httptest.NewRecorder()
		hold(user, "small").ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		return w.Code
	}
	w := unreadWriter{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{})}
	answered := make(chan struct{})
	go func() {
		hold("ada", strings.Repeat("x", 2<<20)).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		close(answered)
	}()
	<-w.begun
	if got := status("ada"); got != http.StatusTooManyRequests {
		t.Errorf("with 2 of 1 MiB unread: got HTTP %d, want %d", got, http.StatusTooManyRequests)
	}
	if got := status("grace"); got != http.StatusOK {
		t.Errorf("another user: got HTTP %d, want %d", got, http.StatusOK)
	}
	close(w.release)
	<-answered
	if got := status("ada"); got != http.StatusOK {
		t.Errorf("after reading: got HTTP %d, want %d", got, http.StatusOK)
	}
}

// All requests of a key count, those with a secret and those on a connection that is open, and each caller reads how
// many are left. A request beyond the limit holds no connection.
func TestRequestsOfAKeyAreLimited(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *access.Config) { c.Connections = limit.NewConnections(5, nil) })
	secret := s.newKey(t, "ada", sandbox.KeyLimits{Requests: 3})
	_, caller, end, err := s.Admit(t.Context(), secret)
	if err != nil || caller.Key.User != "ada" || caller.Rate.Limit != 3 || caller.Rate.Remaining != 2 {
		t.Fatalf("got %+v, %v; want ada with 2 of 3 requests left", caller, err)
	}
	end()
	if _, err := s.AdmitClient(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := s.Count(caller.Key); err != nil {
		t.Fatal(err)
	}
	for range 10 { // more than the connections
		_, caller, _, err = s.Admit(t.Context(), secret)
		isFault(t, err, sandbox.FaultLimit)
		if caller.Rate.Limit != 3 || caller.Rate.Remaining != 0 {
			t.Errorf("got the state %+v of a refused request, want none of 3 left", caller.Rate)
		}
	}
	_, err = s.AdmitClient(t.Context(), secret)
	isFault(t, err, sandbox.FaultLimit)
	s.clock.move(time.Minute)
	if _, _, end, err = s.Admit(t.Context(), secret); err != nil {
		t.Fatalf("after a minute: got %v, want the request to be admitted", err)
	}
	end()
}

// The requests of a user hold a part of the connections. Others get the rest, and a request that has ended holds none.
func TestRequestsOfAUserHoldConnections(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *access.Config) { c.Connections = limit.NewConnections(10, nil) })
	ada, grace := s.newKey(t, "ada", sandbox.KeyLimits{}), s.newKey(t, "grace", sandbox.KeyLimits{})
	var ends []func()
	var err error
	for err == nil && len(ends) < 10 {
		var end func()
		if _, _, end, err = s.Admit(t.Context(), ada); err == nil {
			ends = append(ends, end)
		}
	}
	isFault(t, err, sandbox.FaultLimit)
	_, _, end, err := s.Admit(t.Context(), grace)
	if err != nil {
		t.Fatalf("another user: got %v, want the request to be admitted", err)
	}
	end()
	_, _, err = s.AdmitUser(t.Context(), "ada") // without a key, as for a signed URL
	isFault(t, err, sandbox.FaultLimit)
	for _, end := range ends {
		end()
	}
	if _, _, end, err = s.Admit(t.Context(), ada); err != nil {
		t.Fatalf("after the requests have ended: got %v, want it admitted", err)
	}
	end()
}

// Large bodies count once, however they arrive: with a request, or in a message on a connection that is open.
func TestLargeBodiesOfAUserCountTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		defer s.Close()
		secret := s.newKey(t, "ada", sandbox.KeyLimits{})
		large := make([]byte, 1<<20)
		read := func(ctx context.Context) error {
			_, err := io.ReadAll(access.BodyReader(ctx, bytes.NewReader(large)))
			return err
		}
		const most = 8
		for n := range most {
			ctx, _, end, err := s.Admit(t.Context(), secret)
			if n%2 == 1 {
				end()
				ctx, end = s.BeginBody(t.Context(), "ada")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			if err := read(ctx); err != nil {
				t.Fatalf("body %d: %v", n+1, err)
			}
		}
		ctx, _, end, err := s.Admit(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		isFault(t, read(ctx), sandbox.FaultLimit) // after it has waited
		ctx, end = s.BeginBody(t.Context(), "grace")
		defer end()
		if err := read(ctx); err != nil {
			t.Errorf("another user: %v", err)
		}
	})
}

// A request whose key is revoked ends, and says why. Its context ends for no other reason before the request does.
func TestRequestEndsWhenItsKeyIsRevoked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		defer s.Close()
		secret := s.newKey(t, "ada", sandbox.KeyLimits{})
		ctx, caller, end, err := s.Admit(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		s.memory.fail(&sandbox.Error{Fault: sandbox.FaultUnavailable})
		s.clock.move(time.Hour) // no cached key is used any more
		time.Sleep(time.Minute)
		if ctx.Err() != nil || access.LostKey(ctx) != nil {
			t.Errorf("while history is unavailable: got %v, want the request to go on", context.Cause(ctx))
		}
		s.memory.fail(nil)
		admin := sandbox.Key{User: "root", Role: sandbox.RoleAdmin}
		if _, err := s.RevokeKey(t.Context(), admin, caller.Key.ID, false); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Fatal("a minute after the revocation: the request goes on")
		}
		isFault(t, access.LostKey(ctx), sandbox.FaultUnauthorized)
		_, _, _, err = s.Admit(t.Context(), secret)
		isFault(t, err, sandbox.FaultUnauthorized)
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := access.LostKey(ended); err != nil {
		t.Errorf("a request that the client has left: got %v, want no lost key", err)
	}
}

// While history is unavailable, a key that was used lately works for some seconds, and no other.
func TestKeysWorkForSecondsWithoutHistory(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret := s.newKey(t, "ada", sandbox.KeyLimits{})
	if _, err := s.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	s.memory.fail(&sandbox.Error{Fault: sandbox.FaultUnavailable})
	s.clock.move(4 * time.Second)
	if key, err := s.Authenticate(t.Context(), secret); err != nil || key.User != "ada" {
		t.Errorf("cached key after 4 s: got %+v, error %v; want the key", key, err)
	}
	s.clock.move(2 * time.Second)
	_, err := s.Authenticate(t.Context(), secret)
	isFault(t, err, sandbox.FaultUnavailable)
	_, err = s.Authenticate(t.Context(), "gh_unknown")
	isFault(t, err, sandbox.FaultUnavailable)
}

// The audit log has a view of another user's object before the caller gets it, and one entry for many views.
func TestViewsOfOthersAreAudited(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin := sandbox.Key{ID: "a", User: "root", Role: sandbox.RoleAdmin}
	for range 3 {
		if err := errors.Join(s.AuditView(t.Context(), admin, "execution/1", "ada"),
			s.AuditView(t.Context(), admin, "execution/2", "root")); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.memory.audit) != 1 || s.memory.audit[0].Object != "execution/1" || s.memory.audit[0].Owner != "ada" {
		t.Errorf("got %+v, want one view of ada's execution", s.memory.audit)
	}
	s.clock.move(11 * time.Minute)
	s.memory.fail(errors.New("full"))
	if err := s.AuditView(t.Context(), admin, "execution/1", "ada"); err == nil {
		t.Error("got a view that is not on record, want an error")
	}
}
