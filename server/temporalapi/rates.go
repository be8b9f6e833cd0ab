package temporalapi

import (
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// This file limits how often one namespace makes Temporal write: all namespaces share a shard, which writes one after
// the other.

const (
	// commandRate is the number of commands of workflows in a second. The burst is maxCommands, so that each workflow
	// task can succeed.
	commandRate = 200
	// resetEvery is the time between two resets of runs, and resetBurst the number of resets without that time.
	resetEvery = 5 * time.Second
	resetBurst = 5
	// forgetEvery is the interval at which limiters of idle namespaces are forgotten.
	forgetEvery = time.Minute
)

// rates limits the rate of each namespace.
type rates struct {
	limit rate.Limit
	burst int

	mu       sync.Mutex
	of       map[string]*rate.Limiter
	forgotAt time.Time
}

func newRates(limit rate.Limit, burst int) *rates {
	return &rates{limit: limit, burst: burst, of: map[string]*rate.Limiter{}}
}

// allow reports whether a namespace may do a number of things now. If so, it counts them.
func (r *rates) allow(namespace string, number int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.forgotAt) >= forgetEvery {
		r.forgotAt = now
		for name, limiter := range r.of {
			if limiter.TokensAt(now) >= float64(r.burst) { // a new limiter is equal
				delete(r.of, name)
			}
		}
	}
	if r.of[namespace] == nil {
		r.of[namespace] = rate.NewLimiter(r.limit, r.burst)
	}
	return r.of[namespace].AllowN(now, number)
}

// checkCommands returns an error if a request has more commands than its namespace may send now.
func (s *Service) checkCommands(namespace string, message any) error {
	n := commandsOf(message)
	if n == 0 || s.commands.allow(namespace, n, time.Now()) {
		return nil
	}
	return status.Errorf(codes.ResourceExhausted,
		"the request has %d commands for workflows, which is too much now: namespace %q may send %d at once, and then %d in a second; try again later, and start fewer timers, activities or children",
		n, namespace, maxCommands, commandRate)
}

// commandsOf returns the number of commands of a request. A start and a signal count as one, because Temporal writes as
// much for them.
func commandsOf(message any) int {
	switch m := message.(type) {
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		return len(m.GetCommands())
	case *workflowservice.StartWorkflowExecutionRequest, *workflowservice.SignalWithStartWorkflowExecutionRequest,
		*workflowservice.ExecuteMultiOperationRequest, *workflowservice.SignalWorkflowExecutionRequest:
		return 1
	}
	return 0
}
