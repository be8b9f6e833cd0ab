package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

func js(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

// shown is the JSON of a plan with one change.
func shown(t *testing.T, spec v1alpha1.PlanSpec, changes ...v1alpha1.PlanChange) map[string]any {
	t.Helper()
	f := newFakeServer(t)
	f.put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network", "metadata": map[string]any{"name": "main", "namespace": "default", "uid": "u"},
		"status": map[string]any{"attributes": map[string]any{"id": "n", "size": int64(1), "tags": map[string]any{"a": "b"}}}}}, "sim-networks")
	for i := range changes {
		c := &changes[i]
		c.Index, c.Provider = int32(i), "registry.terraform.io/hykube/sim"
		if c.Address == "" {
			c.Address, c.Type = "sim_network.main", "sim_network"
		}
		_, name, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(c.Address, "data."), "action."), ".")
		c.Object = v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "default", Name: name, UID: "u"}
		if c.State == "" {
			c.State = v1alpha1.ChangePending
		}
	}
	p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: spec}
	p.APIVersion, p.Kind = "hykube.io/v1alpha1", "Plan"
	f.set(p, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, "")
	f.plans["default/p"], f.changes["default/p"] = p, changes
	out, errOut, code := f.run("show", "p", "-o", "terraform-json")
	if code != 0 {
		t.Fatal(errOut)
	}
	var parsed tfjson.Plan
	if err := json.Unmarshal([]byte(out), &parsed); err != nil {
		t.Fatalf("terraform-json refuses it: %v\n%s", err, out)
	}
	var got map[string]any
	d := json.NewDecoder(strings.NewReader(out))
	d.UseNumber()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

