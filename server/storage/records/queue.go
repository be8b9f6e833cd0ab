package records

import (
	"context"

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
	// done is closed when the result is set.
	done chan struct{}
	result
}

// result is the result of a request.
type result struct {
	revisions []int64
	err       error
}

// Size implements fair.Queued.
func (r *request) Size() (writes, bytes int) {
	for _, w := range r.writes {
		bytes += len(w.Value)
	}
	return len(r.writes), bytes
}

// end sets the error of the request's transaction and wakes its caller.
func (r *request) end(err error) {
	if err != nil {
		r.result = result{err: err}
	}
	close(r.done)
}

// ended reports whether the caller no longer waits.
func (r *request) ended() bool { return r.ctx.Err() != nil }
