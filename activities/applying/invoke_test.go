package applying

import (
	"errors"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

func TestInvoke(t *testing.T) {
	run := []string{"plan host-1", "invoke host-1 hush"}
	for name, tc := range map[string]struct {
		reason  string
		prepare func(*activitiestest.World, *stepRun)
		calls   []string
		failed  string
		stale   v1alpha1.StaleReason
		unknown bool
		// ran reports whether this generation counts as run afterwards, and begun whether an intent stays.
		ran, begun bool
	}{
		"run": {reason: "it is run and recorded", calls: run, ran: true},
		"refused": {
			reason: "the next plan runs it again",
			prepare: func(w *activitiestest.World, _ *stepRun) {
				w.Provider.Fails["invoke host-1 hush"] = activitiestest.Refusal("no power")
			},
			calls: run, failed: "no power",
		},
		"lost": {
			reason:  "the outcome is unknown",
			prepare: func(w *activitiestest.World, _ *stepRun) { w.Provider.Lost = true },
			calls:   run, unknown: true, begun: true,
		},
		"cut off on the way": {
			reason: "that is no refusal",
			prepare: func(w *activitiestest.World, _ *stepRun) {
				w.Provider.Broken = true
			},
			calls: run, unknown: true, begun: true,
		},
		"begun by an earlier attempt": {
			reason: "it may have run",
			prepare: func(w *activitiestest.World, s *stepRun) {
				w.RecordBegun(s.resource, false)
				s.Plan.UID, s.Begun = "older", true
			},
			unknown: true, begun: true,
		},
		"made by an earlier attempt": {
			reason: "only the change did not know",
			prepare: func(w *activitiestest.World, s *stepRun) {
				s.Begun = true
				if err := w.Ledger.Save(w.T.Context(), &ledger.Instance{Object: s.resource.Ref, Mode: v1alpha1.ModeAction, Plan: "plan-1"}); err != nil {
					w.T.Fatal(err)
				}
			},
			ran: true,
		},
		"another plan is changing it": {
			reason: "never two at once", prepare: func(w *activitiestest.World, s *stepRun) { w.RecordBegun(s.resource, false) }, stale: v1alpha1.StalePlanRunning, begun: true,
		},
		"another plan gave up on it": {
			reason: "the plan was made knowing that", prepare: func(w *activitiestest.World, s *stepRun) { w.RecordBegun(s.resource, true) }, calls: run, ran: true,
		},
		"other arguments than approved": {
			reason: "the approval was about others",
			prepare: func(w *activitiestest.World, s *stepRun) {
				s.resource.Object.Object["spec"] = map[string]any{"target": "other"}
			}, stale: v1alpha1.StaleInconsistentPlan,
		},
		"another configuration than approved": {
			reason: "the approval was about that, too", prepare: func(w *activitiestest.World, _ *stepRun) { w.Config(nil) }, stale: v1alpha1.StaleProviderConfigChanged,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := activitiestest.NewWorld(t)
			w.Record(w.Put("test-thing/host", nil, nil), `{"id":"host-1"}`)
			r := w.Put("action-test-reboot/now", map[string]any{"target": "${test_thing.host.id}", "password": "hush"}, nil)
			c := activitiestest.ChangeOf(r, 0)
			c.Action, c.State = v1alpha1.ActionInvoke, v1alpha1.ChangePending
			c.Planned = planned(t, r, cty.ObjectVal(map[string]cty.Value{"password": cty.NullVal(cty.String), "target": cty.StringVal("host-1")}))
			w.Save(c)
			s := stepOf(w, r, c)
			if tc.prepare != nil {
				tc.prepare(w, s)
			}
			told := ""
			w.Provider.While = func() {
				stored, err := w.Ledger.Change(t.Context(), "plan-1", 0)
				if err != nil {
					t.Error(err)
					return
				}
				told = stored.Message
				if rec := w.Instance(r); rec.Intent == nil || rec.Mode != v1alpha1.ModeAction {
					t.Errorf("nothing was written down before the run: %+v", rec)
				}
			}
			err := s.invoke(t.Context())
			if diff := cmp.Diff(tc.calls, w.Provider.RecordedCalls()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			_, unknown := errors.AsType[*unknownError](err)
			if changes.StaleReasonOf(err) != tc.stale || unknown != tc.unknown || (err != nil) != (tc.stale != "" || tc.unknown || tc.failed != "") {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			if tc.failed != "" && (err == nil || !strings.Contains(err.Error(), tc.failed)) {
				t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.failed)
			}
			if len(tc.calls) > 0 && told != "half way" {
				t.Errorf("reported %q while it ran, want the first progress, and not the second within a second", told)
			}
			rec := w.Instance(r)
			if resource.HasRun(r, rec) != tc.ran || (rec.Intent != nil) != tc.begun {
				t.Errorf("%s: recorded %+v, want it run %t, begun %t", tc.reason, rec, tc.ran, tc.begun)
			}
			if len(rec.Attributes) > 0 {
				t.Errorf("an action has a state: %s", rec.Attributes)
			}
		})
	}
}
