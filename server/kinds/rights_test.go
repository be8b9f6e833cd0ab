package kinds_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/kinds"
)

// TestAuthorsNeedTheRightsOfWhatTheyName writes objects as a user who may write networks alone, and use the
// ProviderConfig "mine" alone. The references are to objects of the same namespace.
func TestAuthorsNeedTheRightsOfWhatTheyName(t *testing.T) {
	p := sim()
	p.Schema.Config = &schema.Schema{Block: &schema.Block{Attributes: []*schema.Attribute{{Name: "region", Type: cty.String, Optional: true}}}}
	h := newFixture(t, p)
	mine := `"providerConfig":"mine"`
	with := func(lifecycle, spec string) string {
		return strings.Replace(network("x", spec), `"spec"`, `"lifecycle":{`+lifecycle+`},"spec"`, 1)
	}
	const denied = `user "carol" cannot get data-sim-images.sim.hykube.io "base" in the namespace "default": ask for the verb "get" on it`
	const use = `uses the ProviderConfig "default", and user "carol" cannot use it in the namespace "default": ask for the verb "use" on providerconfigs.hykube.io`
	for reason, test := range map[string]struct {
		body    string
		configs map[string]string
		want    []string
	}{
		"nothing":                    {with(mine, `{"name":"n"}`), nil, nil},
		"a kind that she may read":   {with(mine+`,"dependsOn":["sim_network.a"]`, `{"name":"${sim_network.a.id}"}`), nil, nil},
		"spec":                       {with(mine, `{"name":"${data.sim_image.base.id}"}`), nil, []string{"spec.name, column 3 refers to data.sim_image.base", denied}},
		"a condition":                {with(mine+`,"preconditions":[{"condition":"${data.sim_image.base.size > 1}","errorMessage":"e"}]`, `{"name":"n"}`), nil, []string{"lifecycle.preconditions[0].condition", denied}},
		"the message of a condition": {with(mine+`,"postconditions":[{"condition":"${self.mtu > 1}","errorMessage":"not ${data.sim_image.base.size}"}]`, `{"name":"n"}`), nil, []string{"lifecycle.postconditions[0].errorMessage", denied}},
		"dependsOn":                  {with(mine+`,"dependsOn":["data.sim_image.base"]`, `{"name":"n"}`), nil, []string{"lifecycle.dependsOn[0] refers to data.sim_image.base", denied}},
		"replaceTriggeredBy":         {with(mine+`,"replaceTriggeredBy":["sim_subnet.a.id"]`, `{"name":"n"}`), nil, []string{"lifecycle.replaceTriggeredBy[0] refers to sim_subnet.a", `cannot get sim-subnets.sim.hykube.io "a"`}},
		"moved":                      {with(mine+`,"moved":{"from":"sim_subnet.a"}`, `{"name":"n"}`), nil, []string{"lifecycle.moved.from refers to sim_subnet.a", `cannot get sim-subnets.sim.hykube.io "a"`}},
		"import":                     {with(mine+`,"import":{"id":"${data.sim_image.base.id}"}`, `{"name":"n"}`), nil, []string{"lifecycle.import.id", denied}},
		"a ConfigMap":                {with(mine, `{"name":"${configmap.app.name}"}`), nil, []string{`cannot get configmaps "app"`}},
		"a type of no provider":      {with(mine, `{"name":"${other_thing.a.id}"}`), nil, []string{`no installed provider has the type "other_thing"`}},
		"another ProviderConfig":     {with(`"providerConfig":"privileged"`, `{"name":"n"}`), nil, []string{`lifecycle.providerConfig uses the ProviderConfig "privileged"`, `user "carol" cannot use it`}},
		"the default one":            {network("x", `{"name":"n"}`), map[string]string{"default": "sim"}, []string{"the object " + use}},
		"one named as the provider":  {network("x", `{"name":"n"}`), map[string]string{"default": "other", "sim": "sim"}, []string{`uses the ProviderConfig "sim"`}},
		"one that is to come":        {network("x", `{"name":"n"}`), nil, []string{"the object " + use}},
	} {
		h.configs = test.configs
		a := h.do(t, carol, http.MethodPost, networks+"?dryRun=All", test.body)
		if (test.want == nil) != (a.code == http.StatusCreated) || test.want != nil && a.code != http.StatusForbidden {
			t.Errorf("%s: %d %s", reason, a.code, a.message())
		}
		for _, want := range test.want {
			if !strings.Contains(a.message(), want) {
				t.Errorf("%s: %q is not in %q", reason, want, a.message())
			}
		}
	}
	// A change asks anew, and a label does not.
	h.configs = map[string]string{}
	maps.Copy(h.configs, map[string]string{"default": "sim"})
	h.create(t, network("theirs", `{"name":"n"}`))
	for body, want := range map[string]int{`{"spec":{"mtu":1}}`: http.StatusForbidden, `{"lifecycle":{"preventDestroy":true}}`: http.StatusForbidden, `{"metadata":{"labels":{"a":"b"}}}`: http.StatusOK} {
		if a := h.do(t, carol, http.MethodPatch, networks+"/theirs", body, "Content-Type: application/merge-patch+json"); a.code != want {
			t.Errorf("%s: %d %s", body, a.code, a.message())
		}
	}
}