// What each kind of change is in Terraform's JSON, as terraform 1.11.4 writes it for the same.
func TestTerraformJSON(t *testing.T) {
	for _, tc := range []struct {
		reason string
		spec   v1alpha1.PlanSpec
		change v1alpha1.PlanChange
		part   string // where in the document
		want   string
	}{
		{"an update", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionUpdate, Before: js(`{"n":12345678901234567890}`), After: js(`{"n":0.10}`), AfterUnknown: js(`{}`), BeforeSensitive: js(`{}`), AfterSensitive: js(`{}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["update"],"before":{"n":12345678901234567890},"after":{"n":0.10},"after_unknown":{},"before_sensitive":{},"after_sensitive":{}}}]`},
		{"a replacement that creates first", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionReplace, CreateBeforeDestroy: true, ActionReason: "replace_because_cannot_update", Before: js(`{}`), After: js(`{}`), AfterUnknown: js(`{"id":true}`), ReplacePaths: js(`[["a",0,"b"]]`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["create","delete"],"before":{},"after":{},"after_unknown":{"id":true},"before_sensitive":false,"after_sensitive":false,"replace_paths":[["a",0,"b"]]},"action_reason":"replace_because_cannot_update"}]`},
		{"a destroy of an old instance", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionDelete, Deposed: "3f2a1b9c", Before: js(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim","deposed":"3f2a1b9c",
			"change":{"actions":["delete"],"before":{"id":"n"},"after":null,"after_unknown":{},"before_sensitive":false,"after_sensitive":false}}]`},
		{"a deleted object", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionDelete, Before: js(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["delete"],"before":{"id":"n"},"after":null,"after_unknown":{},"before_sensitive":false,"after_sensitive":false},"action_reason":"delete_because_no_resource_config"}]`},
		{"a destroy that was asked for", v1alpha1.PlanSpec{Destroy: true},
			v1alpha1.PlanChange{Action: v1alpha1.ActionDelete, ActionReason: "delete_because_requested", Before: js(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["delete"],"before":{"id":"n"},"after":null,"after_unknown":{},"before_sensitive":false,"after_sensitive":false}}]`},
		{"what is forgotten", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionForget, Before: js(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["forget"],"before":{"id":"n"},"after":null,"after_unknown":{},"before_sensitive":false,"after_sensitive":false},"action_reason":"delete_because_no_resource_config"}]`},
		{"what is forgotten has no planned values", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionForget, Before: js(`{"id":"n"}`)},
			"planned_values", `{"root_module":{"resources":[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim","schema_version":0,"sensitive_values":false}]}}`},
		{"an import", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, Importing: &v1alpha1.PlanImport{ID: "n"}, Before: js(`{"id":"n"}`), After: js(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["no-op"],"before":{"id":"n"},"after":{"id":"n"},"after_unknown":{},"before_sensitive":false,"after_sensitive":false,"importing":{"id":"n"}}}]`},
		{"an import by identity, with an update", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionUpdate, Importing: &v1alpha1.PlanImport{Identity: js(`{"id":"n"}`)}, Before: js(`{"id":"n"}`), After: js(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["update"],"before":{"id":"n"},"after":{"id":"n"},"after_unknown":{},"before_sensitive":false,"after_sensitive":false,"importing":{"identity":{"id":"n"}}}}]`},
		{"a move", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, PreviousAddress: "sim_network.old", Before: js(`{"id":"n"}`), After: js(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","previous_address":"sim_network.old","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["no-op"],"before":{"id":"n"},"after":{"id":"n"},"after_unknown":{},"before_sensitive":false,"after_sensitive":false}}]`},
		{"a data source that is read while applying", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Address: "data.sim_image.base", Type: "sim_image", Mode: v1alpha1.ModeData, Action: v1alpha1.ActionRead, ActionReason: "read_because_config_unknown", After: js(`{}`), AfterUnknown: js(`{"id":true}`), AfterSensitive: js(`{}`)},
			"resource_changes", `[{"address":"data.sim_image.base","mode":"data","type":"sim_image","name":"base","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["read"],"before":null,"after":{},"after_unknown":{"id":true},"before_sensitive":false,"after_sensitive":{}},"action_reason":"read_because_config_unknown"}]`},
		{"a data source that was read is no change", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Address: "data.sim_image.base", Type: "sim_image", Mode: v1alpha1.ModeData, Action: v1alpha1.ActionNoOp, Before: js(`{"id":"i"}`), After: js(`{"id":"i"}`)},
			"resource_changes", `null`},
		{"an action", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Address: "action.sim_reboot.now", Type: "sim_reboot", Mode: v1alpha1.ModeAction, Action: v1alpha1.ActionInvoke, After: js(`{"id":"i"}`)},
			"action_invocations", `[{"address":"action.sim_reboot.now","type":"sim_reboot","name":"now","provider_name":"registry.terraform.io/hykube/sim","config_values":{"id":"i"},"config_sensitive":{},"config_unknown":{},"invoke_action_trigger":{}}]`},
		{"an object without infrastructure is nothing", v1alpha1.PlanSpec{Destroy: true},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, Before: js(`null`), After: js(`null`)},
			"resource_changes", `null`},
		{"the prior state says what is tainted", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionReplace, ActionReason: "replace_because_tainted", Before: js(`{"id":"n"}`), BeforeSensitive: js(`{}`), After: js(`{}`)},
			"prior_state", `{"format_version":"1.0","terraform_version":"1.11.4","values":{"root_module":{"resources":[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim","schema_version":0,"values":{"id":"n"},"sensitive_values":{},"tainted":true}]}}}`},
		{"drift that a plan goes on from", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionUpdate, Drift: []string{"size", "tags.a", "note"}, Before: js(`{"id":"n","size":2,"tags":{"a":"x"},"note":"new"}`), After: js(`{"id":"n","size":1}`), BeforeSensitive: js(`{"tags":{}}`)},
			"resource_drift", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["update"],"before":{"id":"n","note":null,"size":1,"tags":{"a":"b"}},"after":{"id":"n","size":2,"tags":{"a":"x"},"note":"new"},"after_unknown":{},"before_sensitive":{"tags":{}},"after_sensitive":{"tags":{}}}}]`},
		{"what is gone and will be created again", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionCreate, Drift: []string{"(removed)"}, After: js(`{"size":1,"note":null}`), AfterUnknown: js(`{"id":true,"ip":true}`), AfterSensitive: js(`{"tags":{}}`)},
			"resource_drift", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["delete"],"before":{"id":"n","ip":null,"note":null,"size":1,"tags":{"a":"b"}},"after":null,"after_unknown":{},"before_sensitive":{"tags":{}},"after_sensitive":false}}]`},
		{"nobody can tell what was recorded once the plan is applied", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionUpdate, State: v1alpha1.ChangeDone, Drift: []string{"size"}, Before: js(`{"id":"n","size":2}`), After: js(`{"id":"n","size":1}`)},
			"resource_drift", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["update"],"before":{"id":"n"},"after":{"id":"n","size":2},"after_unknown":{},"before_sensitive":{},"after_sensitive":{}}}]`},
		{"a refresh is drift", v1alpha1.PlanSpec{RefreshOnly: true},
			v1alpha1.PlanChange{Action: v1alpha1.ActionRead, Drift: []string{"(removed)"}, Before: js(`{"id":"n"}`), After: js(`null`), BeforeSensitive: js(`{}`)},
			"resource_drift", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["delete"],"before":{"id":"n"},"after":null,"after_unknown":{},"before_sensitive":{},"after_sensitive":false}}]`},
		{"a refresh plans no values", v1alpha1.PlanSpec{RefreshOnly: true},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, Before: js(`{"id":"n"}`), After: js(`{"id":"n"}`)},
			"planned_values", `{"root_module":{}}`},
		{"a plan with targets is not complete", v1alpha1.PlanSpec{Targets: []string{"sim_network.main"}},
			v1alpha1.PlanChange{Action: v1alpha1.ActionCreate, After: js(`{}`)}, "complete", `false`},
		{"a plan without what is excluded is not complete", v1alpha1.PlanSpec{Exclude: []string{"sim_network.x"}},
			v1alpha1.PlanChange{Action: v1alpha1.ActionCreate, After: js(`{}`)}, "complete", `false`},
		{"a plan that moves can be applied", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, PreviousAddress: "sim_network.old", Before: js(`{}`), After: js(`{}`)}, "applyable", `true`},
		{"a plan that does nothing can't be applied", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, Before: js(`{}`), After: js(`{}`)}, "applyable", `false`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := shown(t, tc.spec, tc.change)
			var want any
			d := json.NewDecoder(strings.NewReader(tc.want))
			d.UseNumber()
			if err := d.Decode(&want); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got[tc.part]); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.part, d)
			}
		})
	}
}

