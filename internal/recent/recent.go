// Package recent caches a few values for a short time. It imports only the standard library.
package recent

import (
	"sync"
	"time"
)

// Map is a cache of values, which may be secrets. It drops all of them at once after a time, also if nobody calls it.
// It is safe for concurrent use. A nil Map has no values and drops new ones.
type Map[K comparable, V any] struct {
	limit int
	keep  time.Duration

	mu     sync.Mutex
	values map[K]V
}

// New returns an empty cache of at most limit values, which keeps each for at most the given time.
func New[K comparable, V any](limit int, keep time.Duration) *Map[K, V] {
	return &Map[K, V]{limit: limit, keep: keep, values: map[K]V{}}
}

// Get returns the value of a key. ok is false if the cache does not have it.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	if m == nil {
		return value, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok = m.values[key]
	return value, ok
}

// Put adds a value, unless the cache is full.
func (m *Map[K, V]) Put(key K, value V) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch len(m.values) {
	case 0:
		time.AfterFunc(m.keep, m.Clear)
	case m.limit:
		return
	}
	m.values[key] = value
}

// Delete removes the value of a key.
func (m *Map[K, V]) Delete(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
}

// Clear removes all values.
func (m *Map[K, V]) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.values)
}

// Len returns the number of values.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.values)
}
