package compat_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/compat"
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
	c := compat.Config{Unread: limit.NewResponses(1 << 20)}
	hold := func(user string, answer any) http.Handler {
		return limit.StallTimeout(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			release, err := c.Hold(r.Context(), user)
			if err != nil {
				w.WriteHeader(sandbox.FaultStatus[sandbox.FaultOf(err)])
				return
			}
			defer release()
			_ = compat.WriteJSON(w, http.StatusOK, answer)
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
