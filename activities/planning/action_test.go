package planning

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"

	"github.com/zclconf/go-cty/cty"
)

func TestAskAction(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		prepare func(*activitiestest.World, *resource.Resource)
		spec    v1alpha1.PlanSpec
		forced  bool
		want    v1alpha1.Action
		why     string
		warning string
	}{
		"new": {reason: "it was never run", want: v1alpha1.ActionInvoke},
		"run": {reason: "once is enough", prepare: (*activitiestest.World).Done, want: v1alpha1.ActionNoOp},
		"run, and recorded alone": {
			reason: "the status was not written",
			prepare: func(w *activitiestest.World, r *resource.Resource) {
				if err := w.Ledger.Save(w.T.Context(), &ledger.Instance{Object: r.Ref, Mode: v1alpha1.ModeAction, Plan: "older"}); err != nil {
					w.T.Fatal(err)
				}
			},
			want: v1alpha1.ActionNoOp,
		},
		"changed since": {
			reason: "it is another run",
			prepare: func(w *activitiestest.World, r *resource.Resource) {
				w.Done(r)
				r.Object.SetGeneration(2)
				r.Ref.Generation = 2
			},
			want: v1alpha1.ActionInvoke,
		},
		"asked for": {reason: "a user requests it again", prepare: (*activitiestest.World).Done, forced: true, want: v1alpha1.ActionInvoke, why: "invoke_because_requested"},
		"lost": {
			reason: "it may have run", prepare: func(w *activitiestest.World, r *resource.Resource) { w.RecordBegun(r, true) },
			want: v1alpha1.ActionNoOp, warning: "Outcome of an action is unknown",
		},
		"lost, and asked for": {
			reason: "a user has checked the outcome", prepare: func(w *activitiestest.World, r *resource.Resource) { w.RecordBegun(r, true) }, forced: true,
			want: v1alpha1.ActionInvoke, why: "invoke_because_requested",
		},
		"running":       {reason: "another plan is running it", prepare: func(w *activitiestest.World, r *resource.Resource) { w.RecordBegun(r, false) }, want: v1alpha1.ActionNoOp},
		"destroy":       {reason: "a destroy runs nothing", spec: v1alpha1.PlanSpec{Destroy: true}, want: v1alpha1.ActionNoOp},
		"refresh alone": {reason: "nor does a refresh", spec: v1alpha1.PlanSpec{RefreshOnly: true}, want: v1alpha1.ActionNoOp},
	} {
		t.Run(name, func(t *testing.T) {
			w := activitiestest.NewWorld(t)
			r := w.Put("action-test-reboot/now", map[string]any{"target": "${test_thing.host.id}", "password": "hush"}, nil)
			if tc.prepare != nil {
				tc.prepare(w, r)
			}
			pr := proposalOf(w, map[lang.Address]cty.Value{{Type: "test_thing", Name: "host"}: cty.ObjectVal(map[string]cty.Value{"id": cty.UnknownVal(cty.String)})})
			pr.plan.Spec = tc.spec
			c := activitiestest.ChangeOf(r, 0)
			pr.forced[c.Address] = tc.forced
			v, err := pr.planAction(t.Context(), c, r)
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
			if planned := len(w.Provider.RecordedCalls()) > 0; planned != (tc.want == v1alpha1.ActionInvoke) {
				t.Errorf("asked the provider: %t", planned)
			}
		})
	}
}
