package activities

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
)

// done makes the status of an object say that its generation is done.
func (w *world) done(r *resource) {
	w.t.Helper()
	s := statusOf(r.obj)
	s.ready(r.ref.Generation, "")
	condition.Ready(&s.conditions, r.ref.Generation, v1alpha1.ReasonApplied, "done")
	r.obj.Object["status"] = s.toMap()
}

// began writes down that a run was begun; ended says whether its plan has given up on it.
func (w *world) began(r *resource, ended bool) {
	w.t.Helper()
	old := changeOf(r, 7)
	old.State = v1alpha1.ChangeRunning
	if ended {
		old.State = v1alpha1.ChangeUnknown
	}
	if err := w.Ledger.SaveChange(w.t.Context(), "older", old); err != nil {
		w.t.Fatal(err)
	}
	rec := &ledger.Instance{Object: r.ref, Mode: v1alpha1.ModeAction, Provider: "test", Plan: "older"}
	rec.Intent = &ledger.Intent{Plan: "older", Change: 7, Action: v1alpha1.ActionInvoke}
	if err := w.Ledger.Save(w.t.Context(), rec); err != nil {
		w.t.Fatal(err)
	}
}

func TestAskAction(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		prepare func(*world, *resource)
		spec    v1alpha1.PlanSpec
		forced  bool
		want    v1alpha1.Action
		why     string
		warning string
	}{
		"new": {reason: "it was never run", want: v1alpha1.ActionInvoke},
		"run": {reason: "once is enough", prepare: (*world).done, want: v1alpha1.ActionNoOp},
		"run, and recorded alone": {
			reason: "the object could not be told",
			prepare: func(w *world, r *resource) {
				if err := w.Ledger.Save(w.t.Context(), &ledger.Instance{Object: r.ref, Mode: v1alpha1.ModeAction, Plan: "older"}); err != nil {
					w.t.Fatal(err)
				}
			},
			want: v1alpha1.ActionNoOp,
		},
		"changed since": {
			reason: "it is another run",
			prepare: func(w *world, r *resource) {
				w.done(r)
				r.obj.SetGeneration(2)
				r.ref.Generation = 2
			},
			want: v1alpha1.ActionInvoke,
		},
		"asked for": {reason: "somebody wants it again", prepare: (*world).done, forced: true, want: v1alpha1.ActionInvoke, why: "invoke_because_requested"},
		"lost": {
			reason: "it may have run", prepare: func(w *world, r *resource) { w.began(r, true) },
			want: v1alpha1.ActionNoOp, warning: "Outcome of an action is unknown",
		},
		"lost, and asked for": {
			reason: "somebody looked", prepare: func(w *world, r *resource) { w.began(r, true) }, forced: true,
			want: v1alpha1.ActionInvoke, why: "invoke_because_requested",
		},
		"running":       {reason: "another plan is at it", prepare: func(w *world, r *resource) { w.began(r, false) }, want: v1alpha1.ActionNoOp},
		"destroy":       {reason: "a destroy runs nothing", spec: v1alpha1.PlanSpec{Destroy: true}, want: v1alpha1.ActionNoOp},
		"refresh alone": {reason: "nor does a refresh", spec: v1alpha1.PlanSpec{RefreshOnly: true}, want: v1alpha1.ActionNoOp},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.put("action-test-reboot/now", map[string]any{"target": "${test_thing.host.id}", "password": "hush"}, nil)
			if tc.prepare != nil {
				tc.prepare(w, r)
			}
			pr := w.proposal(map[lang.Address]cty.Value{{Type: "test_thing", Name: "host"}: cty.ObjectVal(map[string]cty.Value{"id": cty.UnknownVal(cty.String)})})
			pr.plan.Spec = tc.spec
			c := changeOf(r, 0)
			pr.forced[c.Address] = tc.forced
			v, err := pr.askAction(t.Context(), c, r)
			if err != nil {
				t.Fatal(err)
			}
			if c.Action != tc.want || c.ActionReason != tc.why {
				t.Errorf("%s: got %s %q, want %s %q", tc.reason, c.Action, c.ActionReason, tc.want, tc.why)
			}
			summary := ""
			for _, d := range c.Diagnostics {
				summary += d.Summary
			}
			if summary != tc.warning {
				t.Errorf("%s: said %q, want %q", tc.reason, summary, tc.warning)
			}
			if c.Action == v1alpha1.ActionInvoke && !v.GetAttr("password").IsNull() || strings.Contains(string(c.Planned), "hush") {
				t.Errorf("a write-only value is stored: %#v", v)
			}
			if planned := len(w.provider.said()) > 0; planned != (tc.want == v1alpha1.ActionInvoke) {
				t.Errorf("asked the provider: %t", planned)
			}
		})
	}
}

