package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

var (
	providers       = v1alpha1.SchemeGroupVersion.WithResource("providers")
	providerConfigs = v1alpha1.SchemeGroupVersion.WithResource("providerconfigs")
	plans           = v1alpha1.SchemeGroupVersion.WithResource("plans")
	apiServices     = apiregistrationv1.SchemeGroupVersion.WithResource("apiservices")
)

func newObject(kind, name string, spec map[string]any) *unstructured.Unstructured {
	if spec == nil {
		spec = map[string]any{}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func newPlan(name string, spec map[string]any) *unstructured.Unstructured {
	return newObject("Plan", name, spec)
}

func TestValidation(t *testing.T) {
	ns := namespace(t, "validation")
	type spec = map[string]any
	provider := func(name string, s spec) *unstructured.Unstructured { return newObject("Provider", name, s) }
	config := func(s spec) *unstructured.Unstructured { return newObject("ProviderConfig", "c", s) }
	plan := func(s spec) *unstructured.Unstructured { return newPlan("p", s) }
	for name, test := range map[string]struct {
		obj *unstructured.Unstructured
		// want is a part of the message; "" means that the object is accepted.
		want []string
	}{
		"a provider":                          {provider("ok", spec{"source": "hashicorp/aws", "version": "~> 6.0"}), nil},
		"a provider with a host":              {provider("ok", spec{"source": "registry.example.com:8443/team/cloud"}), nil},
		"no source":                           {provider("x", spec{}), []string{"spec.source", "Required"}},
		"source with spaces":                  {provider("x", spec{"source": "not a source"}), []string{"spec.source", "hashicorp/aws"}},
		"source with too many parts":          {provider("x", spec{"source": "a/b/c/d"}), []string{"spec.source"}},
		"version that is none":                {provider("x", spec{"source": "a/b", "version": "newest"}), []string{"spec.version", "~> 6.0"}},
		"absurdly long version":               {provider("x", spec{"source": "a/b", "version": strings.Repeat("1", 5000)}), []string{"spec.version", "200"}},
		"name with a dot":                     {provider("a.b", spec{"source": "a/b"}), []string{"metadata.name"}},
		"name in capitals":                    {provider("AWS", spec{"source": "a/b"}), []string{"metadata.name"}},
		"name too long for a group":           {provider(strings.Repeat("a", 41), spec{"source": "a/b"}), []string{"metadata.name", "40 characters"}},
		"absurdly long name":                  {provider(strings.Repeat("a", 100_000), spec{"source": "a/b"}), []string{"metadata.name"}},
		"unknown field":                       {provider("x", spec{"source": "a/b", "sorce": "a/b"}), []string{`unknown field "spec.sorce"`}},
		"wrong type":                          {provider("x", spec{"source": int64(7)}), []string{"source", "string"}},
		"a config":                            {config(spec{"provider": "aws", "config": spec{"region": "eu"}, "limits": spec{"concurrency": int64(1024)}}), nil},
		"config without a provider":           {config(spec{}), []string{"spec.provider", "Required"}},
		"config of an absurd provider":        {config(spec{"provider": "A/B"}), []string{"spec.provider"}},
		"arguments that are a list":           {config(spec{"provider": "aws", "config": []any{"x"}}), []string{"spec.config", "map"}},
		"negative concurrency":                {config(spec{"provider": "aws", "limits": spec{"concurrency": int64(-1)}}), []string{"spec.limits.concurrency", "0 and 1024"}},
		"too much concurrency":                {config(spec{"provider": "aws", "limits": spec{"concurrency": int64(1025)}}), []string{"spec.limits.concurrency"}},
		"negative rate":                       {config(spec{"provider": "aws", "limits": spec{"ratePerSecond": int64(-1)}}), []string{"spec.limits.ratePerSecond"}},
		"secret without name and key":         {config(spec{"provider": "aws", "secretRefs": []any{spec{"argument": "token"}}}), []string{"spec.secretRefs[0].name", "spec.secretRefs[0].key"}},
		"secret for no argument":              {config(spec{"provider": "aws", "secretRefs": []any{spec{"argument": "a b", "name": "s", "key": "k"}}}), []string{"spec.secretRefs[0].argument"}},
		"argument from two secrets":           {config(spec{"provider": "aws", "secretRefs": []any{spec{"argument": "a", "name": "s", "key": "k"}, spec{"argument": "a", "name": "s", "key": "l"}}}), []string{"spec.secretRefs[1].argument", "Duplicate"}},
		"argument from config and secret":     {config(spec{"provider": "aws", "config": spec{"auth": spec{"password": "x"}}, "secretRefs": []any{spec{"argument": "auth.password", "name": "s", "key": "k"}}}), []string{"spec.secretRefs[0].argument", "spec.config"}},
		"a plan":                              {plan(spec{"targets": []any{"sim_network.main", "sim-disk/a"}, "selector": spec{"matchLabels": spec{"a": "b"}}}), nil},
		"a plan of everything":                {plan(nil), nil},
		"refresh of an unknown mode":          {plan(spec{"refresh": "Sometimes"}), []string{"spec.refresh", `"Changed"`}},
		"approval of an unknown mode":         {plan(spec{"approval": "Maybe"}), []string{"spec.approval", `"Manual"`}},
		"target that is no address":           {plan(spec{"targets": []any{"sim_network"}}), []string{"spec.targets[0]", "sim_network.main"}},
		"target twice, in two spellings":      {plan(spec{"targets": []any{"sim_network.main", "sim-network/main"}}), []string{"spec.targets[1]", "Duplicate"}},
		"replace that is no address":          {plan(spec{"replace": []any{"../../etc"}}), []string{"spec.replace[0]"}},
		"selector with a bad operator":        {plan(spec{"selector": spec{"matchExpressions": []any{spec{"key": "a", "operator": "Near"}}}}), []string{"spec.selector.matchExpressions[0].operator"}},
		"selector with a bad label":           {plan(spec{"selector": spec{"matchLabels": spec{"a b": "c"}}}), []string{"spec.selector.matchLabels"}},
		"destroy and refresh only":            {plan(spec{"destroy": true, "refreshOnly": true}), []string{"spec.refreshOnly", "spec.destroy"}},
		"replace and refresh only":            {plan(spec{"replace": []any{"a_b.c"}, "refreshOnly": true}), []string{"spec.refreshOnly", "spec.replace"}},
		"destroy and replace":                 {plan(spec{"replace": []any{"a_b.c"}, "destroy": true}), []string{"spec.destroy", "spec.replace"}},
		"a plan that leaves something out":    {plan(spec{"exclude": []any{"sim_network.main", "data.sim_image.a"}, "invoke": []any{"action.sim_reboot.now", "action-sim-reboot/b"}}), nil},
		"targets of every mode":               {plan(spec{"targets": []any{"data.sim_image.a", "action.sim_reboot.b", "ephemeral-sim-token/c"}}), nil},
		"target and exclude":                  {plan(spec{"targets": []any{"a_b.c"}, "exclude": []any{"a_b.d"}}), []string{"spec.exclude", "spec.targets"}},
		"exclude that is no address":          {plan(spec{"exclude": []any{"x"}}), []string{"spec.exclude[0]"}},
		"exclude and replace the same":        {plan(spec{"exclude": []any{"a_b.c"}, "replace": []any{"a-b/c"}}), []string{"spec.replace[0]", "spec.exclude"}},
		"replace of a data source":            {plan(spec{"replace": []any{"data.a_b.c"}}), []string{"spec.replace[0]", "managed resource"}},
		"invoke of a resource":                {plan(spec{"invoke": []any{"a_b.c"}}), []string{"spec.invoke[0]", "action.sim_reboot.now"}},
		"invoke that is no address":           {plan(spec{"invoke": []any{"reboot"}}), []string{"spec.invoke[0]", "action.sim_reboot.now"}},
		"invoke and refresh only":             {plan(spec{"invoke": []any{"action.a_b.c"}, "refreshOnly": true}), []string{"spec.refreshOnly", "spec.invoke"}},
		"invoke and destroy":                  {plan(spec{"invoke": []any{"action.a_b.c"}, "destroy": true}), []string{"spec.destroy", "spec.invoke"}},
		"target in another namespace":         {plan(spec{"targets": []any{"namespace.other.a_b.c"}}), []string{"spec.targets[0]", "own namespace"}},
		"target that is a Secret":             {plan(spec{"targets": []any{"secret.a"}}), []string{"spec.targets[0]", "not part of a plan"}},
		"metadata that is a list":             {config(spec{"provider": "aws", "meta": []any{"x"}}), []string{"spec.meta", "map"}},
		"refresh only, of nothing":            {plan(spec{"refresh": "None", "refreshOnly": true}), []string{"spec.refresh"}},
		"an object that is larger than 2 MiB": {config(spec{"provider": "aws", "config": spec{"x": strings.Repeat("a", 2<<20)}}), []string{"too large"}},
	} {
		t.Run(name, func(t *testing.T) {
			resource, target := resourceOf(test.obj), ns
			if resource == providers {
				target = ""
			}
			_, err := objects(t, shared.admin()).Resource(resource).Namespace(target).Create(t.Context(), test.obj,
				metav1.CreateOptions{FieldValidation: "Strict", DryRun: []string{metav1.DryRunAll}})
			if len(test.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatalf("accepted; want an error that says %q", test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", shorten(err.Error()), want)
				}
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d characters", len(err.Error()))
			}
		})
	}
}

func TestImmutableFields(t *testing.T) {
	ns := namespace(t, "immutable")
	admin := objects(t, shared.admin())
	for name, test := range map[string]struct {
		obj         *unstructured.Unstructured
		field       []string
		value, want string
	}{
		"source of a provider":   {newObject("Provider", "immutable", map[string]any{"source": "a/b"}), []string{"spec", "source"}, "a/c", "FieldValueInvalid spec.source"},
		"provider of a config":   {newObject("ProviderConfig", "c", map[string]any{"provider": "a"}), []string{"spec", "provider"}, "b", "FieldValueInvalid spec.provider"},
		"spec of a plan":         {newPlan("p", nil), []string{"spec", "refresh"}, "All", "FieldValueForbidden spec"},
		"version can, of course": {newObject("Provider", "mutable", map[string]any{"source": "a/b", "version": "1.0.0"}), []string{"spec", "version"}, "2.0.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := admin.Resource(resourceOf(test.obj)).Namespace(namespaceOf(test.obj, ns))
			obj, err := client.Create(t.Context(), test.obj, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := unstructured.SetNestedField(obj.Object, test.value, test.field...); err != nil {
				t.Fatal(err)
			}
			updated, err := client.Update(t.Context(), obj, metav1.UpdateOptions{})
			if test.want == "" {
				if err != nil || updated.GetGeneration() != 2 {
					t.Fatalf("update: %v, generation %d, want 2", err, updated.GetGeneration())
				}
				return
			}
			if !apierrors.IsInvalid(err) || !slices.Equal(causes(err), []string{test.want}) {
				t.Errorf("got %v, want Invalid with %q", err, test.want)
			}
		})
	}
}

func TestServerSetsTheFirstStatusOfAPlan(t *testing.T) {
	ns := namespace(t, "beginnings")
	obj := newPlan("p", nil)
	obj.Object["status"] = map[string]any{"digest": "sha256:forged", "requestedBy": map[string]any{"username": "somebody else"}}
	got, err := objects(t, shared.admin()).Resource(plans).Namespace(ns).Create(t.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := planOf(t, got)
	if p.Spec.Refresh != v1alpha1.RefreshChanged || p.Spec.Approval != v1alpha1.ApprovalManual {
		t.Errorf("defaults: refresh %q, approval %q", p.Spec.Refresh, p.Spec.Approval)
	}
	if p.Status.Digest != "" {
		t.Errorf("a status that the client made up was taken: %q", p.Status.Digest)
	}
	if p.Status.RequestedBy == nil || p.Status.RequestedBy.Username != "hykube:admin" {
		t.Errorf("requested by %+v", p.Status.RequestedBy)
	}
	ready := condition(p, v1alpha1.ConditionReady)
	if ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonPlanning || ready.ObservedGeneration != 1 {
		t.Errorf("condition Ready: %+v", ready)
	}
	if condition(p, v1alpha1.ConditionReconciling).Status != metav1.ConditionTrue {
		t.Errorf("a new plan is not Reconciling: %+v", p.Status.Conditions)
	}
}

// TestDeletionOfWhatIsInUse deletes objects that existing resources need. They are marked and name what they wait for,
// and the deletion can be reverted.
func TestDeletionOfWhatIsInUse(t *testing.T) {
	ns := namespace(t, "in-use")
	for _, obj := range []*unstructured.Unstructured{
		newObject("Provider", "used", map[string]any{"source": "a/b"}), newObject("ProviderConfig", "used", map[string]any{"provider": "used"}),
		{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "used"}}},
		{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "used"}}},
	} {
		t.Run(obj.GetKind(), func(t *testing.T) {
			gvr := resourceOf(obj)
			message := "3 resources need it, such as sim-network/main in namespace prod. The server removes it when their infrastructure is destroyed"
			var client dynamic.ResourceInterface = objects(t, shared.admin()).Resource(gvr).Namespace(ns)
			if obj.GetKind() == "Provider" {
				message = "3 objects of its kinds exist, such as sim-network/main in namespace prod. The server removes it with the last of them"
				client = objects(t, shared.admin()).Resource(gvr)
			}
			if _, err := client.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := client.Delete(t.Context(), "used", metav1.DeleteOptions{DryRun: []string{"All"}}); err != nil {
				t.Fatal(err)
			}
			if got, err := client.Get(t.Context(), "used", metav1.GetOptions{}); err != nil || got.GetDeletionTimestamp() != nil {
				t.Fatalf("after a dry run: %v %v", got, err)
			}
			for _, remove := range []func() error{
				func() error { return client.Delete(t.Context(), "used", metav1.DeleteOptions{}) },
				func() error {
					return client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=used"})
				},
			} {
				if err := remove(); err != nil {
					t.Fatalf("delete: %v", err)
				}
				got, err := client.Get(t.Context(), "used", metav1.GetOptions{})
				if err != nil {
					t.Fatalf("what is in use: %v", err)
				}
				if got.GetDeletionTimestamp() == nil || !slices.Contains(got.GetFinalizers(), v1alpha1.FinalizerInUse) {
					t.Errorf("it is not marked: %v", got.Object["metadata"])
				}
				if said := fmt.Sprint(got.GetAnnotations()[v1alpha1.AnnotationInUseBy], got.Object["status"]); !strings.Contains(said, message) {
					t.Errorf("it does not say what it waits for: %s", said)
				}
				patch := []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`)
				if _, err := client.Patch(t.Context(), "used", types.JSONPatchType, patch, metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
					t.Errorf("take the finalizer away: %v", err)
				}
				body := &unstructured.Unstructured{Object: map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": map[string]any{"name": "used"}}}
				back, err := client.Create(t.Context(), body, metav1.CreateOptions{}, "undelete")
				if err != nil {
					t.Fatalf("undelete: %v", err)
				}
				if back.GetDeletionTimestamp() != nil || len(back.GetFinalizers()) > 0 || back.GetUID() != got.GetUID() || back.GetAnnotations()[v1alpha1.AnnotationInUseBy] != "" {
					t.Errorf("after undelete: %v", back.Object["metadata"])
				}
				if strings.Contains(fmt.Sprint(back.Object["status"]), v1alpha1.ConditionInUse) {
					t.Errorf("after undelete: %v", back.Object["status"])
				}
				if _, err := client.Create(t.Context(), body, metav1.CreateOptions{}, "undelete"); !apierrors.IsConflict(err) {
					t.Errorf("undelete what is not being deleted: %v", err)
				}
			}
		})
	}
}

// TestDeletionOfWhatNothingNeeds expects an unused object to be removed before the response.
func TestDeletionOfWhatNothingNeeds(t *testing.T) {
	ns := namespace(t, "not-in-use")
	secrets := core(t, shared.admin()).CoreV1().Secrets(ns)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := secrets.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after its deletion: %v", err)
	}
	if err := secrets.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if list, err := secrets.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("after the deletion of all: %v %v", list.Items, err)
	}
}

func TestObjectsNeedTheirNamespace(t *testing.T) {
	_, err := objects(t, shared.admin()).Resource(plans).Namespace("missing").Create(t.Context(), newPlan("p", nil), metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) || kindOf(err) != "namespaces" {
		t.Errorf("got %v, want NotFound of the namespace", err)
	}
}

func TestDeletedNamespaceIsEmptiedAndRemoved(t *testing.T) {
	t.Parallel() // the controller waits for five seconds before it begins
	ns := namespace(t, "short-lived")
	client := objects(t, shared.admin()).Resource(plans).Namespace(ns)
	if _, err := client.Create(t.Context(), newPlan("p", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	namespaces := core(t, shared.admin()).CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() bool {
		_, err := namespaces.Get(t.Context(), ns, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if list, err := client.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("plans after it: %v, %v", list, err)
	}
}

func TestChangesArePaged(t *testing.T) {
	ns := namespace(t, "changes")
	if _, err := objects(t, shared.admin()).Resource(plans).Namespace(ns).Create(t.Context(), newPlan("p", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"":                     `p, 500 after \"\"`,
		"?limit=7&continue=x7": `p, 7 after \"x7\"`,
		"?limit=100000":        `p, 5000 after \"\"`,
	} {
		body, err := core(t, shared.admin()).Discovery().RESTClient().Get().RequestURI("/apis/hykube.io/v1alpha1/namespaces/" + ns + "/plans/p/changes" + query).DoRaw(t.Context())
		if err != nil || !strings.Contains(string(body), want) || !strings.Contains(string(body), "sim_network.main") {
			t.Errorf("changes%s: %s, %v; want %s", query, body, err, want)
		}
	}
}

func resourceOf(obj *unstructured.Unstructured) schema.GroupVersionResource {
	switch obj.GetKind() {
	case "Provider":
		return providers
	case "ProviderConfig":
		return providerConfigs
	case "Secret":
		return corev1.SchemeGroupVersion.WithResource("secrets")
	case "ConfigMap":
		return corev1.SchemeGroupVersion.WithResource("configmaps")
	}
	return plans
}

func namespaceOf(obj *unstructured.Unstructured, ns string) string {
	if obj.GetKind() == "Provider" {
		return ""
	}
	return ns
}

func shorten(s string) string { return s[:min(len(s), 400)] }
