package server

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/rights"
)

// TestWithheld fills every field of a change with a secret, and looks for it in the answer to a user who may not get
// the object. Of a field that is added later it asks whether it can hold a value.
func TestWithheld(t *testing.T) {
	harmless := []string{"Index", "Address", "Mode", "Deposed", "PreviousAddress", "Type", "Object", "Provider", "ProviderVersion", "ProviderConfig", "Action", "CreateBeforeDestroy",
		"Forget", "ActionReason", "DestroyedWith", "UpdatesRecord", "DependsOn", "Blocked", "State", "StaleReason", "HalfDone", "MayExist", "Left", "StartedAt", "FinishedAt", "Sequence", "ValuesWithheld",
		"Contributors"}
	full := v1alpha1.PlanChange{}
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		if slices.Contains(harmless, v.Type().Field(i).Name) {
			continue
		}
		switch f := v.Field(i); f.Interface().(type) {
		case *runtime.RawExtension:
			f.Set(reflect.ValueOf(&runtime.RawExtension{Raw: []byte(`"hunter2"`)}))
		case string:
			f.SetString("hunter2")
		case []string:
			f.Set(reflect.ValueOf([]string{"hunter2"}))
		case *v1alpha1.PlanImport:
			f.Set(reflect.ValueOf(&v1alpha1.PlanImport{ID: "hunter2", Identity: &runtime.RawExtension{Raw: []byte(`"hunter2"`)}}))
		case []v1alpha1.PlanSecret:
			f.Set(reflect.ValueOf([]v1alpha1.PlanSecret{{From: []string{"hunter2"}}}))
		case []v1alpha1.PlanArgument:
			f.Set(reflect.ValueOf([]v1alpha1.PlanArgument{{Name: "hunter2", Value: "hunter2"}}))
		case []v1alpha1.PlanExpression:
			f.Set(reflect.ValueOf([]v1alpha1.PlanExpression{{Expression: "hunter2"}}))
		case []v1alpha1.Diagnostic:
			f.Set(reflect.ValueOf([]v1alpha1.Diagnostic{{Detail: "hunter2"}}))
		default:
			t.Fatalf("the field %s is new: say here whether it can hold a value", v.Type().Field(i).Name)
		}
	}
	full.Address, full.Action, full.ActionReason = "sim_network.main", v1alpha1.ActionUpdate, "reason"
	full.Object = v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "team", Name: "main"}
	var asked []string
	access := rights.Access{Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		asked = append(asked, strings.Join([]string{a.GetVerb(), a.GetNamespace(), a.GetAPIGroup(), a.GetResource(), a.GetName()}, " "))
		if a.GetUser().GetName() == "alice" && a.GetName() == "main" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})}
	read := func(who string) v1alpha1.PlanChange {
		list := &v1alpha1.PlanChangeList{Items: []v1alpha1.PlanChange{*full.DeepCopy(), *full.DeepCopy()}}
		if err := withholdValues(t.Context(), access.Asker(&user.DefaultInfo{Name: who}), func(kschema.GroupVersionKind) (kinds.Kind, bool) { return kinds.Kind{}, false }, list); err != nil {
			t.Fatal(err)
		}
		return list.Items[1]
	}
	if got := read("alice"); !reflect.DeepEqual(got, full) {
		t.Errorf("a reader of the object got %+v", got)
	}
	if want := []string{"get team sim.hykube.io sim-networks ", "get team sim.hykube.io sim-networks main"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
	got := read("bob")
	text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&got)
	if err != nil || !got.ValuesWithheld || got.Importing == nil || got.Address != full.Address || got.Action != full.Action || got.ActionReason != "reason" {
		t.Errorf("got %+v, %v", got, err)
	}
	var find func(any) bool
	find = func(v any) bool {
		switch v := v.(type) {
		case string:
			return strings.Contains(v, "hunter2")
		case map[string]any:
			for _, v := range v {
				if find(v) {
					return true
				}
			}
		case []any:
			return slices.ContainsFunc(v, find)
		}
		return false
	}
	if find(text) {
		t.Errorf("the answer has the value: %v", text)
	}
}

