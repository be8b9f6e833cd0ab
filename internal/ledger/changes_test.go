package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestChangesArePagedInOrder(t *testing.T) {
	ctx, l := t.Context(), newLedger()
	const n = 2*pageSize + 7
	for i := range int32(n) {
		c := &Change{}
		c.Index, c.Planned = i, []byte{0xc1, byte(i)}
		err := l.SaveChange(ctx, "p", c)
		if c.State = v1alpha1.ChangeRunning; err == nil && i%4 > 0 { // some pages end between the rows of a change
			err = l.SaveChange(ctx, "p", c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	other := &Change{}
	if err := l.SaveChange(ctx, "p2", other); err != nil {
		t.Fatal(err)
	}
	var got []int32
	for c, err := range l.Changes(ctx, "p", 3) {
		if err != nil {
			t.Fatal(err)
		}
		if (c.State == v1alpha1.ChangeRunning) != (c.Index%4 > 0) || !bytes.Equal(c.Planned, []byte{0xc1, byte(c.Index)}) {
			t.Errorf("change %d: %s, %x", c.Index, c.State, c.Planned)
		}
		got = append(got, c.Index)
	}
	if len(got) != n-3 || got[0] != 3 || !slices.IsSorted(got) {
		t.Errorf("got %d changes from %v on, want %d from 3 on", len(got), got[0], n-3)
	}
	if err := l.DropPlan(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	for range l.Changes(ctx, "p", 0) {
		t.Fatal("a dropped plan has changes")
	}
	for c, err := range l.Changes(ctx, "p2", 0) {
		if err != nil || c.Index != 0 {
			t.Errorf("another plan's change: %v, %v", c, err)
		}
	}
}

// TestProgressIsWrittenBetweenPages lists the changes of a plan while its apply writes the progress of each change that the
// list has returned.
func TestProgressIsWrittenBetweenPages(t *testing.T) {
	ctx, l := t.Context(), newLedger()
	const n = 2*pageSize + 7
	for i := range int32(n) {
		c := &Change{}
		c.Index = i
		if err := l.SaveChange(ctx, "p", c); err != nil {
			t.Fatal(err)
		}
	}
	next := int32(0)
	for c, err := range l.Changes(ctx, "p", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Index != next {
			t.Fatalf("change %d follows change %d", c.Index, next-1)
		}
		next++
		c.State = v1alpha1.ChangeRunning
		if err := l.SaveChange(ctx, "p", c); err != nil {
			t.Fatal(err)
		}
	}
	if next != n {
		t.Errorf("got %d changes, want %d", next, n)
	}
}

func TestAnActivityMayStoreAChangeTwice(t *testing.T) {
	ctx, l := t.Context(), newLedger()
	for _, message := range []string{"first attempt", "second attempt"} {
		c := &Change{}
		c.Message = message
		if err := l.SaveChange(ctx, "p", c); err != nil {
			t.Fatal(err)
		}
	}
	c, err := l.Change(ctx, "p", 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("second attempt", c.Message); diff != "" {
		t.Error(diff)
	}
}

// TestApplyWritesTheProgressAlone applies a change with large values.
func TestApplyWritesTheProgressAlone(t *testing.T) {
	ctx, kv := t.Context(), &memory{entries: map[string]Entry{}}
	l := New(kv)
	large := &Change{Planned: make([]byte, 10_000)}
	large.Before = &runtime.RawExtension{Raw: []byte("null")} // as of a create
	if err := l.SavePlanned(ctx, "p", large); err != nil {
		t.Fatal(err)
	}
	load := func() *Change {
		t.Helper()
		c, err := l.Change(ctx, "p", 0)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	row, last := kv.entries[changeKey("p", 0)], int64(0)
	for _, state := range []v1alpha1.ChangeState{v1alpha1.ChangeRunning, v1alpha1.ChangeFailed, v1alpha1.ChangeDone} {
		c := load()
		c.State, c.Message, c.Hashes = state, "as "+string(state), map[string]string{"a": "b"}
		if err := l.SaveChange(ctx, "p", c); err != nil {
			t.Fatal(err)
		}
		got := load()
		if got.State != state || got.Message != c.Message || len(got.Planned) != 10_000 || got.Revision() <= last || got.Hashes["a"] != "b" {
			t.Errorf("stored as %s: %s %q at %d", state, got.State, got.Message, got.Revision())
		}
		last = got.Revision()
	}
	if diff := cmp.Diff(row, kv.entries[changeKey("p", 0)]); diff != "" {
		t.Errorf("the apply wrote the planned part again (-want +got):\n%s", diff)
	}
	if size := len(kv.entries[progressKey("p", 0)].Value); size == 0 || size > 200 {
		t.Errorf("the progress takes %d bytes", size)
	}
	before, again := load(), load()
	again.LooksLike = "sim_network.other" // it is planned again
	if err := l.SaveChange(ctx, "p", again); err != nil || len(kv.entries) != 1 {
		t.Errorf("%d rows, %v", len(kv.entries), err)
	}
	// Neither with a progress row nor without one.
	first := load()
	again.LooksLike = "sim_network.third"
	if err := l.SaveChange(ctx, "p", again); err != nil {
		t.Fatal(err)
	}
	for _, stale := range []*Change{before, first} {
		if err := l.SaveChange(ctx, "p", stale); !errors.Is(err, ErrConflict) {
			t.Errorf("the progress of a change that was planned again: %v", err)
		}
	}
	if got := load(); got.LooksLike == "" || got.State != v1alpha1.ChangeDone {
		t.Errorf("got %+v", got)
	}
}

// TestSaveChangesWritesFewBatches stores changes of a plan twice, as a second attempt of an activity does.
func TestSaveChangesWritesFewBatches(t *testing.T) {
	l := newLedger()
	const n = 2*maxBatchChanges + 1
	for attempt := range 2 {
		changes := make([]*Change, n)
		for i := range changes {
			changes[i] = &Change{PlanChange: v1alpha1.PlanChange{Index: int32(i), Message: fmt.Sprint(attempt)}}
		}
		if err := l.SaveChanges(t.Context(), "p", changes); err != nil {
			t.Fatal(err)
		}
		if batches := l.kv.(*memory).batches; attempt == 0 && batches != 3 {
			t.Errorf("%d changes took %d batches", n, batches)
		}
		got := 0
		for c, err := range l.Changes(t.Context(), "p", 0) {
			if got++; err != nil || c.Message != fmt.Sprint(attempt) || c.Revision() != changes[c.Index].Revision() {
				t.Fatalf("change %d: %q, %v", c.Index, c.Message, err)
			}
		}
		if got != n {
			t.Errorf("%d changes are stored", got)
		}
	}
}