// TestAuthorsOfSetsNeedTheRightsOfWhatTheyName asks for the rights of carol as the author of ResourceSets. What a set names
// outside of its template counts like a reference of a single object.
func TestAuthorsOfSetsNeedTheRightsOfWhatTheyName(t *testing.T) {
	h := newFixture(t, sim())
	keys := func(s *v1alpha1.ResourceSet) {
		s.Spec.Count, s.Spec.ForEachFrom = nil, &v1alpha1.ForEachSource{ConfigMap: v1alpha1.ForEachConfigMap{Name: "keys"}}
	}
	for reason, test := range map[string]struct {
		user   string
		change func(*v1alpha1.ResourceSet)
		want   string
	}{
		"nothing":              {carol, func(*v1alpha1.ResourceSet) {}, ""},
		"keys of a ConfigMap":  {carol, keys, `spec.forEachFrom.configMap.name refers to configmap.keys, and user "carol" cannot get configmaps "keys"`},
		"with the right to it": {alice, keys, ""},
		"the record of a kind she reads": {carol, func(s *v1alpha1.ResourceSet) {
			s.Spec.Moved = []v1alpha1.InstanceMove{{Key: "0", From: "sim_network.old"}}
		}, ""},
		"the record of another kind": {carol, func(s *v1alpha1.ResourceSet) {
			s.Spec.Moved = []v1alpha1.InstanceMove{{Key: "0", From: "sim_subnet.a"}}
		},
			`spec.moved[0].from refers to sim_subnet.a, and user "carol" cannot get sim-subnets.sim.hykube.io "a"`},
		"a reference of the template": {carol, func(s *v1alpha1.ResourceSet) { s.Spec.Template.Spec.Raw = []byte(`{"name":"${configmap.app.name}"}`) }, `cannot get configmaps "app"`},
		"another kind":                {carol, func(s *v1alpha1.ResourceSet) { s.Spec.Template.Kind = "sim-subnet" }, "needs the right of its author to create sim-subnets.sim.hykube.io"},
	} {
		s := &v1alpha1.ResourceSet{ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: "default"}}
		s.Spec.Count = new(int32(1))
		s.Spec.Template = v1alpha1.ResourceTemplate{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Spec: &runtime.RawExtension{Raw: []byte(`{"name":"n"}`)}}
		test.change(s)
		err := h.kinds.AuthorizeTemplate(request.WithUser(t.Context(), &user.DefaultInfo{Name: test.user}), kinds.TemplateOf(s), true, store.VerbCreate)
		if (err == nil) != (test.want == "") || err != nil && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", reason, err, test.want)
		}
	}
}

