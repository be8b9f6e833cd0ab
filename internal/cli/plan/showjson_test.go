package plan_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/tests/clitest"
)

// shown is the JSON of a plan with one change.
func shown(t *testing.T, spec v1alpha1.PlanSpec, changes ...v1alpha1.PlanChange) map[string]any {
	t.Helper()
	f := clitest.New(t, cli.Command)
	f.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network", "metadata": map[string]any{"name": "main", "namespace": "default", "uid": "u"},
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
	return shownJSON(f, spec, changes)
}

// shownJSON is the JSON of a plan with these changes, after terraform-json has read it.
func shownJSON(f *clitest.Server, spec v1alpha1.PlanSpec, changes []v1alpha1.PlanChange) map[string]any {
	t := f.T
	t.Helper()
	p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: spec}
	p.APIVersion, p.Kind = "hykube.io/v1alpha1", "Plan"
	f.Set(p, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, "")
	f.Plans["default/p"], f.Changes["default/p"] = p, changes
	out, errOut, code := f.Run("show", "p", "-o", "terraform-json")
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

// TestTerraformJSON compares each kind of change with the JSON of Terraform 1.11.4 for the same change.
func TestTerraformJSON(t *testing.T) {
	for _, tc := range []struct {
		reason string
		spec   v1alpha1.PlanSpec
		change v1alpha1.PlanChange
		part   string // where in the document
		want   string
	}{
		{"an update", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionUpdate, Before: clitest.JSON(`{"n":12345678901234567890}`), After: clitest.JSON(`{"n":0.10}`), AfterUnknown: clitest.JSON(`{}`), BeforeSensitive: clitest.JSON(`{}`), AfterSensitive: clitest.JSON(`{}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["update"],"before":{"n":12345678901234567890},"after":{"n":0.10},"after_unknown":{},"before_sensitive":{},"after_sensitive":{}}}]`},
		{"a replacement that creates first", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionReplace, CreateBeforeDestroy: true, ActionReason: "replace_because_cannot_update", Before: clitest.JSON(`{}`), After: clitest.JSON(`{}`), AfterUnknown: clitest.JSON(`{"id":true}`), ReplacePaths: clitest.JSON(`[["a",0,"b"]]`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["create","delete"],"before":{},"after":{},"after_unknown":{"id":true},"before_sensitive":false,"after_sensitive":false,"replace_paths":[["a",0,"b"]]},"action_reason":"replace_because_cannot_update"}]`},
		{"a destroy of an old instance", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionDelete, Deposed: "3f2a1b9c", Before: clitest.JSON(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim","deposed":"3f2a1b9c",
			"change":{"actions":["delete"],"before":{"id":"n"},"after":null,"after_unknown":{},"before_sensitive":false,"after_sensitive":false}}]`},
		{"a deleted object", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionDelete, Before: clitest.JSON(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["delete"],"before":{"id":"n"},"after":null,"after_unknown":{},"before_sensitive":false,"after_sensitive":false},"action_reason":"delete_because_no_resource_config"}]`},
		{"a destroy that was asked for", v1alpha1.PlanSpec{Destroy: true},
			v1alpha1.PlanChange{Action: v1alpha1.ActionDelete, ActionReason: "delete_because_requested", Before: clitest.JSON(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["delete"],"before":{"id":"n"},"after":null,"after_unknown":{},"before_sensitive":false,"after_sensitive":false}}]`},
		{"what is forgotten", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionForget, Before: clitest.JSON(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["forget"],"before":{"id":"n"},"after":null,"after_unknown":{},"before_sensitive":false,"after_sensitive":false},"action_reason":"delete_because_no_resource_config"}]`},
		{"what is forgotten has no planned values", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionForget, Before: clitest.JSON(`{"id":"n"}`)},
			"planned_values", `{"root_module":{"resources":[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim","schema_version":0,"sensitive_values":false}]}}`},
		{"an import", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, Importing: &v1alpha1.PlanImport{ID: "n"}, Before: clitest.JSON(`{"id":"n"}`), After: clitest.JSON(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["no-op"],"before":{"id":"n"},"after":{"id":"n"},"after_unknown":{},"before_sensitive":false,"after_sensitive":false,"importing":{"id":"n"}}}]`},
		{"an import by identity, with an update", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionUpdate, Importing: &v1alpha1.PlanImport{Identity: clitest.JSON(`{"id":"n"}`)}, Before: clitest.JSON(`{"id":"n"}`), After: clitest.JSON(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["update"],"before":{"id":"n"},"after":{"id":"n"},"after_unknown":{},"before_sensitive":false,"after_sensitive":false,"importing":{"identity":{"id":"n"}}}}]`},
		{"a move", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, PreviousAddress: "sim_network.old", Before: clitest.JSON(`{"id":"n"}`), After: clitest.JSON(`{"id":"n"}`)},
			"resource_changes", `[{"address":"sim_network.main","previous_address":"sim_network.old","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["no-op"],"before":{"id":"n"},"after":{"id":"n"},"after_unknown":{},"before_sensitive":false,"after_sensitive":false}}]`},
		{"a data source that is read while applying", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Address: "data.sim_image.base", Type: "sim_image", Mode: v1alpha1.ModeData, Action: v1alpha1.ActionRead, ActionReason: "read_because_config_unknown", After: clitest.JSON(`{}`), AfterUnknown: clitest.JSON(`{"id":true}`), AfterSensitive: clitest.JSON(`{}`)},
			"resource_changes", `[{"address":"data.sim_image.base","mode":"data","type":"sim_image","name":"base","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["read"],"before":null,"after":{},"after_unknown":{"id":true},"before_sensitive":false,"after_sensitive":{}},"action_reason":"read_because_config_unknown"}]`},
		{"a data source that was read is no change", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Address: "data.sim_image.base", Type: "sim_image", Mode: v1alpha1.ModeData, Action: v1alpha1.ActionNoOp, Before: clitest.JSON(`{"id":"i"}`), After: clitest.JSON(`{"id":"i"}`)},
			"resource_changes", `null`},
		{"an action", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Address: "action.sim_reboot.now", Type: "sim_reboot", Mode: v1alpha1.ModeAction, Action: v1alpha1.ActionInvoke, After: clitest.JSON(`{"id":"i"}`)},
			"action_invocations", `[{"address":"action.sim_reboot.now","type":"sim_reboot","name":"now","provider_name":"registry.terraform.io/hykube/sim","config_values":{"id":"i"},"config_sensitive":{},"config_unknown":{},"invoke_action_trigger":{}}]`},
		{"an object without infrastructure is nothing", v1alpha1.PlanSpec{Destroy: true},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, Before: clitest.JSON(`null`), After: clitest.JSON(`null`)},
			"resource_changes", `null`},
		{"the prior state says what is tainted", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionReplace, ActionReason: "replace_because_tainted", Before: clitest.JSON(`{"id":"n"}`), BeforeSensitive: clitest.JSON(`{}`), After: clitest.JSON(`{}`)},
			"prior_state", `{"format_version":"1.0","terraform_version":"1.11.4","values":{"root_module":{"resources":[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim","schema_version":0,"values":{"id":"n"},"sensitive_values":{},"tainted":true}]}}}`},
		{"drift that a plan goes on from", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionUpdate, Drift: []string{"size"}, Recorded: clitest.JSON(`{"id":"n","size":1,"tags":{"a":null}}`), RecordedSensitive: clitest.JSON(`{"tags":{"a":true}}`),
				Before: clitest.JSON(`{"id":"n","size":2}`), After: clitest.JSON(`{"id":"n","size":1}`), BeforeSensitive: clitest.JSON(`{"tags":{}}`)},
			"resource_drift", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["update"],"before":{"id":"n","size":1,"tags":{"a":null}},"after":{"id":"n","size":2},"after_unknown":{},"before_sensitive":{"tags":{"a":true}},"after_sensitive":{"tags":{}}}}]`},
		{"drift after the plan was applied", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, State: v1alpha1.ChangeDone, Drift: []string{"size"}, Recorded: clitest.JSON(`{"size":1}`), RecordedSensitive: clitest.JSON(`{}`), Before: clitest.JSON(`{"size":2}`), After: clitest.JSON(`{"size":2}`), BeforeSensitive: clitest.JSON(`{}`)},
			"resource_drift", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["update"],"before":{"size":1},"after":{"size":2},"after_unknown":{},"before_sensitive":{},"after_sensitive":{}}}]`},
		{"what is gone and will be created again", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionCreate, Drift: []string{"(removed)"}, Recorded: clitest.JSON(`{"id":"n"}`), RecordedSensitive: clitest.JSON(`{}`), Before: clitest.JSON(`null`), After: clitest.JSON(`{"size":1}`), AfterUnknown: clitest.JSON(`{"id":true}`)},
			"resource_drift", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["delete"],"before":{"id":"n"},"after":null,"after_unknown":{},"before_sensitive":{},"after_sensitive":false}}]`},
		{"a plan to destroy has no drift", v1alpha1.PlanSpec{Destroy: true},
			v1alpha1.PlanChange{Action: v1alpha1.ActionRead, Drift: []string{"(removed)"}, Before: clitest.JSON(`{"id":"n"}`), After: clitest.JSON(`null`)},
			"resource_drift", `null`},
		{"a refresh is drift", v1alpha1.PlanSpec{RefreshOnly: true},
			v1alpha1.PlanChange{Action: v1alpha1.ActionRead, Drift: []string{"(removed)"}, Before: clitest.JSON(`{"id":"n"}`), After: clitest.JSON(`null`), BeforeSensitive: clitest.JSON(`{}`)},
			"resource_drift", `[{"address":"sim_network.main","mode":"managed","type":"sim_network","name":"main","provider_name":"registry.terraform.io/hykube/sim",
			"change":{"actions":["delete"],"before":{"id":"n"},"after":null,"after_unknown":{},"before_sensitive":{},"after_sensitive":false}}]`},
		{"a refresh plans no values", v1alpha1.PlanSpec{RefreshOnly: true},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, Before: clitest.JSON(`{"id":"n"}`), After: clitest.JSON(`{"id":"n"}`)},
			"planned_values", `{"root_module":{}}`},
		{"a plan with targets is not complete", v1alpha1.PlanSpec{Targets: []string{"sim_network.main"}},
			v1alpha1.PlanChange{Action: v1alpha1.ActionCreate, After: clitest.JSON(`{}`)}, "complete", `false`},
		{"a plan without what is excluded is not complete", v1alpha1.PlanSpec{Exclude: []string{"sim_network.x"}},
			v1alpha1.PlanChange{Action: v1alpha1.ActionCreate, After: clitest.JSON(`{}`)}, "complete", `false`},
		{"a plan without what was put off is not complete", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, State: v1alpha1.ChangeSkipped, Message: "the provider put it off"}, "complete", `false`},
		{"a plan that moves can be applied", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, PreviousAddress: "sim_network.old", Before: clitest.JSON(`{}`), After: clitest.JSON(`{}`)}, "applyable", `true`},
		{"a plan that does nothing can't be applied", v1alpha1.PlanSpec{},
			v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, Before: clitest.JSON(`{}`), After: clitest.JSON(`{}`)}, "applyable", `false`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := shown(t, tc.spec, tc.change)
			if d := cmp.Diff(decoded(t, tc.want), got[tc.part]); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.part, d)
			}
		})
	}
}

// The configuration is made of the objects and the schemas of their provider, in the shapes that terraform 1.11.4 gives to
// the same in its own language.
func TestTerraformJSONConfiguration(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Openapi = `{"components":{"schemas":{"n":{"x-kubernetes-group-version-kind":[{"group":"sim.hykube.io","version":"v1","kind":"sim-network"}],"x-hykube-schema-version":2,
		"properties":{"spec":{"type":"object","properties":{"name":{"type":"string"},"size":{"type":"number"},"plain":{"type":"string"},"password":{"type":"string","x-hykube-sensitive":true},"tags":{"type":"object","additionalProperties":{"type":"string"}},
			"rule":{"type":"array","x-hykube-block":true,"items":{"type":"object","properties":{"port":{"type":"number"}}}},
			"zone":{"type":"object","x-hykube-block":true,"additionalProperties":{"type":"object","properties":{"id":{"type":"string"}}}},
			"timeouts":{"type":"object","x-hykube-block":true,"properties":{"create":{"type":"string"}}}}}}}}}}`
	object := func(name string, generation int64, spec, lifecycle map[string]any) {
		f.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network", "metadata": map[string]any{"name": name, "namespace": "default", "uid": "u-" + name, "generation": generation},
			"spec": spec, "lifecycle": lifecycle}}, "sim-networks")
	}
	object("a", 1, map[string]any{
		"name": "${data.sim_image.base.family}-${sim_network.b.tags[\"x.y\"]}-${sim_network.b.rule[0].port}", "size": int64(3), "plain": "$${x}", "password": "hunter2",
		"tags": map[string]any{"k": "v", "f": "${upper(\"x\")}"}, "rule": []any{map[string]any{"port": int64(80)}, map[string]any{"port": "${configmap.app.port}"}},
		"zone": map[string]any{"z": map[string]any{"id": "i"}}, "timeouts": map[string]any{"create": "30s"},
	}, map[string]any{"dependsOn": []any{"sim-network/b"}})
	object("b", 1, map[string]any{"name": "${namespace.other.sim_network.x.name}", "marked": "hunter2"}, map[string]any{"replaceTriggeredBy": []any{"sim_network.c.size"}})
	object("c", 2, map[string]any{"name": "changed since"}, nil)
	f.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "hykube.io/v1alpha1", "kind": "Provider", "metadata": map[string]any{"name": "sim"},
		"spec": map[string]any{"source": "hykube/sim", "version": "~> 0.1"}}}, "providers")
	f.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "hykube.io/v1alpha1", "kind": "ProviderConfig", "metadata": map[string]any{"name": "other", "namespace": "default"},
		"spec": map[string]any{"provider": "sim", "config": map[string]any{"region": "eu-west-1", "host": "${sim_network.b.name}", "api_key": "hunter2", "login": map[string]any{"user": "u", "password": "hunter2"},
			"assume": []any{map[string]any{"role": "r", "token": "hunter2"}}}, "secretRefs": []any{map[string]any{"argument": "token", "name": "creds", "key": "t"}}}}}, "providerconfigs")
	var changes []v1alpha1.PlanChange
	for i, name := range []string{"a", "b", "c", "gone"} {
		c := v1alpha1.PlanChange{Index: int32(i), Address: "sim_network." + name, Type: "sim_network", Action: v1alpha1.ActionNoOp, Provider: "registry.terraform.io/hykube/sim", ProviderConfig: "default", State: v1alpha1.ChangePending,
			Before: clitest.JSON(`{"id":"n"}`), After: clitest.JSON(`{"id":"n"}`), AfterSensitive: clitest.JSON(`{"marked":true}`),
			Object: v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "default", Name: name, UID: types.UID("u-" + name), Generation: 1}}
		if name == "b" {
			c.ProviderConfig = "other"
		}
		changes = append(changes, c)
	}
	got := shownJSON(f, v1alpha1.PlanSpec{}, changes)
	want := `{"provider_config":{"sim":{"name":"sim","full_name":"registry.terraform.io/hykube/sim","version_constraint":"~> 0.1"},"sim.other":{"name":"sim","full_name":"registry.terraform.io/hykube/sim","version_constraint":"~> 0.1","alias":"other","expressions":{
		"region":{"constant_value":"eu-west-1"},"host":{"references":["sim_network.b.name","sim_network.b"]},"api_key":{"constant_value":"(sensitive value)"},"login":{"constant_value":{"user":"u","password":"(sensitive value)"}},
		"assume":[{"role":{"constant_value":"r"},"token":{"constant_value":"(sensitive value)"}}],"token":{"references":["secret.creds.t","secret.creds"]}}}},
	"root_module":{"resources":[
	{"address":"sim_network.a","mode":"managed","type":"sim_network","name":"a","provider_config_key":"sim","schema_version":2,"depends_on":["sim_network.b"],"expressions":{
		"name":{"references":["data.sim_image.base.family","data.sim_image.base","sim_network.b.tags[\"x.y\"]","sim_network.b.tags","sim_network.b","sim_network.b.rule[0].port","sim_network.b.rule[0]","sim_network.b.rule","sim_network.b"]},
		"size":{"constant_value":3},"plain":{"constant_value":"${x}"},"password":{"constant_value":"(sensitive value)"},"tags":{},
		"rule":[{"port":{"constant_value":80}},{"port":{"references":["configmap.app.port","configmap.app"]}}],"zone":{"z":{"id":{"constant_value":"i"}}},"timeouts":{"create":{"constant_value":"30s"}}}},
	{"address":"sim_network.b","mode":"managed","type":"sim_network","name":"b","provider_config_key":"sim.other","schema_version":2,"expressions":{
		"name":{"references":["namespace.other.sim_network.x.name","namespace.other.sim_network.x"]},"marked":{"constant_value":"(sensitive value)"}}},
	{"address":"sim_network.c","mode":"managed","type":"sim_network","name":"c","provider_config_key":"sim","schema_version":2},
	{"address":"sim_network.gone","mode":"managed","type":"sim_network","name":"gone","provider_config_key":"sim","schema_version":2}]}}`
	if d := cmp.Diff(decoded(t, want), got["configuration"]); d != "" {
		t.Errorf("configuration (-want +got):\n%s", d)
	}
	deps := map[string]any{}
	for _, r := range got["prior_state"].(map[string]any)["values"].(map[string]any)["root_module"].(map[string]any)["resources"].([]any) {
		r := r.(map[string]any)
		deps[r["name"].(string)] = r["depends_on"]
		if r["schema_version"] != json.Number("2") {
			t.Errorf("schema version of %v: %v", r["name"], r["schema_version"])
		}
	}
	if d := cmp.Diff(decoded(t, `{"a":["data.sim_image.base","namespace.other.sim_network.x","sim_network.b","sim_network.c"],"b":["namespace.other.sim_network.x","sim_network.c"],"c":null,"gone":null}`), any(deps)); d != "" {
		t.Errorf("depends_on in the prior state (-want +got):\n%s", d)
	}

	// A user who may not read objects and schemas gets the rest.
	f.Refuse = func(r *http.Request) *metav1.Status {
		if strings.Contains(r.URL.Path, "/sim-networks") || strings.HasPrefix(r.URL.Path, "/openapi") {
			return clitest.Status(403, metav1.StatusReasonForbidden, "you may not")
		}
		return nil
	}
	got = shownJSON(f, v1alpha1.PlanSpec{}, changes[:1])
	want = `[{"address":"sim_network.a","mode":"managed","type":"sim_network","name":"a","provider_config_key":"sim","schema_version":0}]`
	if d := cmp.Diff(decoded(t, want), got["configuration"].(map[string]any)["root_module"].(map[string]any)["resources"]); d != "" {
		t.Errorf("without rights (-want +got):\n%s", d)
	}
	// Without the schema, what may be a secret that is only written is not shown.
	f.Refuse = func(r *http.Request) *metav1.Status {
		if strings.HasPrefix(r.URL.Path, "/openapi") {
			return clitest.Status(403, metav1.StatusReasonForbidden, "you may not")
		}
		return nil
	}
	if text, _ := json.Marshal(shownJSON(f, v1alpha1.PlanSpec{}, changes[:2])); strings.Contains(string(text), "hunter2") {
		t.Errorf("a secret is shown: %s", text)
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Changes come in Terraform's order, whatever the order of the work is.
func TestTerraformJSONOrder(t *testing.T) {
	var changes []v1alpha1.PlanChange
	for _, a := range []string{"sim_b.a", "sim_a.b", "sim_a.a", "data.sim_z.a"} {
		typ, _, _ := strings.Cut(strings.TrimPrefix(a, "data."), ".")
		c := v1alpha1.PlanChange{Address: a, Type: typ, Action: v1alpha1.ActionCreate, After: clitest.JSON(`{}`)}
		if strings.HasPrefix(a, "data.") {
			c.Mode, c.Action = v1alpha1.ModeData, v1alpha1.ActionRead
		}
		changes = append(changes, c, v1alpha1.PlanChange{Address: a, Type: typ, Mode: c.Mode, Action: v1alpha1.ActionDelete, Deposed: "aa", Before: clitest.JSON(`{}`)})
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
