package e2e

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/tests/harness"
)

// referenceForm is a way in which an object names another one, and the right that this requires.
type referenceForm struct {
	name string
	// object is YAML without a name.
	object string
	// right is the right that the form takes: one of those of lackingRoles.
	right string
	// approver is true if the approver needs the right, too: for a ProviderConfig, and for objects that the plan
	// creates along with the object.
	approver bool
	// planned is YAML of the planned object, if it differs from object.
	planned string
	// unasked is true if only the author needs the right.
	unasked bool
	// authorOnly is true for requests without an object.
	authorOnly bool
}

// simNetwork is a network with a lifecycle and a name.
func simNetwork(lifecycle, name string) string {
	return fmt.Sprintf("apiVersion: sim.hykube.io/v1\nkind: sim-network\nlifecycle: {%s}\nspec: {name: '%s', cidr: 10.0.0.0/16}\n", lifecycle, name)
}

// simNetworks is a ResourceSet of networks with a name.
func simNetworks(spec, name string) string {
	return fmt.Sprintf("apiVersion: hykube.io/v1alpha1\nkind: ResourceSet\nspec:\n  %s\n  template: {apiVersion: sim.hykube.io/v1, kind: sim-network, spec: {name: '%s', cidr: 10.0.0.0/16}}\n", spec, name)
}

var referenceForms = []referenceForm{
	{name: "spec", right: "images", object: simNetwork("", "x-${data.sim_image.base.id}")},
	{name: "condition", right: "images", object: simNetwork(`preconditions: [{condition: '${data.sim_image.base.id != ""}', errorMessage: e}]`, "x")},
	{name: "message", right: "images", object: simNetwork(`postconditions: [{condition: '${self.name != ""}', errorMessage: 'not ${data.sim_image.base.id}'}]`, "x")},
	{name: "depends-on", right: "images", object: simNetwork("dependsOn: [data.sim_image.base]", "x")},
	{name: "trigger", right: "disks", approver: true, object: simNetwork("replaceTriggeredBy: [sim_disk.target]", "x")},
	{name: "moved", right: "disks", object: simNetwork("moved: {from: sim_disk.target}", "x")},
	{name: "import", right: "configmaps", object: simNetwork("import: {id: '${configmap.settings.id}'}", "value")},
	{name: "configmap", right: "configmaps", object: simNetwork("", "x-${configmap.settings.key}")},
	{name: "secret", right: "secrets", object: simNetwork("", "x-${secret.settings.key}")},
	{name: "elsewhere", right: "elsewhere", object: simNetwork("", "x-${namespace.rights-elsewhere.configmap.settings.key}")},
	{name: "provider-config", right: "other", approver: true, object: simNetwork("providerConfig: other", "x")},
	{name: "default-config", right: "default", approver: true, object: simNetwork("", "x")},
	{name: "data", right: "configmaps", object: "apiVersion: sim.hykube.io/v1\nkind: data-sim-network\nspec: {name: '${configmap.settings.key}'}\n"},
	{name: "ephemeral", right: "configmaps", object: "apiVersion: sim.hykube.io/v1\nkind: ephemeral-sim-token\nspec: {name: '${configmap.settings.key}'}\n", planned: simNetwork("providerConfig: ephemeral", "x")},
	{name: "config-argument", right: "configmaps", planned: simNetwork("providerConfig: form-config-argument", "x"), object: "apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nspec: {provider: sim, config: {token: '${configmap.settings.key}'}}\n"},
	{name: "secret-ref", right: "secrets", unasked: true, planned: simNetwork("providerConfig: form-secret-ref", "x"), object: "apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nspec: {provider: sim, secretRefs: [{argument: token, name: settings, key: key}]}\n"},
	{name: "set-template", right: "images", object: simNetworks("count: 1", "x-${data.sim_image.base.id}")},
	{name: "set-keys", right: "configmaps", object: simNetworks("forEachFrom: {configMap: {name: settings}}", "x-${each.key}")},
	{name: "set-moved", right: "disks", object: simNetworks("count: 1\n  moved: [{key: '0', from: sim_disk.target}]", "x")},
	{name: "set-default-config", right: "default", approver: true, object: simNetworks("count: 1", "x")},
	{name: "query", right: "other", authorOnly: true, object: "apiVersion: hykube.io/v1alpha1\nkind: Query\nspec: {type: sim_network, providerConfig: other}\n"},
}

