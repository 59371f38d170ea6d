package limit

import "sync"

// Results counts the bytes of results of statements that the service holds in memory, for each user: messages of the
// database that have not been encoded, and answers that have not been written.
type Results struct {
	max int

	mu   sync.Mutex
	held map[string]int
}

// NewResults returns a counter that holds at most maxBytes for each user.
func NewResults(maxBytes int) *Results { return &Results{max: maxBytes, held: map[string]int{}} }

// Max returns the number of bytes that are held for a user at most.
func (r *Results) Max() int { return r.max }

// Open returns what one statement of a user holds: nothing yet. Close it. The nil Results has no limit.
func (r *Results) Open(user string) *Held { return &Held{results: r, user: user} }

// Held is what one statement holds in memory. It may be used by several goroutines.
type Held struct {
	results *Results
	user    string
	bytes   int // guarded by results.mu
}

// Add counts n more bytes; n may be negative. It returns ErrFull, and counts nothing, if the user would hold more than
// the limit.
func (h *Held) Add(n int) error {
	if h.results == nil {
		return nil
	}
	r := h.results
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > 0 && r.held[h.user]+n > r.max {
		return ErrFull
	}
	h.bytes += n
	if r.held[h.user] += n; r.held[h.user] == 0 {
		delete(r.held, h.user)
	}
	return nil
}

// Close counts the bytes no more. It may be called again.
func (h *Held) Close() {
	if h.results == nil {
		return
	}
	h.results.mu.Lock()
	n := h.bytes
	h.results.mu.Unlock()
	_ = h.Add(-n) // less always fits
}