// TestExpressionsOfATemplateAreWithheld reads the change of an instance of a ResourceSet. Its expressions are those of the template, so
// only a user who may get the set sees them. All other values stay.
func TestExpressionsOfATemplateAreWithheld(t *testing.T) {
	access := rights.Access{Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetResource() != "resourcesets" || a.GetUser().GetName() == "alice" && a.GetVerb() == "get" && a.GetNamespace() == "team" && a.GetName() == "net" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})}
	full := v1alpha1.PlanChange{
		Object:      v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "team", Name: "net-a"},
		After:       &runtime.RawExtension{Raw: []byte(`"value"`)},
		Expressions: []v1alpha1.PlanExpression{{Expression: "${each.key}"}},
	}
	for _, tc := range []struct {
		who, set string
		sees     bool
	}{{"alice", "net", true}, {"alice", "other", false}, {"bob", "net", false}, {"bob", "", true}} {
		c := *full.DeepCopy()
		c.Object.Set = tc.set
		want := *c.DeepCopy()
		if !tc.sees {
			want.Expressions = nil
		}
		list := &v1alpha1.PlanChangeList{Items: []v1alpha1.PlanChange{c}}
		if err := withholdValues(t.Context(), access.Asker(&user.DefaultInfo{Name: tc.who}), func(kschema.GroupVersionKind) (kinds.Kind, bool) { return kinds.Kind{}, false }, list); err != nil {
			t.Fatal(err)
		}
		if got := list.Items[0]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s reads an instance of the set %q: got %+v, want %+v", tc.who, tc.set, got, want)
		}
	}
}

// TestExpressionsOfAModuleAreWithheld expects the expressions of a resource of a Module for readers who may get the Module and the
// ConfigMaps of the namespace: the expressions are the text of the files.
func TestExpressionsOfAModuleAreWithheld(t *testing.T) {
	access := rights.Access{Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		refused := map[string]string{"bob": "configmaps", "carol": "modules"}
		if a.GetResource() != refused[a.GetUser().GetName()] {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})}
	for who, sees := range map[string]bool{"alice": true, "bob": false, "carol": false} {
		list := &v1alpha1.PlanChangeList{Items: []v1alpha1.PlanChange{{
			Object:      v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "team", Name: `module.shop:a[0]`, Set: "shop"},
			Expressions: []v1alpha1.PlanExpression{{Expression: "${var.name}"}},
		}}}
		if err := withholdValues(t.Context(), access.Asker(&user.DefaultInfo{Name: who}), func(kschema.GroupVersionKind) (kinds.Kind, bool) { return kinds.Kind{}, false }, list); err != nil {
			t.Fatal(err)
		}
		if got := len(list.Items[0].Expressions) > 0; got != sees {
			t.Errorf("%s sees the expressions: %t, want %t", who, got, sees)
		}
	}
}

// TestDiagnosticsOfInstancesAreWithheld reads the diagnostics of an instance, which may quote its template and, as each.value, a ConfigMap.
// Who may read both sees them, and so does the requester of the plan, with whose rights planning read them.
func TestDiagnosticsOfInstancesAreWithheld(t *testing.T) {
	access := rights.Access{Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		refused := map[string]string{"bob": "configmaps", "carol": "resourcesets", "dan": "sim-networks"}
		if a.GetResource() != refused[a.GetUser().GetName()] {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})}
	byType := func(v1alpha1.Mode, string) []kinds.Kind {
		return []kinds.Kind{{GVR: kschema.GroupVersionResource{Group: "sim.hykube.io", Version: "v1", Resource: "sim-networks"}}}
	}
	for who, test := range map[string]struct{ ofPlan, ofChange, ofSingle, own bool }{
		"alice": {ofPlan: true, ofChange: true, ofSingle: true, own: true},
		"bob":   {ofSingle: true, own: true},
		"carol": {ofSingle: true, own: true},
		"dan":   {ofChange: true}, // withholdValues removes it
	} {
		asker := access.Asker(&user.DefaultInfo{Name: who})
		reads := func(address string, own bool) bool {
			missing, err := asker.Missing(t.Context(), rightsToRead(byType, "team", address, own))
			if err != nil {
				t.Fatal(err)
			}
			return len(missing) == 0
		}
		list := &v1alpha1.PlanChangeList{Items: []v1alpha1.PlanChange{{
			Object:  v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "team", Name: "hosts[0]", Set: "hosts"},
			Message: "hunter2", Diagnostics: []v1alpha1.Diagnostic{{Detail: "hunter2"}},
		}}}
		if err := withholdDiagnostics(t.Context(), asker, list); err != nil {
			t.Fatal(err)
		}
		c := list.Items[0]
		if sees := c.Message != "" && len(c.Diagnostics) > 0; sees != test.ofChange || sees != (c.Message != "") {
			t.Errorf("%s sees the diagnostics of the change: %t, want %t", who, sees, test.ofChange)
		}
		if sees := reads("sim_network.hosts[0]", false); sees != test.ofPlan {
			t.Errorf("%s sees the diagnostics of the instance: %t, want %t", who, sees, test.ofPlan)
		}
		if sees := reads("sim_network.main", false); sees != test.ofSingle {
			t.Errorf("%s sees the diagnostics of a single object: %t, want %t", who, sees, test.ofSingle)
		}
		if sees := reads("sim_network.hosts[0]", true); sees != test.own {
			t.Errorf("%s sees the diagnostics of the instance in an own plan: %t, want %t", who, sees, test.own)
		}
	}
}
