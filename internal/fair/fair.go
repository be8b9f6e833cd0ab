// Package fair shares a limited number of slots among keys, such as namespaces. It imports only the standard library.
package fair

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// freeFactor limits each key: a key that holds slots gets another one only while it holds less than freeFactor times
// the free slots. So a single key gets three quarters of the slots, and two keys get three sevenths each. Some slots
// stay free for keys that hold none, even if no other key ever releases a slot.
const freeFactor = 3

// Slots shares slots among keys. A free slot goes to the waiting key that holds the fewest slots, and within a key to
// the request that waits longest. It is safe for concurrent use.
type Slots struct {
	mu   sync.Mutex
	free int
	// maxPerKey is the maximum number of slots of one key; 0 means no other limit than freeFactor.
	maxPerKey int
	held      map[string]int
	// queues holds the waiting requests of each key, in their order: first those that precede others, then by age. A
	// key without waiting requests has no entry.
	queues map[string][]*Slot
	// requests counts all requests, to order them.
	requests uint64
	// quiet is the time without requests of other keys after which a key gets all slots; 0 means never. latest is the
	// key of the latest request. mixed is the time of the last request whose key differed from that of the previous
	// request.
	quiet  time.Duration
	latest string
	mixed  time.Time
	// spent holds a time for each key that used a processor recently: its use is spread until that time; see spend.
	spent map[string]time.Time
}

// New returns a number of free slots, which must be positive.
func New(size int) *Slots {
	return &Slots{free: size, held: map[string]int{}, queues: map[string][]*Slot{}, spent: map[string]time.Time{}}
}

// quietProcessors is Slots.quiet of the processors. The first request of another key may then wait for a slot, at most
// for a timeSlice.
const quietProcessors = 2 * time.Second

// Work in a slot causes further work without a slot, in Temporal, in the database and in the garbage collector. While
// many plans and lists ran, it took nearly half a second of a processor for each second in a slot. So a second in a
// slot counts as workFactor seconds of a processor. A key may use burst more than the time that has passed; then it
// gets no slot for a time. Its counted use is at most maxAhead ahead of the time. So a key that was the only one does
// not wait long after the first request of another key.
const (
	workFactor = 1.5
	burst      = 50 * time.Millisecond
	maxAhead   = 4 * burst
)

// maxSpent is the number of keys above which spend removes those without recent use.
const maxSpent = 100

// NewProcessors returns slots for work that needs a processor, for a number of processors. If there are several, one of
// them is reserved for keys that hold no slot. A key that computes without a pause gets no slot for a third of the
// time. Neither limit applies while only one key requests slots.
func NewProcessors(processors int) *Slots {
	s := NewLimited(max(processors, 2), max(processors-1, 1))
	s.quiet = quietProcessors
	return s
}

// NewLimited returns a number of free slots, of which one key gets at most a given number. 0 means no other limit than
// that of New.
func NewLimited(size, maxPerKey int) *Slots {
	s := New(size)
	s.maxPerKey = maxPerKey
	return s
}

// Slot is a request for a slot, and the slot itself once it is granted.
type Slot struct {
	slots  *Slots
	key    string
	number uint64
	first  bool
	// granted is closed when the slot is granted. released is closed by Release; nil if nothing waits for that.
	granted, released chan struct{}
	// has, since and gone are guarded by the mutex of slots. since is the time of the grant.
	has   bool
	since time.Time
	gone  bool
}

// Request requests a slot for a key. The caller must call Release, also if the slot was not granted.
func (s *Slots) Request(key string) *Slot { return s.request(key, false) }

// request is Request. A first request precedes the other ones of its key.
func (s *Slots) request(key string, first bool) *Slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if key != s.latest {
		s.latest, s.mixed = key, time.Now()
	}
	r := &Slot{slots: s, key: key, number: s.requests, granted: closed}
	queue, at := s.queues[key], len(s.queues[key])
	if r.first = first; first {
		if i := slices.IndexFunc(queue, func(other *Slot) bool { return !other.first }); i >= 0 {
			at = i
		}
	}
	s.queues[key] = slices.Insert(queue, at, r)
	s.grant()
	if !r.has {
		r.granted = make(chan struct{})
	}
	return r
}

// closed is the channel of all slots that were granted at once.
var closed = make(chan struct{})

