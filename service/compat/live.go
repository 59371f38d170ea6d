package compat

import (
	"maps"
	"sync"

	"glasshouse/service/live"
)

// Live has a value for each of some live sandboxes, and forgets the values of those that have ended. It is safe for
// concurrent use.
type Live[T any] struct {
	sandboxes *live.Service

	mu     sync.Mutex
	values map[string]T // by the sandbox's ID
}

// NewLive returns a Live without values.
func NewLive[T any](sandboxes *live.Service) *Live[T] {
	return &Live[T]{sandboxes: sandboxes, values: map[string]T{}}
}

// Put sets the value of a sandbox.
func (l *Live[T]) Put(id string, value T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(id, value)
}

func (l *Live[T]) put(id string, value T) {
	maps.DeleteFunc(l.values, func(other string, _ T) bool { return l.hasEnded(other) })
	l.values[id] = value
}

func (l *Live[T]) hasEnded(id string) bool {
	select {
	case <-l.sandboxes.Ended(id):
		return true
	default:
		return false
	}
}

// Get returns the value of a sandbox; ok is false if it has none, or has ended.
func (l *Live[T]) Get(id string) (value T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	value, ok = l.values[id]
	return value, ok && !l.hasEnded(id)
}

// GetOrPut returns the value of a sandbox. If it has none, value becomes its value.
func (l *Live[T]) GetOrPut(id string, value T) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.values[id]; ok {
		return old
	}
	l.put(id, value)
	return value
}

// All returns the values by the IDs of their sandboxes.
func (l *Live[T]) All() map[string]T {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := maps.Clone(l.values)
	maps.DeleteFunc(all, func(id string, _ T) bool { return l.hasEnded(id) })
	return all
}
