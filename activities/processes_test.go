package activities

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/hykube/hykube/activities/applying"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// processes are the processes of a ledger in a test.
type processes struct {
	own  string
	held func() error
	// live has the addresses of the other processes by identity.
	live map[string]string
}

func (p *processes) Own() string { return p.own }

func (p *processes) MayCall() error {
	if p.held == nil {
		return nil
	}
	return p.held()
}

func (p *processes) Live(_ context.Context, process string) (string, error) {
	return p.live[process], nil
}

func (p *processes) Processes() int { return 1 + len(p.live) }

func (p *processes) TakeSlot(context.Context, string, int) (func(), error) { return func() {}, nil }

func (p *processes) Shared() bool { return false }

func (p *processes) Share(_ context.Context, _ string, total int64, own ledger.Share) (ledger.Share, error) {
	return ledger.Share{Want: own.Want, Held: total, Fair: total}, nil
}

// TestNoCallBeginsWithoutTheLease has the server lose its lease between each intent and the call, and get it again. No call begins
// meanwhile, and no intent stays. The plan then goes on.
func TestNoCallBeginsWithoutTheLease(t *testing.T) {
	type m = map[string]any
	create := func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a", "size": "1"}, nil) }
	for name, tc := range map[string]struct {
		before, change func(*crashScenario)
		made           int
	}{
		"create":  {nil, create, 1},
		"update":  {create, func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil) }, 1},
		"delete":  {create, func(sc *crashScenario) { sc.delete("test-thing/a") }, 1},
		"replace": {create, func(sc *crashScenario) { sc.taint("test-thing/a") }, 2},
		"replace, create first": {create, func(sc *crashScenario) {
			sc.put("test-thing/a", m{"name": "a", "size": "1"}, m{"createBeforeDestroy": true})
			sc.taint("test-thing/a")
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			if tc.before != nil {
				tc.before(sc)
				sc.apply()
			}
			p := &processes{own: "own"}
			asked, called := 0, false
			p.held = func() error {
				if asked++; asked%2 == 0 {
					return nil
				}
				sc.cloud.while = func() { called = true }
				return errors.New("the lease is not held")
			}
			sc.Sources.Processes = p
			tc.change(sc)
			run := sc.newRun()
			sc.until(run, stepping)
			for _, step := range run.begun.Steps {
				_, err := sc.applier.Step(t.Context(), stepInput(run, step), 1)
				if err == nil || called {
					t.Fatalf("without the lease: %v; called: %t", err, called)
				}
				if obj := sc.Stored["team:test-thing/a"]; obj != nil {
					if rec := sc.recordOf("test-thing/a"); rec.Intent != nil {
						t.Fatalf("an intent stays: %+v", rec.Intent)
					}
				}
				sc.cloud.while = nil
				result, err := sc.applier.Step(t.Context(), stepInput(run, step), 2)
				if err != nil || !result.OK {
					t.Fatalf("with the lease: %+v, %v", result, err)
				}
				called = false
			}
			if po := sc.resume(run); po.Status.FinishedAt == nil || asked != 2*len(run.begun.Steps) {
				t.Errorf("the plan is %+v; the lease was asked %d times", po.Status.Conditions, asked)
			}
			if sc.cloud.made["a"] != tc.made {
				t.Errorf("made %d, want %d", sc.cloud.made["a"], tc.made)
			}
		})
	}
}

// TestACallOfAnotherProcessIsNotRepeated has a step of a create whose call another process makes. The step waits while that process
// lives. Afterwards, it is unknown whether the resource exists.
func TestACallOfAnotherProcessIsNotRepeated(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/a", map[string]any{"name": "a", "size": "1"}, nil)
	sc.Sources.Processes = &processes{own: "first"}
	run := sc.newRun()
	sc.until(run, stepping)
	in := stepInput(run, run.begun.Steps[0])
	var intent *ledger.Intent
	sc.cloud.while = func() {
		sc.cloud.while = nil
		intent = sc.recordOf("test-thing/a").Intent
		second := &processes{own: "second", live: map[string]string{"first": "first:1"}}
		other := sc.inProcess(second)
		if _, err := other.Step(t.Context(), in, 2); err == nil || err.Error() != "another attempt of this change waits for its provider, in the process of first:1" {
			t.Errorf("while the first process lives: %v", err)
		}
		delete(second.live, "first")
		result, err := other.Step(t.Context(), in, 3)
		if err != nil || result.State != string(v1alpha1.ChangeUnknown) {
			t.Errorf("after the first process has ended: %+v, %v", result, err)
		}
	}
	_, _ = sc.applier.Step(t.Context(), in, 1) // the first process no longer matters
	if intent == nil || intent.Process != "first" {
		t.Fatalf("the intent is %+v", intent)
	}
	if sc.cloud.made["a"] != 1 {
		t.Errorf("made %d", sc.cloud.made["a"])
	}
}

