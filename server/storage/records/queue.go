package records

import (
	"context"
	"sync"

	"github.com/hykube/hykube/internal/ledger"
)

const (
	// maxGroupWrites and maxGroupBytes limit the writes of one transaction. A single request may exceed them.
	maxGroupWrites = 512
	maxGroupBytes  = 4 << 20
)

// request is the batch of one caller, which waits for its result.
type request struct {
	ctx    context.Context
	writes []ledger.Write
	done   chan result
}

// result is the result of a request.
type result struct {
	revisions []int64
	err       error
}

func (r *request) bytes() (n int) {
	for _, w := range r.writes {
		n += len(w.Value)
	}
	return n
}

// queue holds the requests that wait for a transaction. It serves namespaces in turn, so a namespace with a thousand
// requests does not delay one with a single request.
type queue struct {
	mu sync.Mutex
	// waiting holds the requests of each namespace, oldest first. A namespace without requests has no entry.
	waiting map[string][]*request
	// turns are the namespaces with requests; the first one is next.
	turns  []string
	closed bool
	// filled signals that the queue has requests or is closed.
	filled chan struct{}
}

func newQueue() *queue {
	return &queue{waiting: map[string][]*request{}, filled: make(chan struct{}, 1)}
}

func (q *queue) signal() {
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// add appends a request of a namespace. It returns false if the queue is closed.
func (q *queue) add(namespace string, r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if len(q.waiting[namespace]) == 0 {
		q.turns = append(q.turns, namespace)
	}
	q.waiting[namespace] = append(q.waiting[namespace], r)
	q.signal()
	return true
}

// close ends the queue once it is empty.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// next waits for requests, and returns those of the next transaction. It returns nil after the last request of a closed
// queue.
func (q *queue) next() []*request {
	for {
		group, closed := q.take()
		if len(group) > 0 || closed {
			return group
		}
		<-q.filled
	}
}

// take removes the requests of the next transaction: one of each namespace in turn, until the transaction is full.
func (q *queue) take() (group []*request, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for writes, bytes := 0, 0; len(q.turns) > 0; {
		namespace := q.turns[0]
		first := q.waiting[namespace][0]
		if err := first.ctx.Err(); err != nil {
			first.done <- result{err: err}
			q.pop(namespace)
			continue
		}
		writes, bytes = writes+len(first.writes), bytes+first.bytes()
		if len(group) > 0 && (writes > maxGroupWrites || bytes > maxGroupBytes) {
			break
		}
		q.pop(namespace)
		group = append(group, first)
	}
	return group, q.closed
}

// pop removes the first request of the first namespace, whose next turn comes after those of the others.
func (q *queue) pop(namespace string) {
	q.turns = q.turns[1:]
	rest := q.waiting[namespace][1:]
	if len(rest) == 0 {
		delete(q.waiting, namespace)
		return
	}
	q.waiting[namespace] = rest
	q.turns = append(q.turns, namespace)
}
