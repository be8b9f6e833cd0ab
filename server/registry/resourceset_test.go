package registry

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resourceset"
)

// setOf returns a set whose spec is the result of the changes.
func setOf(changes ...func(*v1alpha1.ResourceSetSpec)) *v1alpha1.ResourceSet {
	s := &v1alpha1.ResourceSet{ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: "prod", UID: "u"}}
	s.Spec.Template.APIVersion, s.Spec.Template.Kind = "sim.hykube.io/v1", "sim-instance"
	for _, change := range changes {
		change(&s.Spec)
	}
	return s
}

func counted(n int32) func(*v1alpha1.ResourceSetSpec) {
	return func(s *v1alpha1.ResourceSetSpec) { s.Count = &n }
}

func keyed(raw string) func(*v1alpha1.ResourceSetSpec) {
	return func(s *v1alpha1.ResourceSetSpec) { s.ForEach = &v1alpha1.JSON{Raw: []byte(raw)} }
}

func keyedFrom(name string) func(*v1alpha1.ResourceSetSpec) {
	return func(s *v1alpha1.ResourceSetSpec) {
		s.ForEachFrom = &v1alpha1.ForEachSource{ConfigMap: v1alpha1.ForEachConfigMap{Name: name}}
	}
}

func TestChangesOfASetNeedTheVerbsOfTheirInstances(t *testing.T) {
	for why, tc := range map[string]struct {
		old, now *v1alpha1.ResourceSet
		want     string
	}{
		"the template alone":          {setOf(counted(2)), setOf(counted(2)), "update"},
		"more instances":              {setOf(counted(2)), setOf(counted(3)), "update create"},
		"fewer instances":             {setOf(counted(3)), setOf(counted(2)), "update delete"},
		"another key":                 {setOf(keyed(`["a"]`)), setOf(keyed(`["b"]`)), "update create delete"},
		"a key less":                  {setOf(keyed(`["a","b"]`)), setOf(keyed(`["b"]`)), "update delete"},
		"another value":               {setOf(keyed(`{"a":1}`)), setOf(keyed(`{"a":2}`)), "update"},
		"keys instead of indexes":     {setOf(counted(1)), setOf(keyed(`["0"]`)), "update create delete"},
		"keys that a ConfigMap has":   {setOf(counted(1)), setOf(keyedFrom("keys")), "update create delete"},
		"keys that a ConfigMap had":   {setOf(keyedFrom("keys")), setOf(keyedFrom("others")), "update create delete"},
		"no instance any more":        {setOf(counted(1)), setOf(counted(0)), "update delete"},
		"the first instance of a set": {setOf(counted(0)), setOf(counted(1)), "update create"},
	} {
		if got := strings.Join(changeVerbs(tc.now, tc.old), " "); got != tc.want {
			t.Errorf("%s: %s, want %s", why, got, tc.want)
		}
	}
}

func TestOnlyTheServerRemovesTheFinalizerOfASet(t *testing.T) {
	held, free := setOf(counted(1)), setOf(counted(1))
	held.Finalizers = []string{v1alpha1.FinalizerState}
	client := request.WithUser(t.Context(), &user.DefaultInfo{Name: "alice", Groups: []string{user.SystemPrivilegedGroup}})
	if errs := keepsFinalizer(client, free, held); len(errs) != 1 {
		t.Errorf("a client removes it: %v", errs)
	}
	if errs := slices.Concat(keepsFinalizer(client, held, held), keepsFinalizer(client, held, free), keepsFinalizer(client, free, free)); len(errs) > 0 {
		t.Errorf("it stays: %v", errs)
	}
}

func TestResourceSetsAreValidated(t *testing.T) {
	one := counted(1)
	for why, tc := range map[string]struct {
		set  *v1alpha1.ResourceSet
		want string
	}{
		"a count":                {setOf(one), ""},
		"no instances":           {setOf(counted(0)), ""},
		"keys of a ConfigMap":    {setOf(keyedFrom("keys")), ""},
		"neither":                {setOf(), "spec: Required value: one of spec.count"},
		"both":                   {setOf(one, keyed(`["a"]`)), "exclude each other"},
		"a negative count":       {setOf(counted(-1)), "spec.count: Invalid value: -1"},
		"too many":               {setOf(counted(resourceset.MaxInstances + 1)), "must be between 0 and"},
		"a key twice":            {setOf(keyed(`["a","a"]`)), "spec.forEach"},
		"a number as the keys":   {setOf(keyed(`3`)), "spec.forEach"},
		"a name of no ConfigMap": {setOf(keyedFrom("A B")), "spec.forEachFrom.configMap.name"},
		"a name of no object": {setOf(one, func(s *v1alpha1.ResourceSetSpec) {
			s.Template.Metadata.Name = "web[0]"
		}), "spec.template.metadata.name"},
		"an import by a key": {setOf(one, func(s *v1alpha1.ResourceSetSpec) {
			s.Imports = []v1alpha1.InstanceImport{{Key: "a", ID: "i-1"}}
		}), "spec.imports[0].key"},
		"an import of nothing": {setOf(one, func(s *v1alpha1.ResourceSetSpec) {
			s.Imports = []v1alpha1.InstanceImport{{Key: "0"}}
		}), "id or identity"},
		"an expression in an import": {setOf(one, func(s *v1alpha1.ResourceSetSpec) {
			s.Imports = []v1alpha1.InstanceImport{{Key: "0", Identity: &runtime.RawExtension{Raw: []byte(`{"id":"${secret.db.password}"}`)}}}
		}), "spec.imports[0].identity: Invalid value: must not have an expression"},
		"an identity": {setOf(one, func(s *v1alpha1.ResourceSetSpec) {
			s.Imports = []v1alpha1.InstanceImport{{Key: "0", Identity: &runtime.RawExtension{Raw: []byte(`{"id":"net-1"}`)}}}
		}), ""},
		"a move from a data source": {setOf(one, func(s *v1alpha1.ResourceSetSpec) {
			s.Moved = []v1alpha1.InstanceMove{{Key: "0", From: "data.sim_image.base"}}
		}), "spec.moved[0].from"},
	} {
		errs := validateResourceSet(tc.set)
		if text := errs.ToAggregate(); tc.want == "" && len(errs) > 0 || tc.want != "" && (text == nil || !strings.Contains(text.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", why, text, tc.want)
		}
	}
}
