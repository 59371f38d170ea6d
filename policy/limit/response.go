package limit

import "sync"

// Responses counts, for each key, the bytes of responses that are written but not yet read.
// A response takes memory until its client has read it.
type Responses struct {
	maxBytes int

	mu     sync.Mutex
	unread map[string]int
}

// NewResponses returns a counter that reports a key as full above maxBytes.
func NewResponses(maxBytes int) *Responses {
	return &Responses{maxBytes: maxBytes, unread: map[string]int{}}
}

// Add counts n bytes as unread until the returned function is called, once.
func (r *Responses) Add(key string, n int) (done func()) {
	r.count(key, n)
	return func() { r.count(key, -n) }
}

func (r *Responses) count(key string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unread[key] += n; r.unread[key] == 0 {
		delete(r.unread, key)
	}
}

// Full reports whether key has more than the limit of unread bytes.
func (r *Responses) Full(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unread[key] > r.maxBytes
}
