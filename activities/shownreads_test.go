package activities

import (
	"testing"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAPlanTakesOverTheReadsThatTheUserSaw makes a speculative plan, and then the plan of the recorded objects. The provider gives a
// password another hash with each import. Only with the reads of the speculative plan, the second plan has the contents of the first.
func TestAPlanTakesOverTheReadsThatTheUserSaw(t *testing.T) {
	for name, tc := range map[string]struct {
		// before changes the world between the plans, and shown the speculative plan.
		before func(*crashScenario)
		shown  func(*v1alpha1.Plan)
		none   bool
		same   bool
		// reads counts those of the second plan: one of the stamp, and two of an import, which the plan makes by two IDs.
		reads int
	}{
		"the same":               {same: true},
		"without the reads":      {none: true, reads: 3},
		"a plan of another user": {shown: func(po *v1alpha1.Plan) { po.Status.RequestedBy = &v1alpha1.Identity{Username: "bob"} }, reads: 3},
		"an old plan":            {shown: func(po *v1alpha1.Plan) { po.CreationTimestamp.Time = time.Now().Add(-2 * time.Hour) }, reads: 3},
		"a recorded plan":        {shown: func(po *v1alpha1.Plan) { po.Spec.Speculative = false }, reads: 3},
		"another import":         {before: func(sc *crashScenario) { sc.put("test-password/a", m{"length": "9"}, imports("secretpw2")) }, reads: 2},
		"another state": {same: true, before: func(sc *crashScenario) {
			rec := sc.recordOf("test-stamp/b")
			rec.Private = []byte("other")
			if err := sc.Ledger.Save(sc.T.Context(), rec); err != nil {
				sc.T.Fatal(err)
			}
		}, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			sc, cloud := newSharedIDs(t)
			sc.put("test-stamp/b", m{"at": "t"}, nil)
			sc.apply()
			sc.put("test-password/a", m{"length": "9"}, imports("secretpw1"))
			sc.spec = v1alpha1.PlanSpec{Speculative: true, Refresh: v1alpha1.RefreshAll}
			run := sc.newRun()
			sc.plans.change(run.Name, func(po *v1alpha1.Plan) { po.CreationTimestamp = metav1.Now() })
			shown := sc.until(run, approving)
			if tc.shown != nil {
				sc.plans.change(run.Name, tc.shown)
			}
			if tc.before != nil {
				tc.before(sc)
			}
			sc.spec = v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll, ReadsOf: &v1alpha1.PlanReference{Name: shown.Name, UID: shown.UID}}
			if tc.none {
				sc.spec.ReadsOf = nil
			}
			cloud.reads = 0
			again := sc.newRun()
			po := sc.until(again, approving)
			if same := po.Status.Contents == shown.Status.Contents; same != tc.same || shown.Status.Contents == "" {
				t.Errorf("the contents are equal: %t, want %t: %s", same, tc.same, sc.said(po))
			}
			if cloud.reads != tc.reads {
				t.Errorf("%d reads, want %d", cloud.reads, tc.reads)
			}
			sc.resume(again)
			if rec := sc.recordOf("test-password/a"); !rec.Exists() || rec.NamedBy != "result" {
				t.Errorf("not imported: %s", sc.said(po))
			}
		})
	}
}