func init() { close(closed) }

// Acquire requests a slot for a key and waits until it is granted. It returns the cause of the context's end.
func (s *Slots) Acquire(ctx context.Context, key string) (*Slot, error) {
	r := s.Request(key)
	select {
	case <-r.granted:
		return r, nil
	case <-ctx.Done():
		r.Release()
		return nil, context.Cause(ctx)
	}
}

// Waiting returns the number of waiting requests.
func (s *Slots) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, queue := range s.queues {
		n += len(queue)
	}
	return n
}

// Granted returns a channel that is closed when the slot is granted.
func (r *Slot) Granted() <-chan struct{} { return r.granted }

// Released returns a channel that is closed by Release.
func (r *Slot) Released() <-chan struct{} {
	r.slots.mu.Lock()
	defer r.slots.mu.Unlock()
	switch {
	case r.gone:
		return closed
	case r.released == nil:
		r.released = make(chan struct{})
	}
	return r.released
}

// Release frees the slot, or withdraws the request. Further calls do nothing.
func (r *Slot) Release() {
	s := r.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.gone {
		return
	}
	r.gone = true
	if r.released != nil {
		close(r.released)
	}
	if !r.has {
		s.dequeue(r)
		return
	}
	s.free++
	s.spend(r.key, r.since)
	if s.held[r.key]--; s.held[r.key] == 0 {
		delete(s.held, r.key)
	}
	s.grant()
}

func (s *Slots) dequeue(r *Slot) {
	queue := s.queues[r.key]
	if i := slices.Index(queue, r); i >= 0 {
		queue = slices.Delete(queue, i, i+1)
	}
	if s.queues[r.key] = queue; len(queue) == 0 {
		delete(s.queues, r.key)
	}
}

// grant gives free slots to waiting requests.
func (s *Slots) grant() {
	for s.free > 0 {
		next := s.next()
		if next == nil || s.held[next.key] >= freeFactor*s.free && !s.isOnly(next.key) {
			return // all other waiting keys hold at least as many slots
		}
		s.dequeue(next)
		s.free--
		s.held[next.key]++
		next.has, next.since = true, time.Now()
		if next.granted != closed { // else request has not returned it yet
			close(next.granted)
		}
	}
}

// next returns the first request of the waiting key that holds the fewest slots, or nil.
func (s *Slots) next() *Slot {
	var next *Slot
	for key, queue := range s.queues {
		first := queue[0]
		if !s.isOnly(key) && (s.maxPerKey > 0 && s.held[key] >= s.maxPerKey || s.rests(key)) {
			continue
		}
		if next == nil || s.held[key] < s.held[next.key] || s.held[key] == s.held[next.key] &&
			first.number < next.number {
			next = first
		}
	}
	return next
}

// isOnly reports whether no other key has requested slots recently.
func (s *Slots) isOnly(key string) bool {
	return s.quiet > 0 && key == s.latest && time.Since(s.mixed) >= s.quiet
}

// spend counts the time in a slot since its grant. The use of a key is spread over the time that its share of the
// processors would need. A key that uses more than its share is ahead of the time.
func (s *Slots) spend(key string, since time.Time) {
	if s.quiet == 0 {
		return
	}
	now, until := time.Now(), s.spent[key]
	if until.Before(since) {
		until = since
	}
	until = until.Add(time.Duration(float64(now.Sub(since)) * workFactor / float64(s.maxPerKey)))
	if latest := now.Add(maxAhead); until.After(latest) {
		until = latest
	}
	s.spent[key] = until
	if len(s.spent) > maxSpent {
		maps.DeleteFunc(s.spent, func(_ string, until time.Time) bool { return !until.After(now) })
	}
	if rest := until.Sub(now) - burst; rest > 0 {
		time.AfterFunc(rest, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.grant()
		})
	}
}

// rests reports whether a key gets no slot, because its use is more than burst ahead of the time.
func (s *Slots) rests(key string) bool { return time.Until(s.spent[key]) > burst }

// contextKey is the type of the context's value.
type contextKey struct{}

// WithKey returns a context whose work is done for a key.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, contextKey{}, key)
}

// KeyOf returns the key of WithKey.
func KeyOf(ctx context.Context) (key string, ok bool) {
	key, ok = ctx.Value(contextKey{}).(string)
	return key, ok
}
