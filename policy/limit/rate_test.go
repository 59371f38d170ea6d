package limit_test

import (
	"testing"
	"time"

	"glasshouse/policy/limit"
)

func TestRatesRefillSteadilyUpToOneMinute(t *testing.T) {
	t.Parallel()
	var rates limit.Rates
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		wait time.Duration
		want int
	}{{0, 60}, {0, 0}, {time.Second, 1}, {10 * time.Second, 10}, {time.Hour, 60}} {
		now = now.Add(c.wait)
		allowed := 0
		for {
			state, ok := rates.Take("a", 60, now)
			if !ok {
				if state.RetryAfter <= 0 || state.RetryAfter > time.Second {
					t.Errorf("got RetryAfter %s, want at most 1s", state.RetryAfter)
				}
				break
			}
			allowed++
		}
		if allowed != c.want {
			t.Errorf("after %s: got %d requests, want %d", c.wait, allowed, c.want)
		}
	}
}

func TestRatesRefillAtAChangedLimit(t *testing.T) {
	t.Parallel()
	var rates limit.Rates
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	rates.Take("a", 60, now)
	for range 6 {
		rates.Take("a", 6, now)
	}
	now = now.Add(10 * time.Second)
	_, first := rates.Take("a", 6, now)
	_, second := rates.Take("a", 6, now)
	if !first || second {
		t.Errorf("10s later at 6 a minute: got %t and %t, want one request", first, second)
	}
}

func TestRatesReportRemainingRequests(t *testing.T) {
	t.Parallel()
	var rates limit.Rates
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		key       string
		perMinute int
		want      limit.RateState
	}{
		{"a", 30, limit.RateState{Limit: 30, Remaining: 29, Reset: 2 * time.Second}},
		{"a", 30, limit.RateState{Limit: 30, Remaining: 28, Reset: 4 * time.Second}},
		{"b", 30, limit.RateState{Limit: 30, Remaining: 29, Reset: 2 * time.Second}},
		{"a", 6, limit.RateState{Limit: 6, Remaining: 5, Reset: 10 * time.Second}}, // a smaller limit applies immediately
		{"a", 0, limit.RateState{}},
	} {
		if got, ok := rates.Take(c.key, c.perMinute, now); !ok || got != c.want {
			t.Errorf("key %s at %d a minute: got %+v (%t), want %+v", c.key, c.perMinute, got, ok, c.want)
		}
	}
}

func TestResponsesCountUnreadBytes(t *testing.T) {
	t.Parallel()
	responses := limit.NewResponses(100)
	first, second := responses.Add("a", 60), responses.Add("a", 41)
	if !responses.Full("a") || responses.Full("b") {
		t.Errorf("with 101 of 100 bytes: got full a=%t b=%t, want a only", responses.Full("a"), responses.Full("b"))
	}
	first()
	if responses.Full("a") {
		t.Error("with 41 of 100 bytes: got full, want not full")
	}
	second()
}
