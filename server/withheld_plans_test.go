package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/tests/harness"
)

// TestDiagnosticsOfOthersAreWithheld reads a plan with the diagnostics of several objects in every way that has its status, as users
// who may get some of them. A diagnostic of an instance may quote its template, and a ConfigMap.
func TestDiagnosticsOfOthersAreWithheld(t *testing.T) {
	ns := namespace(t, "withheld")
	addresses := []string{"sim_network.mine", "sim_network.other", "gone_thing.main", "ProviderConfig/other", "sim_network.hosts[0]", "module.shop.sim_network.main", "module.shop"}
	const check, output = "module.shop.check.url", "module.shop.url"
	p := planned(t, shared, ns, func(p *v1alpha1.Plan) {
		for _, address := range append([]string{""}, addresses...) {
			p.Status.Diagnostics = append(p.Status.Diagnostics, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityWarning, Address: address, Summary: "text of " + address, Detail: "text of " + address, Attribute: "spec.text of " + address})
		}
		p.Status.Checks = []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityWarning, Address: check, Summary: "text of " + check}}
		p.Status.Outputs = []v1alpha1.PlanOutput{{Module: "shop", Name: "url", Before: &v1alpha1.JSON{Raw: []byte(`"text of ` + output + `"`)}}}
	})
	read := rbacv1.PolicyRule{APIGroups: []string{"hykube.io"}, Resources: []string{"plans", "plans/status", "plans/approval", "plans/cancel"}, Verbs: []string{"*"}}
	configs := rbacv1.PolicyRule{APIGroups: []string{"hykube.io"}, Resources: []string{"providerconfigs"}, Verbs: []string{"get"}}
	networks := rbacv1.PolicyRule{APIGroups: []string{"sim.hykube.io"}, Resources: []string{"sim-networks"}, Verbs: []string{"get"}}
	mine := networks
	mine.ResourceNames = []string{"mine"}
	templates := rbacv1.PolicyRule{APIGroups: []string{"hykube.io"}, Resources: []string{"resourcesets", "modules"}, Verbs: []string{"get"}}
	configMaps := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}
	for user, rules := range map[string][]rbacv1.PolicyRule{"viewer": {read, mine}, "editor": {read, networks, configs, templates}, "approver": {read, networks, templates, configMaps}} {
		rbac := core(t, shared.admin()).RbacV1()
		if _, err := rbac.Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := rbac.RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	instances := "sim_network.hosts[0] module.shop.sim_network.main module.shop " + check + " "
	for user, withheld := range map[string]string{
		"viewer": instances + output + " sim_network.other gone_thing.main ProviderConfig/other", "editor": instances + "gone_thing.main", "approver": "gone_thing.main ProviderConfig/other",
	} {
		client := objects(t, shared.as(user)).Resource(plans).Namespace(ns)
		if err := harness.Within(deadline, func() error {
			_, err := client.List(t.Context(), metav1.ListOptions{})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for how, answer := range answersWith(t, client, p.Name) {
			text, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			for _, address := range append([]string{check, output}, addresses...) {
				hidden, named := !strings.Contains(string(text), "text of "+address+`"`), strings.Contains(string(text), `"`+address+`"`)
				if want := slices.Contains(strings.Fields(withheld), address); hidden != want || named != (address != output) {
					t.Errorf("%s, %s: the text of %s is withheld %t, want %t: %s", user, how, address, hidden, want, text)
				}
			}
		}
	}
}

// answersWith returns the answers of all requests that return a plan with its status.
func answersWith(t *testing.T, client dynamic.ResourceInterface, name string) map[string]runtime.Object {
	t.Helper()
	answers := map[string]runtime.Object{}
	keep := func(how string, obj runtime.Object, err error) {
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		answers[how] = obj
	}
	patch := func(how, data string, options metav1.PatchOptions, subresources ...string) {
		obj, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(data), options, subresources...)
		keep(how, obj, err)
	}
	for _, sub := range []string{"", "status", "approval", "cancel"} {
		obj, err := client.Get(t.Context(), name, metav1.GetOptions{}, strings.Fields(sub)...)
		keep("get "+sub, obj, err)
	}
	cached, err := client.Get(t.Context(), name, metav1.GetOptions{ResourceVersion: "0"})
	keep("get from the cache", cached, err)
	for _, version := range []string{"", "0"} {
		list, err := client.List(t.Context(), metav1.ListOptions{ResourceVersion: version})
		keep("list of version "+version, list, err)
	}
	w, err := client.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	keep("watch", (<-w.ResultChan()).Object, nil)
	dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	patch("patch", `{"metadata":{"labels":{"a":"b"}}}`, dry)
	patch("approval", `{"status":{"approval":{"decision":"Discarded","digest":"`+digest+`"}}}`, dry, "approval")
	patch("cancel", `{}`, dry, "cancel")
	return answers
}
