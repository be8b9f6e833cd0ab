package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/api/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// memory is a KV that follows the interface to the letter; the real one has its own tests.
type memory struct {
	mu      sync.Mutex
	entries map[string]Entry
	clock   int64
}

func (m *memory) Get(_ context.Context, key string) ([]byte, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[key]
	if !ok {
		return nil, 0, ErrNotFound
	}
	return e.Value, e.Revision, nil
}

func (m *memory) Put(_ context.Context, key string, value []byte, revision int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries[key].Revision != revision {
		return 0, ErrConflict
	}
	m.clock++
	m.entries[key] = Entry{key, value, m.clock}
	return m.clock, nil
}

func (m *memory) Delete(_ context.Context, key string, revision int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[key]; ok && e.Revision != revision {
		return ErrConflict
	}
	delete(m.entries, key)
	return nil
}

func (m *memory) List(_ context.Context, prefix, after string, limit int) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Entry
	for _, key := range slices.Sorted(maps.Keys(m.entries)) {
		if strings.HasPrefix(key, prefix) && key > after && len(out) < limit {
			out = append(out, m.entries[key])
		}
	}
	return out, nil
}

func newLedger() *Ledger { return New(&memory{entries: map[string]Entry{}}) }

func ref(name string) v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "prod", Name: name, UID: types.UID(name), Generation: 1}
}

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
		if err := l.SaveChange(ctx, "p", c); err != nil {
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

// TestVersionTellsDependants wants another version whenever those who refer to an instance have to look again, and no other time.
func TestVersionTellsDependants(t *testing.T) {
	ctx, l := t.Context(), newLedger()
	i, err := l.Instance(ctx, ref("main"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		reason string
		change func()
		want   string
	}{
		{"it was made", func() { i.Plan, i.Attributes = "p1", []byte(`{"size":1}`) }, "p1"},
		{"nothing of it was changed", func() { i.Plan = "p2" }, "p1"},
		{"it was changed", func() { i.Attributes = []byte(`{"size":2}`) }, "p2"},
		{"something of it is secret", func() { i.Plan, i.Sensitive = "p3", []byte(`[["size"]]`) }, "p3"},
		{"a call failed", func() { i.Plan, i.Unplanned = "p4", true }, "p4~"},
		{"it failed again, with something else", func() { i.Unplanned, i.Attributes = true, []byte(`{"size":3}`) }, "p4~~"},
		{"it was made at last", func() { i.Attributes = []byte(`{"size":4}`) }, "p4"},
	} {
		step.change()
		if err := l.Save(ctx, i); err != nil {
			t.Fatal(err)
		}
		if i.Version != step.want {
			t.Errorf("%s: version %q, want %q", step.reason, i.Version, step.want)
		}
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

// TestIntentsAndOutcomesAreOfOneStep tells the steps of plans apart: what one made must not count for another.
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

func TestAnOldInstanceIsLiving(t *testing.T) {
	old := &Instance{Deposed: []Deposed{{Key: "abcd1234", State: State{Attributes: []byte(`{}`)}}}}
	if !old.Living() || (&Instance{}).Living() {
		t.Error("an instance lives as long as an old one of it does")
	}
}

// TestKeepWritesOverOthers has somebody write and remove a record between its read and its write.
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