// checkLifecycleForms fails the test if no form covers a field of lifecycle that can name an object.
func checkLifecycleForms(t *testing.T) {
	ownArguments := []string{"ignoreChanges"} // it names arguments of the object itself
	covered := map[string]bool{}
	for _, form := range referenceForms {
		var object struct{ Lifecycle map[string]any }
		if err := yaml.Unmarshal([]byte(form.object), &object); err != nil {
			t.Fatal(err)
		}
		for name := range object.Lifecycle {
			covered[name] = true
		}
	}
	for field := range reflect.TypeFor[resource.Lifecycle]().Fields() {
		name, kind := field.Tag.Get("json"), field.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind.Kind() != reflect.Bool && !covered[name] && !slices.Contains(ownArguments, name) {
			t.Errorf("lifecycle.%s may name an object, and no form of the table has it", name)
		}
	}
}

// lackingRoles holds the rights that a user of this test may lack, each with the rule that grants it.
var lackingRoles = map[string]string{
	"images":     "{apiGroups: [sim.hykube.io], resources: [data-sim-image], verbs: [get]}",
	"disks":      "{apiGroups: [sim.hykube.io], resources: [sim-disks], verbs: [get, create, update, delete]}",
	"configmaps": "{apiGroups: [''], resources: [configmaps], verbs: [get]}",
	"secrets":    "{apiGroups: [''], resources: [secrets], verbs: [get]}",
	"other":      "{apiGroups: [hykube.io], resources: [providerconfigs], resourceNames: [other], verbs: [use]}",
	"default":    "{apiGroups: [hykube.io], resources: [providerconfigs], resourceNames: [default], verbs: [use]}",
}

// alwaysRole has the rights of every user of this test.
const alwaysRole = `
- {apiGroups: [sim.hykube.io], resources: [sim-networks, data-sim-networks, ephemeral-sim-tokens, ephemeral-sim-tokens/state], verbs: ['*']}
- {apiGroups: [hykube.io], resources: [plans], verbs: ['*']}
- {apiGroups: [hykube.io], resources: [plans/approval, plans/changes, queries, resourcesets], verbs: ['*']}
- {apiGroups: [hykube.io], resources: [providerconfigs], verbs: [get, create, update, patch]}
- {apiGroups: [hykube.io], resources: [providerconfigs], resourceNames: [ephemeral, form-config-argument, form-secret-ref], verbs: [use]}
`

// testReferences writes, plans and approves each form, as authors, requesters and approvers who lack one right or have
// all.
func testReferences(t *testing.T, config *rest.Config) (cells int) {
	checkLifecycleForms(t)
	const namespace = "rights-actors"
	existing, err := cloud.Create(t.Context(), "network", map[string]any{"name": "value", "cidr": "10.0.0.0/16"})
	if err != nil {
		t.Fatal(err)
	}
	var setup strings.Builder
	fmt.Fprintf(&setup, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: rights-elsewhere}\n", namespace)
	add := func(format string, args ...any) { fmt.Fprintf(&setup, "---\n"+format, args...) }
	for _, ns := range []string{namespace, "rights-elsewhere"} {
		add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: %s}\ndata: {key: value, id: %s}\n", ns, existing.ID())
	}
	add("apiVersion: v1\nkind: Secret\nmetadata: {name: settings, namespace: %s}\nstringData: {key: value}\n", namespace)
	for _, name := range []string{"default", "other"} {
		add("apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: %s, namespace: %s}\nspec: {provider: sim, config: {endpoint: %q}}\n", name, namespace, cloud.Address)
	}
	add("apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: ephemeral, namespace: %s}\nspec: {provider: sim, config: {endpoint: %q, token: '${ephemeral.sim_token.form-ephemeral.value}'}}\n", namespace, cloud.Address)
	add("apiVersion: sim.hykube.io/v1\nkind: data-sim-image\nmetadata: {name: base, namespace: %s}\nspec: {family: debian}\n", namespace)
	add("apiVersion: sim.hykube.io/v1\nkind: sim-disk\nmetadata: {name: target, namespace: %s}\nspec: {name: rights-target, size_gb: 1}\n", namespace)
	users := []string{"all", "elsewhere"}
	for right := range lackingRoles {
		users = append(users, right)
	}
	for _, user := range users {
		rules := alwaysRole
		for right, rule := range lackingRoles {
			if right != user {
				rules += "- " + rule + "\n"
			}
		}
		add("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: %[1]s, namespace: %[2]s}\nrules:%[3]s", user, namespace, rules)
		add("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: %[1]s, namespace: %[2]s}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}\nsubjects: [{kind: User, name: lacks-%[1]s, apiGroup: rbac.authorization.k8s.io}]\n", user, namespace)
		if user != "elsewhere" {
			add("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: %[1]s, namespace: rights-elsewhere}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: [{kind: User, name: lacks-%[1]s, apiGroup: rbac.authorization.k8s.io}]\n", user)
		}
	}
	kubectlWith(t, setup.String(), "create", "-f", "-")
	t.Cleanup(func() { kubectlOf("delete", "namespace", namespace, "rights-elsewhere", "--wait=false") })

	as := func(user string) dynamic.Interface {
		c := rest.CopyConfig(config)
		if user != "" {
			c.Impersonate = rest.ImpersonationConfig{UserName: "lacks-" + user, Groups: []string{"system:authenticated"}}
		}
		client, err := dynamic.NewForConfig(c)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	put := func(ctx context.Context, user string, form referenceForm, options metav1.CreateOptions) error {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(form.object), &u.Object); err != nil {
			return err
		}
		u.SetName("form-" + form.name)
		plural := map[string]string{"ProviderConfig": "providerconfigs", "Query": "queries", "ResourceSet": "resourcesets"}[u.GetKind()]
		if plural == "" {
			plural = u.GetKind() + "s"
		}
		_, err := as(user).Resource(u.GroupVersionKind().GroupVersion().WithResource(plural)).Namespace(namespace).Create(ctx, u, options)
		return err
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if err := harness.Within(30*time.Second, func() error { return put(t.Context(), "all", referenceForms[9], dry) }); err != nil {
		t.Fatalf("the rights of the test's users: %v", err)
	}
	for _, form := range referenceForms {
		for _, user := range users {
			cells++
			err := put(t.Context(), user, form, dry)
			// An object that names no ProviderConfig uses the default one.
			takesDefault := strings.Contains(form.object, "apiVersion: sim.") && !strings.Contains(form.object, "providerConfig")
			lacks := user == form.right || user == "default" && takesDefault
			if refused := apierrors.IsForbidden(err); refused != lacks || err != nil && !refused {
				t.Errorf("author without %s, %s: %v", user, form.name, err)
			}
		}
	}
	return cells + testPlansOfReferences(t, as, put, namespace)
}

