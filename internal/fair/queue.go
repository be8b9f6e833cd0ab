package fair

import (
	"errors"
	"sync"
)

// Queued is a request in a Queue.
type Queued interface {
	// Size returns the number of writes of the request, and their size in bytes.
	Size() (writes, bytes int)
}

// Queue holds the requests that wait for a transaction. It serves keys in turn, so a key with a thousand requests does
// not delay one with a single request.
type Queue[R Queued] struct {
	// maxWrites and maxBytes limit the writes of one transaction. A single request may exceed them.
	maxWrites, maxBytes int

	mu sync.Mutex
	// waiting holds the requests of each key, oldest first. A key without requests has no entry.
	waiting map[string][]R
	// turns are the keys with requests; the first one is next.
	turns  []string
	closed bool
	// filled signals that the queue has requests or is closed.
	filled chan struct{}
}

// NewQueue returns an empty queue, whose transactions have up to maxWrites writes of maxBytes bytes together.
func NewQueue[R Queued](maxWrites, maxBytes int) *Queue[R] {
	return &Queue[R]{maxWrites: maxWrites, maxBytes: maxBytes, waiting: map[string][]R{},
		filled: make(chan struct{}, 1)}
}

func (q *Queue[R]) signal() {
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// Add appends a request of a key. It returns false if the queue is closed.
func (q *Queue[R]) Add(key string, r R) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if len(q.waiting[key]) == 0 {
		q.turns = append(q.turns, key)
	}
	q.waiting[key] = append(q.waiting[key], r)
	q.signal()
	return true
}

// Len returns the number of waiting requests.
func (q *Queue[R]) Len() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, waiting := range q.waiting {
		n += len(waiting)
	}
	return n
}

// Close ends the queue once it is empty.
func (q *Queue[R]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// Next waits for requests, and returns those of the next transaction. It returns nil after the last request of a closed
// queue.
func (q *Queue[R]) Next() []R {
	for {
		group, closed := q.take()
		if len(group) > 0 || closed {
			return group
		}
		<-q.filled
	}
}

// take removes the requests of the next transaction: one of each key in turn, until the transaction is full.
func (q *Queue[R]) take() (group []R, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for writes, bytes := 0, 0; len(q.turns) > 0; {
		key := q.turns[0]
		first := q.waiting[key][0]
		w, b := first.Size()
		writes, bytes = writes+w, bytes+b
		if len(group) > 0 && (writes > q.maxWrites || bytes > q.maxBytes) {
			break
		}
		q.pop(key)
		group = append(group, first)
	}
	return group, q.closed
}

// Commit writes a group in one transaction, and ends each request with the result. If the database refuses the group,
// each request gets a transaction of its own, so that one bad request does not fail the others. transact returns an
// error if nothing was written, or an error that wraps uncertain if that is unknown.
func Commit[R Queued](group []R, transact func([]R) error, uncertain error, end func(R, error)) {
	err := transact(group)
	if err != nil && len(group) > 1 && !errors.Is(err, uncertain) {
		for i := range group {
			Commit(group[i:i+1], transact, uncertain, end)
		}
		return
	}
	for _, r := range group {
		end(r, err)
	}
}

// pop removes the first request of the first key, whose next turn comes after those of the others.
func (q *Queue[R]) pop(key string) {
	q.turns = q.turns[1:]
	waiting := q.waiting[key]
	waiting[0] = *new(R)
	if waiting = waiting[1:]; len(waiting) == 0 {
		delete(q.waiting, key)
		return
	}
	q.waiting[key] = waiting
	q.turns = append(q.turns, key)
}