// Changes come in Terraform's order, whatever the order of the work is.
func TestTerraformJSONOrder(t *testing.T) {
	var changes []v1alpha1.PlanChange
	for _, a := range []string{"sim_b.a", "sim_a.b", "sim_a.a", "data.sim_z.a"} {
		typ, _, _ := strings.Cut(strings.TrimPrefix(a, "data."), ".")
		c := v1alpha1.PlanChange{Address: a, Type: typ, Action: v1alpha1.ActionCreate, After: js(`{}`)}
		if strings.HasPrefix(a, "data.") {
			c.Mode, c.Action = v1alpha1.ModeData, v1alpha1.ActionRead
		}
		changes = append(changes, c, v1alpha1.PlanChange{Address: a, Type: typ, Mode: c.Mode, Action: v1alpha1.ActionDelete, Deposed: "aa", Before: js(`{}`)})
	}
	var got []string
	for _, c := range shown(t, v1alpha1.PlanSpec{}, changes...)["resource_changes"].([]any) {
		c := c.(map[string]any)
		if c["deposed"] == nil {
			got = append(got, c["address"].(string))
		}
	}
	if d := cmp.Diff([]string{"data.sim_z.a", "sim_a.a", "sim_a.b", "sim_b.a"}, got); d != "" {
		t.Error(d)
	}
}