// testPlansOfReferences plans each form as a requester who lacks its right, and as one who has all. It approves the
// plan of the latter as both.
func testPlansOfReferences(t *testing.T, as func(string) dynamic.Interface, put func(context.Context, string, referenceForm, metav1.CreateOptions) error, namespace string) (cells int) {
	plans := kschema.GroupVersionResource{Group: "hykube.io", Version: "v1alpha1", Resource: "plans"}
	for _, form := range referenceForms {
		if form.authorOnly {
			continue
		}
		cells += 4
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			if err := put(t.Context(), "", form, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if form.planned != "" {
				planned := form
				planned.object = form.planned
				if err := put(t.Context(), "", planned, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			target := fmt.Sprintf("sim_network[%q]", "form-"+form.name)
			if form.name == "data" {
				target = "data." + target
			}
			plan := func(user string) *unstructured.Unstructured {
				u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "hykube.io/v1alpha1", "kind": "Plan",
					"spec": map[string]any{"targets": []any{target}}}}
				u.SetName("plan-" + form.name + "-" + user)
				if _, err := as(user).Resource(plans).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				made := u
				if err := harness.Within(time.Minute, func() (err error) {
					if made, err = as("").Resource(plans).Namespace(namespace).Get(t.Context(), u.GetName(), metav1.GetOptions{}); err != nil {
						return err
					}
					if planned(made) == "" {
						return fmt.Errorf("plan %s is not made yet", u.GetName())
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				return made
			}
			u := plan(form.right)
			if refused := planned(u) == "False" && refusesARight(u); refused == form.unasked || !refused && planned(u) != "True" {
				t.Errorf("requester without %s: %v", form.right, u.Object["status"])
			}
			made := plan("all")
			if planned(made) != "True" {
				t.Fatalf("requester with all rights: %v", made.Object["status"])
			}
			if form.name == "data" {
				return // the plan changes nothing and needs no approval
			}
			digest, _, _ := unstructured.NestedString(made.Object, "status", "digest")
			for _, user := range []string{form.right, "all"} {
				sent := made.DeepCopy()
				sent.Object["status"] = map[string]any{"approval": map[string]any{"decision": "Approved", "digest": digest}}
				_, err := as(user).Resource(plans).Namespace(namespace).Update(t.Context(), sent, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}, "approval")
				lacks := form.approver && user == form.right
				if refused := apierrors.IsForbidden(err); refused != lacks || err != nil && !refused {
					t.Errorf("approver without %s: %v", user, err)
				}
			}
		})
	}
	return cells
}

// planned returns the status of the condition Planned; "" until the plan is made or has failed.
func planned(u *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, _ := c.(map[string]any); m["type"] == "Planned" {
			status, _ := m["status"].(string)
			return status
		}
	}
	return ""
}

// refusesARight reports whether a plan failed because of a missing right.
func refusesARight(u *unstructured.Unstructured) bool {
	diagnostics, _, _ := unstructured.NestedSlice(u.Object, "status", "diagnostics")
	text := fmt.Sprint(diagnostics)
	return strings.Contains(text, "may not read") || strings.Contains(text, "may not use") || strings.Contains(text, "has no right to")
}