// TestWhoMayDeleteASet asks for the right to delete sets, also those whose kind is not served now. Such a set still has
// infrastructure, which a plan destroys once its kind is served again.
func TestWhoMayDeleteASet(t *testing.T) {
	h := newFixture(t, sim())
	for kind, allowed := range map[string][]string{
		"sim.hykube.io/v1/sim-network": {admin, carol, user.APIServerUser}, "sim.hykube.io/v1/sim-subnet": {admin, user.APIServerUser},
		"sim.hykube.io/v1/sim-gone": {admin, user.APIServerUser}, "gone.hykube.io/v1/gone-network": {admin, user.APIServerUser},
	} {
		at := strings.LastIndex(kind, "/")
		template := kinds.Template{Namespace: "default", Name: "web", APIVersion: kind[:at], Kind: kind[at+1:]}
		for _, who := range []string{admin, carol, user.APIServerUser} {
			err := h.kinds.AuthorizeDelete(request.WithUser(t.Context(), &user.DefaultInfo{Name: who}), template)
			if (err == nil) != slices.Contains(allowed, who) || err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("%s deletes a set of %s: %v", who, kind, err)
			}
		}
	}
}

// TestAProviderWithoutConfigurationTakesNoRight writes an object of a provider that has nothing to configure.
func TestAProviderWithoutConfigurationTakesNoRight(t *testing.T) {
	h := newFixture(t, sim())
	if a := h.do(t, carol, http.MethodPost, networks, network("x", `{"name":"n"}`)); a.code != http.StatusCreated {
		t.Errorf("%d %s", a.code, a.message())
	}
}

// TestWarnsOfNoProviderConfig writes an object before the ProviderConfig that plans need.
func TestWarnsOfNoProviderConfig(t *testing.T) {
	takes := sim()
	takes.Schema.Config = &schema.Schema{Block: &schema.Block{Attributes: []*schema.Attribute{{Name: "region", Type: cty.String, Optional: true}}}}
	const want = `the namespace \"default\" has no ProviderConfig for the provider \"sim\" yet, which takes a configuration; plans need one named \"sim\" or \"default\"`
	for reason, test := range map[string]struct {
		provider kinds.Provider
		configs  map[string]string
		lacks    bool
	}{
		"none":                    {takes, nil, true},
		"one of another provider": {takes, map[string]string{"default": "time"}, true},
		"one of another name":     {takes, map[string]string{"europe": "sim"}, true},
		"the default":             {takes, map[string]string{"default": "sim"}, false},
		"one named so":            {takes, map[string]string{"sim": "sim"}, false},
		"a provider without any":  {sim(), nil, false},
	} {
		h := newFixture(t, test.provider)
		h.configs = test.configs
		a := h.do(t, admin, http.MethodPost, networks, network("x", `{"name":"n"}`))
		if said := strings.Join(a.header.Values("Warning"), " "); a.code != http.StatusCreated || strings.Contains(said, want) != test.lacks {
			t.Errorf("%s: %d %s", reason, a.code, said)
		}
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "sim.hykube.io/v1", "kind": "sim-network", "metadata": map[string]any{"name": "x", "namespace": "default"}, "spec": map[string]any{"name": "n"},
		}}
		problems, err := h.kinds.Check(request.WithUser(t.Context(), &user.DefaultInfo{Name: admin}), []*unstructured.Unstructured{u, u})
		if lacks := len(problems) == 1 && problems[0].Severity == v1alpha1.SeverityWarning; err != nil || lacks != test.lacks {
			t.Errorf("%s: the validation says %v, %v", reason, problems, err)
		}
		if problems, err := h.kinds.Check(t.Context(), []*unstructured.Unstructured{u}); err != nil || len(problems) != 0 {
			t.Errorf("%s: the validation says %v, %v to a user who may not list ProviderConfigs", reason, problems, err)
		}
	}
}
