package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestTwoPlansCannotBothChangeAnInstance(t *testing.T) {
	ctx, l := t.Context(), newLedger()
	first, err := l.Instance(ctx, ref("main"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.Instance(ctx, ref("main"))
	if err != nil {
		t.Fatal(err)
	}
	first.Intent = &Intent{Plan: "a", Action: v1alpha1.ActionCreate}
	if err := l.Save(ctx, first); err != nil {
		t.Fatal(err)
	}
	second.Intent = &Intent{Plan: "b", Action: v1alpha1.ActionCreate}
	if err := l.Save(ctx, second); !errors.Is(err, ErrConflict) {
		t.Errorf("the second plan's intent: got %v, want ErrConflict", err)
	}
}

// TestARecordAndItsChangeAreWrittenTogether writes an intent with its change. If another writer was faster with one of the
// two, neither is written, and only a changed record is a conflict of plans.
func TestARecordAndItsChangeAreWrittenTogether(t *testing.T) {
	for name, test := range map[string]struct {
		record, change bool // another writer changes it before
		conflict, ok   bool
	}{
		"alone":             {ok: true},
		"a changed record":  {record: true, conflict: true},
		"a changed change":  {change: true},
		"both were changed": {record: true, change: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, l := t.Context(), newLedger()
			c := &Change{}
			c.Address, c.State = "sim_network.main", v1alpha1.ChangePending
			if err := errors.Join(l.Save(ctx, &Instance{Object: ref("main")}), l.SaveChange(ctx, "p", c)); err != nil {
				t.Fatal(err)
			}
			read := func() (*Instance, *Change) {
				t.Helper()
				i, err1 := l.Instance(ctx, ref("main"))
				c, err2 := l.Change(ctx, "p", 0)
				if err := errors.Join(err1, err2); err != nil {
					t.Fatal(err)
				}
				return i, c
			}
			i, c := read()
			other, otherChange := read()
			if test.record {
				other.Tainted = true
				if err := l.Save(ctx, other); err != nil {
					t.Fatal(err)
				}
			}
			if test.change {
				otherChange.Message = "another attempt"
				if err := l.SaveChange(ctx, "p", otherChange); err != nil {
					t.Fatal(err)
				}
			}
			i.Intent, c.State = &Intent{Plan: "p", Action: v1alpha1.ActionCreate}, v1alpha1.ChangeRunning
			err := l.SaveBoth(ctx, i, "p", c)
			if (err == nil) != test.ok || errors.Is(err, ErrConflict) != test.conflict {
				t.Errorf("the error is %v", err)
			}
			stored, storedChange := read()
			if written := stored.Intent != nil; written != test.ok || (storedChange.State == v1alpha1.ChangeRunning) != test.ok {
				t.Errorf("the intent was written: %t, and the change is %s", written, storedChange.State)
			}
			if test.ok {
				i.Intent, c.State = nil, v1alpha1.ChangeDone
				if err := errors.Join(l.Save(ctx, i), l.SaveChange(ctx, "p", c)); err != nil {
					t.Errorf("the next writes: %v", err)
				}
			}
		})
	}
}

// TestAnOutcomeIsWrittenTogether writes a record, a status and a change. If another writer was faster with one of them, none is
// written, and each can be written on its own.
func TestAnOutcomeIsWrittenTogether(t *testing.T) {
	key := StatusKey{Namespace: "team", Set: "s", UID: "main"}
	for name, meanwhile := range map[string]func(*Ledger, *Instance, *Change) error{
		"":       nil,
		"record": func(l *Ledger, i *Instance, _ *Change) error { return l.Save(t.Context(), i) },
		"status": func(l *Ledger, _ *Instance, _ *Change) error {
			return l.SaveStatus(t.Context(), Status{StatusKey: key, Value: []byte(`{}`)})
		},
		"change": func(l *Ledger, _ *Instance, c *Change) error { return l.SaveChange(t.Context(), "p", c) },
	} {
		ctx, l := t.Context(), newLedger()
		i, c := &Instance{Object: ref("main")}, &Change{}
		c.State = v1alpha1.ChangeRunning
		if err := errors.Join(l.Save(ctx, i), l.SaveChange(ctx, "p", c)); err != nil {
			t.Fatal(err)
		}
		if meanwhile != nil {
			other, otherChange := *i, *c
			if err := meanwhile(l, &other, &otherChange); err != nil {
				t.Fatal(err)
			}
		}
		i.Tainted, c.State = true, v1alpha1.ChangeDone
		err := l.SaveOutcome(ctx, i, Status{StatusKey: key, Value: []byte(`{"written":true}`)}, "p", c)
		if (err == nil) != (meanwhile == nil) || err != nil && !errors.Is(err, ErrConflict) {
			t.Errorf("another writer of the %q: %v", name, err)
		}
		stored, err1 := l.Instance(ctx, ref("main"))
		status, err2 := l.Status(ctx, key)
		change, err3 := l.Change(ctx, "p", 0)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		for what, written := range map[string]bool{"record": stored.Tainted, "status": len(status.Value) > 2, "change": change.State == v1alpha1.ChangeDone} {
			if written != (meanwhile == nil) {
				t.Errorf("another writer of the %q: the %s was written: %t", name, what, written)
			}
		}
		if meanwhile == nil || name == "status" {
			if err := errors.Join(l.Save(ctx, i), l.SaveChange(ctx, "p", c)); err != nil {
				t.Errorf("another writer of the %q: the next writes: %v", name, err)
			}
		}
	}
}

func TestDigestFollowsTheInfrastructureAlone(t *testing.T) {
	i := &Instance{State: State{Attributes: []byte(`{"id":"a"}`), Private: []byte("p")}}
	before := i.Digest()
	i.Intent, i.Plan, i.Dependencies = &Intent{Plan: "a"}, "a", []string{"sim_network.main"}
	if got := i.Digest(); got != before {
		t.Error("an intent changes the digest: a plan that was made in between would be stale for no reason")
	}
	for name, attributes := range map[string]string{
		"other spaces":      `{ "id": "a" }`,
		"null":              `{"id":"a","roles":null}`,
		"an empty list":     `{"id":"a","roles":[]}`,
		"an empty block":    `{"id":"a","timeouts":{"create":null}}`,
		"its own data":      `{"id":"a"}`,
		"another order":     `{"roles":[],"id":"a"}`,
		"nested empty ones": `{"id":"a","rule":{"ports":[],"tags":{}}}`,
	} {
		c := *i
		c.Attributes, c.Private = []byte(attributes), []byte("q")
		if c.Digest() != before {
			t.Errorf("%s: the digest changes, and nothing else did", name)
		}
	}
	policy := func(text string) string {
		attributes, err := json.Marshal(map[string]string{"policy": text})
		if err != nil {
			t.Fatal(err)
		}
		return (&State{Attributes: attributes}).Digest()
	}
	for reason, test := range map[string]struct {
		a, b string
		same bool
	}{
		"JSON in a string, written in another way": {`{"a": [1, 2], "b": null}`, `{"b":null,"a":[1,2]}`, true},
		"another JSON in a string":                 {`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		"a null within JSON in a string":           {`{"a":null}`, `{}`, false},
		"text that only begins like JSON":          {`{a}`, `{ a }`, false},
		"two documents":                            {`{} {}`, `{}{}`, false},
		"spaces in text":                           {`a b`, `a  b`, false},
	} {
		if same := policy(test.a) == policy(test.b); same != test.same {
			t.Errorf("%s: the same digest: %t", reason, same)
		}
	}
	for name, change := range map[string]func(*Instance){
		"attributes":         func(i *Instance) { i.Attributes = []byte(`{"id":"b"}`) },
		"a zero":             func(i *Instance) { i.Attributes = []byte(`{"id":"a","size":0}`) },
		"no text":            func(i *Instance) { i.Attributes = []byte(`{"id":"a","name":""}`) },
		"one null in a list": func(i *Instance) { i.Attributes = []byte(`{"id":"a","list":[null]}`) },
		"tainted":            func(i *Instance) { i.Tainted = true },
		"another schema":     func(i *Instance) { i.SchemaVersion = 3 },
		"gone":               func(i *Instance) { i.Attributes = nil },
	} {
		c := *i
		if change(&c); c.Digest() == before {
			t.Errorf("%s: the digest does not change", name)
		}
	}
}

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

// TestChangesOfAnOlderVersion reads and applies a change that was stored as one JSON document.
func TestChangesOfAnOlderVersion(t *testing.T) {
	l := newLedger()
	old := `{"index":0,"address":"sim_network.a","type":"sim_network","object":{},"provider":"sim","action":"Create","state":"Pending","message":"m","bound":{"state":"none"},"planned":"wQ=="}`
	if _, err := l.kv.Put(t.Context(), changeKey("p", 0), []byte(old), 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []v1alpha1.ChangeState{v1alpha1.ChangePending, v1alpha1.ChangeRunning, v1alpha1.ChangeDone} {
		c, err := l.Change(t.Context(), "p", 0)
		if err != nil {
			t.Fatal(err)
		}
		c.State = want
		if err := l.SaveChange(t.Context(), "p", c); err != nil {
			t.Fatal(err)
		}
		for c, err := range l.Changes(t.Context(), "p", 0) {
			if err != nil || c.State != want || c.Message != "m" || c.Action != v1alpha1.ActionCreate || !bytes.Equal(c.Planned, []byte{0xc1}) {
				t.Errorf("got %+v, %v", c, err)
			}
		}
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

func TestForgottenInstanceIsEmpty(t *testing.T) {
	ctx, l := t.Context(), newLedger()
	i, err := l.Instance(ctx, ref("main"))
	if err != nil {
		t.Fatal(err)
	}
	i.Attributes = []byte(`{}`)
	if err := l.Save(ctx, i); err != nil {
		t.Fatal(err)
	}
	if err := l.Forget(ctx, i); err != nil {
		t.Fatal(err)
	}
	again, err := l.Instance(ctx, ref("main"))
	if err != nil || again.Exists() {
		t.Errorf("got %+v, %v; want an empty record", again, err)
	}
	for range l.Instances(ctx, "") {
		t.Error("a forgotten instance is listed")
	}
}

func TestPlansWithChanges(t *testing.T) {
	ctx, l := t.Context(), newLedger()
	for _, uid := range []types.UID{"a", "ab", "b"} {
		for i := range 3 {
			if err := l.SaveChange(ctx, uid, &Change{PlanChange: v1alpha1.PlanChange{Index: int32(i)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.DropPlan(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	var got []types.UID
	for uid, err := range l.Plans(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, uid)
	}
	if diff := cmp.Diff([]types.UID{"a", "ab"}, got); diff != "" {
		t.Errorf("plans with changes (-want +got):\n%s", diff)
	}
}

// TestIntentsAndOutcomesAreOfOneStep checks that the outcome of one step of a plan does not count for another.
func TestIntentsAndOutcomesAreOfOneStep(t *testing.T) {
	intent, outcome := &Intent{Plan: "p", Change: 1}, &Outcome{Plan: "p", Change: 1, Destroy: true}
	for reason, test := range map[string]struct {
		plan            types.UID
		change          int32
		destroy         bool
		intent, outcome bool
	}{
		"its own":                   {"p", 1, true, true, true},
		"another plan":              {"q", 1, true, false, false},
		"another change":            {"p", 2, true, false, false},
		"the other half of replace": {"p", 1, false, true, false},
	} {
		if intent.Of(test.plan, test.change) != test.intent || outcome.Of(test.plan, test.change, test.destroy) != test.outcome {
			t.Errorf("%s: intent %t, outcome %t", reason, !test.intent, !test.outcome)
		}
	}
}

func TestInstanceWithADeposedOneIsLiving(t *testing.T) {
	old := &Instance{Deposed: []Deposed{{Key: "abcd1234", State: State{Attributes: []byte(`{}`)}}}}
	if !old.Living() || (&Instance{}).Living() {
		t.Error("an instance lives as long as an old one of it does")
	}
}

// TestKeepWritesOverOthers writes and removes a record between the read and the write of Keep.
func TestKeepWritesOverOthers(t *testing.T) {
	ctx, l := t.Context(), newLedger()
	for reason, between := range map[string]func(*Instance) error{
		"written": func(i *Instance) error { return l.Save(ctx, i) },
		"removed": func(i *Instance) error { return l.Forget(ctx, i) },
	} {
		mine, err := l.Instance(ctx, ref("main"))
		if err == nil {
			err = l.Save(ctx, mine)
		}
		if err != nil {
			t.Fatal(err)
		}
		other, err := l.Instance(ctx, ref("main"))
		if err != nil || between(other) != nil {
			t.Fatal("cannot write between", err)
		}
		mine.Attributes = []byte(`{"id":"a"}`)
		if err := l.Keep(ctx, mine); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		if kept, err := l.Instance(ctx, ref("main")); err != nil || !kept.Exists() {
			t.Errorf("%s: the answer is lost: %+v, %v", reason, kept, err)
		}
	}
}
