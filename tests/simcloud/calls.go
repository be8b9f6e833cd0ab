package simcloud

import (
	"cmp"
	"path"
	"slices"
	"sync"
	"time"
)

// Call is one call of the API. The control API's own calls are not logged.
type Call struct {
	// ID counts from 1 in the order in which calls came in.
	ID     int64     `json:"id"`
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
	Kind   string    `json:"kind"`
	Op     string    `json:"op"`
	// Name and Object (its id) as far as they are known; a create that failed has no Object.
	Name   string `json:"name,omitempty"`
	Object string `json:"object,omitempty"`
	// Status is the HTTP status; 0 while the call is under way and when the connection was closed without an answer.
	Status int `json:"status"`
	// Effect is true when the call changed something, whatever it was answered.
	Effect bool `json:"effect,omitempty"`
	// Done is false while the call is under way.
	Done bool `json:"done"`
	// RequestID is the caller's X-Request-Id, ClientToken its Client-Token.
	RequestID   string `json:"requestID,omitempty"`
	ClientToken string `json:"clientToken,omitempty"`
	// Region that the caller asked for.
	Region string `json:"region,omitempty"`
	// Module that the call was made for, from the provider's meta-configuration.
	Module string `json:"module,omitempty"`
	// Batch is the number of the batch that the call came in, from 1; 0 means that it came alone.
	Batch int64 `json:"batch,omitempty"`
	// Fault is the id of the fault that struck; 0 means none.
	Fault    int64    `json:"fault,omitempty"`
	Error    string   `json:"error,omitempty"`
	Duration Duration `json:"duration"`
}

// End is when the call was answered.
func (c Call) End() time.Time { return c.Time.Add(time.Duration(c.Duration)) }

// Filter picks calls; the zero value picks all.
type Filter struct {
	// Kind, Op and Method must be equal when they are set.
	Kind, Op, Method string
	// Name is a pattern as in path.Match.
	Name string
	// Object is the object's id.
	Object string
	// Status is an HTTP status; -1 picks calls that were not answered (closed or under way).
	Status int
	// Effect picks calls that changed something.
	Effect bool
	// Pending picks calls that are under way.
	Pending bool
	// Since picks calls with a greater ID.
	Since int64
	// RequestID must be equal when it is set.
	RequestID string
}

// Match says whether the filter picks a call.
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

// Count is how many calls of a kind and operation were answered with a status.
type Count struct {
	Kind   string `json:"kind"`
	Op     string `json:"op"`
	Status int    `json:"status"`
	Calls  int64  `json:"calls"`
}

// Stats sum up every call since the start or the last reset, those too that the log no longer holds.
type Stats struct {
	Calls int64 `json:"calls"`
	// InFlight is how many are under way now; MaxInFlight how many there ever were at once.
	InFlight    int     `json:"inFlight"`
	MaxInFlight int     `json:"maxInFlight"`
	Counts      []Count `json:"counts"`
	// Batches is how many batches came in; their calls count in the numbers above.
	Batches int64 `json:"batches"`
	// Objects that exist, by kind.
	Objects map[string]int `json:"objects"`
}

// callLog keeps the last calls and counts all.
type callLog struct {
	mu     sync.Mutex
	calls  []*Call // a ring once it has max entries
	max    int
	last   int64
	counts map[Count]int64 // keyed with Calls 0
	now    int
	most   int
}

func newCallLog(size int) *callLog { return &callLog{max: size, counts: map[Count]int64{}} }

// begin logs a call that came in.
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

// end logs how it went out.
func (l *callLog) end(c *Call, result Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	result.ID, result.Time, result.Done = c.ID, c.Time, true
	result.Duration = Duration(time.Since(c.Time))
	*c = result
	l.now--
	l.counts[Count{Kind: c.Kind, Op: c.Op, Status: c.Status}]++
}

// reset forgets; ids go on, so that a reader's Since stays true.
func (l *callLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The ring is indexed by id, so empty slots stand for what was forgotten.
	for i := range l.calls {
		l.calls[i] = nil
	}
	clear(l.counts)
	l.most = l.now
}

// find tells the calls that a filter picks, oldest first: the last limit of them, or all when limit is 0. total counts all.
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