func TestInvoke(t *testing.T) {
	run := []string{"plan host-1", "invoke host-1 hush"}
	for name, tc := range map[string]struct {
		reason  string
		prepare func(*world, *stepRun)
		calls   []string
		failed  string
		stale   bool
		unknown bool
		// ran says whether this generation counts as run afterwards, begun whether a run is left open.
		ran, begun bool
	}{
		"run": {reason: "it is run and recorded", calls: run, ran: true},
		"refused": {
			reason:  "the next plan runs it again",
			prepare: func(w *world, _ *stepRun) { w.provider.fails["invoke host-1 hush"] = refusal("no power") },
			calls:   run, failed: "no power",
		},
		"lost": {
			reason:  "nobody knows whether it ran",
			prepare: func(w *world, _ *stepRun) { w.provider.lost = true },
			calls:   run, unknown: true, begun: true,
		},
		"cut off on the way": {
			reason: "that is no refusal",
			prepare: func(w *world, _ *stepRun) {
				w.provider.broken = true
			},
			calls: run, unknown: true, begun: true,
		},
		"begun by an earlier attempt": {
			reason: "it may have run",
			prepare: func(w *world, s *stepRun) {
				w.began(s.resource, false)
				s.plan.UID, s.begun = "older", true
			},
			unknown: true, begun: true,
		},
		"made by an earlier attempt": {
			reason: "only the change did not know",
			prepare: func(w *world, s *stepRun) {
				s.begun = true
				if err := w.Ledger.Save(w.t.Context(), &ledger.Instance{Object: s.resource.ref, Mode: v1alpha1.ModeAction, Plan: "plan-1"}); err != nil {
					w.t.Fatal(err)
				}
			},
			ran: true,
		},
		"another plan is at it": {
			reason: "never two at once", prepare: func(w *world, s *stepRun) { w.began(s.resource, false) }, stale: true, begun: true,
		},
		"another plan gave up on it": {
			reason: "the plan was made knowing that", prepare: func(w *world, s *stepRun) { w.began(s.resource, true) }, calls: run, ran: true,
		},
		"other arguments than approved": {
			reason:  "the approval was about others",
			prepare: func(w *world, s *stepRun) { s.resource.obj.Object["spec"] = map[string]any{"target": "other"} }, stale: true,
		},
		"another configuration than approved": {
			reason: "the approval was about that, too", prepare: func(w *world, _ *stepRun) { w.config(nil) }, stale: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.record(w.put("test-thing/host", nil, nil), `{"id":"host-1"}`)
			r := w.put("action-test-reboot/now", map[string]any{"target": "${test_thing.host.id}", "password": "hush"}, nil)
			c := changeOf(r, 0)
			if _, err := w.proposal(nil).askAction(t.Context(), c, r); err != nil || c.Action != v1alpha1.ActionInvoke {
				t.Fatalf("%s, %v", c.Action, err)
			}
			w.save(c)
			w.provider.calls = nil
			s := w.stepOf(r, c)
			if tc.prepare != nil {
				tc.prepare(w, s)
			}
			told := ""
			w.provider.while = func() {
				stored, err := w.Ledger.Change(t.Context(), "plan-1", 0)
				if err != nil {
					t.Error(err)
					return
				}
				told = stored.Message
				if rec := w.instance(r); rec.Intent == nil || rec.Mode != v1alpha1.ModeAction {
					t.Errorf("nothing was written down before the run: %+v", rec)
				}
			}
			err := s.invoke(t.Context())
			if diff := cmp.Diff(tc.calls, w.provider.said()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			_, stale := errors.AsType[*staleError](err)
			_, unknown := errors.AsType[*unknownError](err)
			if stale != tc.stale || unknown != tc.unknown || (err != nil) != (tc.stale || tc.unknown || tc.failed != "") {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			if tc.failed != "" && (err == nil || !strings.Contains(err.Error(), tc.failed)) {
				t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.failed)
			}
			if len(tc.calls) > 0 && told != "half way" {
				t.Errorf("told %q while it ran, want the first progress, and not the second within a second", told)
			}
			rec := w.instance(r)
			if hasRun(r, rec) != tc.ran || (rec.Intent != nil) != tc.begun {
				t.Errorf("%s: recorded %+v, want it run %t, begun %t", tc.reason, rec, tc.ran, tc.begun)
			}
			if len(rec.Attributes) > 0 {
				t.Errorf("an action has a state: %s", rec.Attributes)
			}
		})
	}
}
