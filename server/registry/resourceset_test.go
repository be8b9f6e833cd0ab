package registry

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
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

func rolled(raw string) func(*v1alpha1.ResourceSetSpec) {
	return func(s *v1alpha1.ResourceSetSpec) {
		if err := json.Unmarshal([]byte(raw), &s.Rollout); err != nil {
			panic(err)
		}
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
	if errs := keepStateFinalizer(client, free, held, "instances", "set"); len(errs) != 1 {
		t.Errorf("a client removes it: %v", errs)
	}
	if errs := slices.Concat(keepStateFinalizer(client, held, held, "instances", "set"), keepStateFinalizer(client, held, free, "instances", "set"), keepStateFinalizer(client, free, free, "instances", "set")); len(errs) > 0 {
		t.Errorf("it stays: %v", errs)
	}
}

// fieldsOf returns the fields of errors with the types of the errors.
func fieldsOf(errs field.ErrorList) string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Field+": "+string(e.Type))
	}
	return strings.Join(out, ", ")
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
		"neither":                {setOf(), "spec: FieldValueRequired"},
		"both":                   {setOf(one, keyed(`["a"]`)), "spec: FieldValueInvalid"},
		"a negative count":       {setOf(counted(-1)), "spec.count: FieldValueInvalid"},
		"too many":               {setOf(counted(resourceset.MaxCount + 1)), "spec.count: FieldValueInvalid"},
		"a key twice":            {setOf(keyed(`["a","a"]`)), "spec.forEach: FieldValueInvalid"},
		"a number as the keys":   {setOf(keyed(`3`)), "spec.forEach: FieldValueInvalid"},
		"a rollout":              {setOf(one, rolled(`{"maxUnavailable":"10%","waves":[1,"10%",50],"pause":"5m","maxFailures":0}`)), ""},
		"none at once":           {setOf(one, rolled(`{"maxUnavailable":0}`)), "spec.rollout.maxUnavailable: FieldValueInvalid"},
		"a part of an instance":  {setOf(one, rolled(`{"maxUnavailable":"half"}`)), "spec.rollout.maxUnavailable: FieldValueInvalid"},
		"a percentage with sign": {setOf(one, rolled(`{"maxUnavailable":"+5%"}`)), "spec.rollout.maxUnavailable: FieldValueInvalid"},
		"more than all":          {setOf(one, rolled(`{"maxFailures":"101%"}`)), "spec.rollout.maxFailures: FieldValueInvalid"},
		"fewer failures":         {setOf(one, rolled(`{"maxFailures":-1}`)), "spec.rollout.maxFailures: FieldValueInvalid"},
		"waves that descend":     {setOf(one, rolled(`{"waves":["20%","10%"]}`)), "spec.rollout.waves[1]: FieldValueInvalid"},
		"too many waves":         {setOf(one, rolled(`{"waves":[1,2,3,4,5,6,7,8,9,10,11]}`)), "spec.rollout.waves: FieldValueTooMany"},
		"too long a pause":       {setOf(one, rolled(`{"waves":[1],"pause":"25h"}`)), "spec.rollout.pause: FieldValueInvalid"},
		"a pause of no waves":    {setOf(one, rolled(`{"pause":"1m"}`)), "spec.rollout.pause: FieldValueInvalid"},
		"a name of no ConfigMap": {setOf(keyedFrom("A B")), "spec.forEachFrom.configMap.name: FieldValueInvalid"},
		"a name of no object": {setOf(one, func(s *v1alpha1.ResourceSetSpec) {
			s.Template.Metadata.Name = "web[0]"
		}), "spec.template.metadata.name: FieldValueInvalid"},
		"an import by a key": {setOf(one, func(s *v1alpha1.ResourceSetSpec) {
			s.Imports = []v1alpha1.InstanceImport{{Key: "a", ID: "i-1"}}
		}), "spec.imports[0].key: FieldValueInvalid"},
		"an import of nothing": {setOf(one, func(s *v1alpha1.ResourceSetSpec) {
			s.Imports = []v1alpha1.InstanceImport{{Key: "0"}}
		}), "spec.imports[0]: FieldValueRequired"},
		"an expression in an import": {setOf(one, func(s *v1alpha1.ResourceSetSpec) {
			s.Imports = []v1alpha1.InstanceImport{{Key: "0", Identity: &runtime.RawExtension{Raw: []byte(`{"id":"${secret.db.password}"}`)}}}
		}), "spec.imports[0].identity: FieldValueInvalid"},
		"an identity": {setOf(one, func(s *v1alpha1.ResourceSetSpec) {
			s.Imports = []v1alpha1.InstanceImport{{Key: "0", Identity: &runtime.RawExtension{Raw: []byte(`{"id":"net-1"}`)}}}
		}), ""},
		"a move from a data source": {setOf(one, func(s *v1alpha1.ResourceSetSpec) {
			s.Moved = []v1alpha1.InstanceMove{{Key: "0", From: "data.sim_image.base"}}
		}), "spec.moved[0].from: FieldValueInvalid"},
	} {
		errs := validateResourceSet(tc.set)
		if got := fieldsOf(errs); got != tc.want {
			t.Errorf("%s: %v, want %q", why, errs, tc.want)
		}
	}
}

// TestWrittenOfSet tells the imports of a set from the rest of its spec, because an applied import has no effect any more.
func TestWrittenOfSet(t *testing.T) {
	imports := []v1alpha1.InstanceImport{{Key: "1", ID: "net-1"}}
	set := func(count int32, imports []v1alpha1.InstanceImport) *v1alpha1.ResourceSet {
		return &v1alpha1.ResourceSet{Spec: v1alpha1.ResourceSetSpec{Count: &count, Imports: imports}}
	}
	for why, tc := range map[string]struct {
		now, old *v1alpha1.ResourceSet
		want     string
	}{
		"nothing changes":                {set(2, imports), set(2, imports), ""},
		"an import is removed":           {set(2, nil), set(2, imports), "imports"},
		"an import is added":             {set(2, imports), set(2, nil), "imports"},
		"the count changes":              {set(3, imports), set(2, imports), "spec"},
		"the count and an import change": {set(3, nil), set(2, imports), "spec,imports"},
	} {
		if got := strings.Join(writtenOfSet(tc.now, tc.old), ","); got != tc.want {
			t.Errorf("%s: the user wrote %q, want %q", why, got, tc.want)
		}
	}
}
