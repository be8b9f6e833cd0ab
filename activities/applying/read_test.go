package applying

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestReadData(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// then is the value of test_thing.net.id at the time of the apply.
		then   string
		config bool
		failed string
		stale  v1alpha1.StaleReason
	}{
		"read":                 {reason: "now all is known", then: "net-1"},
		"another argument":     {reason: "it was approved for another name", then: "", stale: v1alpha1.StaleInconsistentPlan},
		"another config":       {reason: "it was approved with none", then: "net-1", config: true, stale: v1alpha1.StaleProviderConfigChanged},
		"a failed condition":   {reason: "its dependants need the condition", then: "bad", failed: "not that one"},
		"too large":            {reason: "it cannot be stored", then: strings.Repeat("x", 4<<10), failed: "limit on a stored record is 4096 bytes"},
		"what the provider is": {reason: "a refusal has its reason", then: "refused", failed: "no such image"},
	} {
		t.Run(name, func(t *testing.T) {
			w := activitiestest.NewWorld(t)
			w.Ledger.Limit = 4 << 10
			net := w.Put("test-thing/net", nil, nil)
			dep := activitiestest.ChangeOf(net, 0)
			dep.Action = v1alpha1.ActionCreate
			w.Save(dep)
			spec := map[string]any{"name": "${test_thing.net.id}"}
			if tc.then == "" {
				spec["name"] = "approved"
			}
			r := w.Put("data-test-image/i", spec, map[string]any{
				"dependsOn":      []any{"test_thing.net"},
				"postconditions": []any{map[string]any{"condition": `${self.id != "id-bad"}`, "errorMessage": "not that one"}},
			})
			c := activitiestest.ChangeOf(r, 1, 0)
			name := cty.UnknownVal(cty.String)
			if tc.then == "" {
				name = cty.StringVal("approved")
			}
			c.Action, c.State = v1alpha1.ActionRead, v1alpha1.ChangePending
			c.Planned = planned(t, r, cty.ObjectVal(map[string]cty.Value{"id": cty.UnknownVal(cty.String), "name": name, "token": cty.UnknownVal(cty.String)}))
			w.Record(net, `{"id":"`+tc.then+`"}`)
			if tc.then == "" {
				r.Object.Object["spec"] = map[string]any{"name": "other"}
			}
			if tc.config {
				w.Config(nil)
			}
			w.Provider.Fails["read refused"] = activitiestest.Refusal("no such image")
			s := stepOf(w, r, c)
			err := s.readData(t.Context())
			rec := w.Instance(r)
			if changes.StaleReasonOf(err) != tc.stale {
				t.Errorf("%s: got %v, want stale %q", tc.reason, err, tc.stale)
			}
			if tc.failed != "" && (err == nil || !strings.Contains(diag.Describe(diag.Of(err)), tc.failed)) {
				t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.failed)
			}
			if tc.stale != "" || tc.failed != "" {
				if rec.Exists() {
					t.Errorf("%s: it is recorded: %s", tc.reason, rec.Attributes)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if rec.Mode != v1alpha1.ModeData || !strings.Contains(string(rec.Attributes), "id-net-1") || rec.Plan != "plan-1" || rec.Object.Generation != 1 {
				t.Errorf("recorded %+v", rec)
			}
			w.Provider.Calls = nil
			c.Action, c.Planned = v1alpha1.ActionNoOp, planned(t, r, *s.after) // later plans read it while they are made
			again := w.Put("data-test-image/i", spec, nil)
			if err := changes.RecordData(t.Context(), w.Sources, &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{UID: "plan-2"}}, c, again, *s.after); err != nil {
				t.Fatal(err)
			}
			if second := w.Instance(r); second.Plan != "plan-2" {
				t.Errorf("an object without the failure does not get it: %+v", second)
			}
			obj := w.Stored["team:data-test-image/i"]
			again.Object = obj
			if err := changes.RecordData(t.Context(), w.Sources, &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{UID: "plan-3"}}, c, again, *s.after); err != nil {
				t.Fatal(err)
			}
			if third := w.Instance(r); third.Plan != "plan-2" {
				t.Errorf("the same is recorded again: %+v", third)
			}
			attributes, _, _ := unstructured.NestedMap(obj.Object, "status", "attributes")
			want := map[string]any{"id": "id-net-1", "name": "net-1", "token": lang.Mask}
			if diff := cmp.Diff(want, attributes); diff != "" || !resource.StatusOf(obj).Good() {
				t.Errorf("status: %v (-want +got):\n%s", obj.Object["status"], diff)
			}
		})
	}
}
