package ledger

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

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
