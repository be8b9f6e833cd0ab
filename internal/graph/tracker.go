package graph

// Tracker returns items in dependency order: an item is ready as soon as all its dependencies are done. All calls
// together are linear in items and dependencies. It is not safe for concurrent use.
type Tracker struct {
	dependents *Edges
	waiting    []int
	state      []itemState
	ready      []int
}

type itemState uint8

const (
	itemWaiting itemState = iota
	itemReady
	itemTaken
	itemDone
	itemFailed
	itemSkipped
)

// NewTracker tracks the items 0..n-1. The dependencies must have no cycle (see Order): an item on a cycle never becomes
// ready. Dependencies outside 0..n-1 count as done.
func NewTracker(n int, deps func(i int) []int) *Tracker {
	forward := Collect(n, deps)
	t := &Tracker{dependents: forward.Reverse(), waiting: make([]int, n), state: make([]itemState, n)}
	for i := range n {
		t.waiting[i] = len(forward.Of(i))
		if t.waiting[i] == 0 {
			t.state[i] = itemReady
			t.ready = append(t.ready, i)
		}
	}
	return t
}

// Ready returns the items that became ready since the last call, each once. Nil means that no item is ready until the
// next Done or Fail.
func (t *Tracker) Ready() []int {
	var out []int
	for _, i := range t.ready {
		// On resume, Done or Fail may have been called before Ready returned the item.
		if t.state[i] == itemReady {
			t.state[i] = itemTaken
			out = append(out, i)
		}
	}
	t.ready = t.ready[:0]
	return out
}

// Done records that an item is done. To resume from recorded progress, callers may call it for items that Ready never
// returned. It has no effect on an item that has ended.
func (t *Tracker) Done(i int) {
	if t.ended(i) {
		return
	}
	t.state[i] = itemDone
	for _, d := range t.dependents.Of(i) {
		if t.waiting[d]--; t.waiting[d] == 0 && t.state[d] == itemWaiting {
			t.state[d] = itemReady
			t.ready = append(t.ready, d)
		}
	}
}

// Fail records that an item failed. It returns the direct and indirect dependents, which are now skipped. It has no
// effect on an item that has ended.
func (t *Tracker) Fail(i int) (skipped []int) {
	if t.ended(i) {
		return nil
	}
	t.state[i] = itemFailed
	queue := []int{i}
	for head := 0; head < len(queue); head++ {
		for _, d := range t.dependents.Of(queue[head]) {
			if !t.ended(d) {
				t.state[d] = itemSkipped
				queue = append(queue, d)
			}
		}
	}
	return queue[1:]
}

func (t *Tracker) ended(i int) bool { return t.state[i] >= itemDone }
