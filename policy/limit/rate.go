package limit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rates holds one token bucket for each key. A bucket holds a minute's worth of requests and
// refills steadily. The zero value is ready to use.
type Rates struct {
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

// RateState describes a key's bucket after a request.
type RateState struct {
	Limit      int           // requests per minute; 0 means no limit
	Remaining  int           // requests that the key may make now
	Reset      time.Duration // until the bucket is full again
	RetryAfter time.Duration // until the next request is allowed; 0 if this one was
}

// Take counts one request of key at the time now, and reports whether the key may make it.
// perMinute may change between calls; a perMinute of 0 allows every request.
func (r *Rates) Take(key string, perMinute int, now time.Time) (RateState, bool) {
	if perMinute <= 0 {
		return RateState{}, true
	}
	perSecond := float64(perMinute) / 60
	r.mu.Lock()
	defer r.mu.Unlock()
	bucket := r.buckets[key]
	if bucket == nil {
		if r.buckets == nil {
			r.buckets = map[string]*rate.Limiter{}
		}
		bucket = rate.NewLimiter(rate.Limit(perSecond), perMinute)
		r.buckets[key] = bucket
	} else if bucket.Burst() != perMinute {
		bucket.SetLimitAt(now, rate.Limit(perSecond))
		bucket.SetBurstAt(now, perMinute)
	}
	allowed := bucket.AllowN(now, 1)
	tokens := bucket.TokensAt(now)
	state := RateState{Limit: perMinute, Remaining: max(int(tokens), 0), Reset: timeFor(float64(perMinute)-tokens,
		perSecond)}
	if !allowed {
		state.RetryAfter = timeFor(1-tokens, perSecond)
	}
	return state, allowed
}

func timeFor(tokens, perSecond float64) time.Duration {
	return time.Duration(tokens / perSecond * float64(time.Second))
}
