package simcloud

import (
	"cmp"
	"path"
	"slices"
	"sync"
	"time"
)

// Call is one call of the API. The log does not have the calls of the control API.
type Call struct {
	// ID counts from 1 in the order in which the calls arrived.
	ID     int64     `json:"id"`
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
	Kind   string    `json:"kind"`
	Op     string    `json:"op"`
	// Name and Object are the object's name and ID, if they are known. A failed create has no Object.
	Name   string `json:"name,omitempty"`
	Object string `json:"object,omitempty"`
	// Status is the HTTP status; 0 while the call is running, and if the connection was closed without an answer.
	Status int `json:"status"`
	// Effect is true if the call changed something, even if its answer was an error.
	Effect bool `json:"effect,omitempty"`
	// Done is false while the call is running.
	Done bool `json:"done"`
	// RequestID is the caller's X-Request-Id, ClientToken its Client-Token.
	RequestID   string `json:"requestID,omitempty"`
	ClientToken string `json:"clientToken,omitempty"`
	// Region is the region in the request.
	Region string `json:"region,omitempty"`
	// Module is the Terraform module of the call, from the provider's meta-configuration.
	Module string `json:"module,omitempty"`
	// Batch is the number of the call's batch, from 1; 0 means that the call was not in a batch.
	Batch int64 `json:"batch,omitempty"`
	// Fault is the ID of the fault that affected the call; 0 means none.
	Fault    int64    `json:"fault,omitempty"`
	Error    string   `json:"error,omitempty"`
	Duration Duration `json:"duration"`
}

// End is the time of the answer.
func (c Call) End() time.Time { return c.Time.Add(time.Duration(c.Duration)) }

// Filter selects calls. The zero value selects all.
type Filter struct {
	// Kind, Op and Method select equal values; empty selects all.
	Kind, Op, Method string
	// Name is a pattern as in path.Match.
	Name string
	// Object is the object's ID.
	Object string
	// Status is an HTTP status; -1 selects calls without an answer.
	Status int
	// Effect selects calls that changed something.
	Effect bool
	// Pending selects running calls.
	Pending bool
	// Since selects calls with a greater ID.
	Since int64
	// RequestID selects an equal value; empty selects all.
	RequestID string
}

// Match reports whether the filter selects a call.
func (f Filter) Match(c *Call) bool {
	return (f.Kind == "" || f.Kind == c.Kind) && (f.Op == "" || f.Op == c.Op) && (f.Method == "" || f.Method == c.Method) &&
		matchName(f.Name, c.Name) && (f.Object == "" || f.Object == c.Object) &&
		(f.Status == 0 || f.Status == c.Status || f.Status == -1 && c.Status == 0) &&
		(!f.Effect || c.Effect) && (!f.Pending || !c.Done) && c.ID > f.Since &&
		(f.RequestID == "" || f.RequestID == c.RequestID)
}

func matchName(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// Count is the number of calls of a kind and an operation with a status.
type Count struct {
	Kind   string `json:"kind"`
	Op     string `json:"op"`
	Status int    `json:"status"`
	Calls  int64  `json:"calls"`
}

// Stats counts all calls since the start or the last reset, including those that the log has dropped.
type Stats struct {
	Calls int64 `json:"calls"`
	// InFlight is the number of running calls, and MaxInFlight the maximum so far.
	InFlight    int     `json:"inFlight"`
	MaxInFlight int     `json:"maxInFlight"`
	Counts      []Count `json:"counts"`
	// Batches is the number of batches. The numbers above include their calls.
	Batches int64 `json:"batches"`
	// Objects is the number of objects, by kind.
	Objects map[string]int `json:"objects"`
}

// callLog keeps the last calls and counts all of them.
type callLog struct {
	mu     sync.Mutex
	calls  []*Call // a ring after it has max entries
	max    int
	last   int64
	counts map[Count]int64 // the keys have Calls 0
	now    int
	most   int
}

func newCallLog(size int) *callLog { return &callLog{max: size, counts: map[Count]int64{}} }

// begin logs the start of a call.
func (l *callLog) begin(c Call) *Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	c.ID, c.Time = l.last, time.Now()
	l.now++
	l.most = max(l.most, l.now)
	p := &c
	if len(l.calls) < l.max {
		l.calls = append(l.calls, p)
	} else {
		l.calls[int((c.ID-1)%int64(l.max))] = p
	}
	return p
}

// end logs the outcome of a call.
func (l *callLog) end(c *Call, result Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	result.ID, result.Time, result.Done = c.ID, c.Time, true
	result.Duration = Duration(time.Since(c.Time))
	*c = result
	l.now--
	l.counts[Count{Kind: c.Kind, Op: c.Op, Status: c.Status}]++
}

// reset removes all calls. IDs continue, so that a reader's Since stays valid.
func (l *callLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The ID is the index in the ring, so empty entries take the place of removed calls.
	for i := range l.calls {
		l.calls[i] = nil
	}
	clear(l.counts)
	l.most = l.now
}

// find returns the selected calls, oldest first: the last limit of them, or all if limit is 0. total is the number of
// all selected calls.
func (l *callLog) find(f Filter, limit int) (calls []Call, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls = []Call{}
	for _, c := range l.calls {
		if c != nil && f.Match(c) {
			calls = append(calls, *c)
		}
	}
	slices.SortFunc(calls, func(a, b Call) int { return cmp.Compare(a.ID, b.ID) })
	total = len(calls)
	if limit > 0 && total > limit {
		calls = calls[total-limit:]
	}
	return calls, total
}

func (l *callLog) stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{InFlight: l.now, MaxInFlight: l.most, Counts: []Count{}}
	for c, n := range l.counts {
		c.Calls = n
		s.Calls += n
		s.Counts = append(s.Counts, c)
	}
	slices.SortFunc(s.Counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Status, b.Status))
	})
	return s
}