// TestAProcessLeavesALostCallToOthers has a provider lose the answer to an update. Another process repeats it, although the first one
// lives.
func TestAProcessLeavesALostCallToOthers(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/a", map[string]any{"name": "a", "size": "1"}, nil)
	sc.apply()
	sc.Sources.Processes = &processes{own: "first"}
	sc.put("test-thing/a", map[string]any{"name": "a", "size": "2"}, nil)
	run := sc.newRun()
	sc.until(run, stepping)
	in := stepInput(run, run.begun.Steps[0])
	sc.cloud.faults["update a"] = []string{"lost"}
	if result, err := sc.applier.Step(t.Context(), in, 1); err == nil {
		t.Fatalf("the answer is not lost: %+v", result)
	}
	if i := sc.recordOf("test-thing/a").Intent; i == nil || i.Process != "" {
		t.Fatalf("the intent is %+v", i)
	}
	other := sc.inProcess(&processes{own: "second", live: map[string]string{"first": "first:1"}})
	if result, err := other.Step(t.Context(), in, 2); err != nil || !result.OK {
		t.Errorf("the other process: %+v, %v", result, err)
	}
	for id, thing := range sc.cloud.things {
		if thing["size"] != "2" {
			t.Errorf("%s has the size %s", id, thing["size"])
		}
	}
}

// inProcess returns an applier in another process.
func (sc *crashScenario) inProcess(p ledger.Processes) *applying.Applier {
	s := *sc.Sources
	s.Processes = p
	logger := slog.New(slog.DiscardHandler)
	return applying.NewApplier(&s, crashPlans{sc}, changes.CancelReader{Plans: crashPlans{sc}, Logger: logger, Interval: time.Hour}, logger)
}

func stepInput(run *planRun, s workflows.Step) workflows.StepInput {
	return workflows.StepInput{Plan: run.Plan, Change: s.Change, Destroy: s.Destroy}
}

// overtakenObjects calls after when a step has added its finalizer, once.
type overtakenObjects struct {
	store.Objects
	after func()
}

func (o *overtakenObjects) AddFinalizer(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	obj, err := o.Objects.AddFinalizer(ctx, obj)
	if after := o.after; after != nil {
		o.after = nil
		after()
	}
	return obj, err
}

// TestTwoProcessesRunOneStep has a second process begin and end an attempt of a step before the first one writes its intent. One of
// them makes the call, and the other one finds that out.
func TestTwoProcessesRunOneStep(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/a", map[string]any{"name": "a", "size": "1"}, nil)
	sc.apply()
	objects := &overtakenObjects{Objects: sc.Sources.Objects}
	sc.Sources.Objects, sc.Sources.Processes = objects, &processes{own: "first", live: map[string]string{"second": "second:1"}}
	sc.put("test-thing/a", map[string]any{"name": "a", "size": "2"}, nil)
	run := sc.newRun()
	sc.until(run, stepping)
	in := stepInput(run, run.begun.Steps[0])
	sc.cloud.faults["update a"] = []string{"lost"}
	if result, err := sc.applier.Step(t.Context(), in, 1); err == nil {
		t.Fatalf("the answer is not lost: %+v", result)
	}
	other := sc.inProcess(&processes{own: "second", live: map[string]string{"first": "first:1"}})
	calls := 0
	objects.after = func() {
		sc.cloud.while = func() { calls++ }
		if result, err := other.Step(t.Context(), in, 2); err != nil || !result.OK {
			t.Errorf("the second process: %+v, %v", result, err)
		}
		sc.cloud.while = func() { calls++ }
	}
	if result, err := sc.applier.Step(t.Context(), in, 2); err == nil || err.Error() != "another process has run another attempt of this change" {
		t.Errorf("the first process: %+v, %v", result, err)
	}
	if result, err := sc.applier.Step(t.Context(), in, 3); err != nil || !result.OK {
		t.Errorf("the first process again: %+v, %v", result, err)
	}
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
}
