// Package batch lets a Terraform provider receive many calls from Hykube in one batch. Serve serves the provider as
// usual, and a second service that receives batches of calls; see docs/batch-providers.md.
//
// The provider's code for one resource stays as it is, except that it makes its API calls through a Group. In a batch,
// a Group collects the inputs of all resources and makes one call of them. Outside of a batch, as with Terraform, it
// makes one call for each input:
//
//	var create = batch.Group[Server, Server]{Call: api.CreateServers}
//
//	func (r *serverResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
//		...
//		made, err := create.Do(ctx, wanted)
//		...
//	}
package batch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// maxWait is the maximum time for which the first input of a call waits for the inputs of the batch's other members.
const maxWait = 50 * time.Millisecond

// Result is the result for one input.
type Result[O any] struct {
	Value O
	Err   error
}

// Group makes one call of the inputs that the members of a batch have at the same time. Its zero value with a Call is
// ready for use. It must not be copied after its first use.
type Group[I, O any] struct {
	// Call makes the call. It returns one result for each input, in the order of the inputs. Its context has the values
	// of one member, and ends when the client stops the provider. If it then returns early, each result must still
	// report whether the call had its effect for that input.
	Call func(ctx context.Context, in []I) []Result[O]
}

// Do returns the result for an input. In a batch, it waits until each other member has an input for a Group, has ended,
// or has kept it waiting for 50 ms. If ctx ends during the call, it returns the cause, and the call's effect is
// unknown.
func (g *Group[I, O]) Do(ctx context.Context, in I) (O, error) {
	b := batchOf(ctx)
	if b == nil {
		return g.call(ctx, []I{in})[0].unpack()
	}
	result := make(chan Result[O], 1)
	m := &member{ctx: ctx, in: in, deliver: func(r any) { result <- r.(Result[O]) }}
	b.wait(g, m, func(members []*member) []any {
		inputs := make([]I, len(members))
		for i, m := range members {
			inputs[i] = m.in.(I)
		}
		results := make([]any, len(members))
		if b.over.Err() != nil { // no call begins after the end of the batch
			for i := range results {
				results[i] = Result[O]{Err: context.Cause(b.over)}
			}
			return results
		}
		for i, r := range g.call(b.context(members[0].ctx), inputs) {
			results[i] = r
		}
		return results
	})
	select {
	case r := <-result:
		return r.unpack()
	case <-ctx.Done():
	}
	withdrawn, ended := b.withdraw(g, m), b.over.Err() != nil
	switch {
	case withdrawn && ended:
		return Result[O]{Err: context.Cause(b.over)}.unpack()
	case withdrawn || !ended:
		return Result[O]{Err: context.Cause(ctx)}.unpack()
	}
	// The context of the call has ended, too, so its result is final.
	return (<-result).unpack()
}

func (r Result[O]) unpack() (O, error) { return r.Value, r.Err }

// call makes the call. If the number of its results is wrong, each result is an error.
func (g *Group[I, O]) call(ctx context.Context, in []I) []Result[O] {
	out := g.Call(ctx, in)
	if len(out) == len(in) {
		return out
	}
	wrong := make([]Result[O], len(in))
	for i := range wrong {
		wrong[i].Err = fmt.Errorf("call %d items: got %d results; their effect is unknown", len(in), len(out))
	}
	return wrong
}

// batch is a batch that is being answered.
type batch struct {
	// over ends when the client stops the provider, or when no caller waits for the batch's answers.
	over context.Context
	stop context.CancelCauseFunc

	mu sync.Mutex
	// active is the number of members that have not ended and do not wait for others.
	active int
	// waiting holds the members that wait, by Group.
	waiting map[any]*waiting
}

// waiting are the members of a batch that wait for a call of one Group.
type waiting struct {
	members []*member
	call    func([]*member) []any
	timer   *time.Timer
}

// member is one of a batch's calls that waits for a Group.
type member struct {
	ctx     context.Context
	in      any
	deliver func(any)
}

// wait adds a member to those that wait for a group's call.
func (b *batch) wait(group any, m *member, call func([]*member) []any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.waiting[group]
	if w == nil {
		w = &waiting{call: call}
		w.timer = time.AfterFunc(maxWait, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.release(group, w)
		})
		b.waiting[group] = w
	}
	w.members = append(w.members, m)
	b.leave()
}

// leave counts a member that has ended or waits. The last one starts all calls. The caller holds the mutex.
func (b *batch) leave() {
	if b.active--; b.active > 0 {
		return
	}
	for group, w := range b.waiting {
		b.release(group, w)
	}
}

// release starts the call of a group, unless it was started. The caller holds the mutex.
func (b *batch) release(group any, w *waiting) {
	if b.waiting[group] != w {
		return
	}
	delete(b.waiting, group)
	w.timer.Stop()
	b.active += len(w.members)
	go func() {
		for i, r := range w.call(w.members) {
			w.members[i].deliver(r)
		}
	}()
}

// ended counts a member that has ended.
func (b *batch) ended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave()
}

// withdraw removes a member that waits for a group's call. It reports whether the call has not started.
func (b *batch) withdraw(group any, m *member) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.waiting[group]
	if w == nil || !slices.Contains(w.members, m) {
		return false
	}
	w.members = slices.DeleteFunc(w.members, func(other *member) bool { return other == m })
	if len(w.members) == 0 {
		delete(b.waiting, group)
		w.timer.Stop()
	}
	b.active++
	return true
}

// context returns a context with the values of a member's context that ends with the batch.
func (b *batch) context(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(b.over, func() { cancel(context.Cause(b.over)) })
	return ctx
}
