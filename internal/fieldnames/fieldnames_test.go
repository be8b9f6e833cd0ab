package fieldnames

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestCheck(t *testing.T) {
	for reason, tt := range map[string]struct {
		object string
		of     reflect.Type
		want   []string
	}{
		"what is right":                     {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: y}, creationTimestamp: null}, data: {any: thing}}", reflect.TypeFor[corev1.ConfigMap](), nil},
		"at the top":                        {"{dta: {}, spec: {}}", reflect.TypeFor[corev1.ConfigMap](), []string{`unknown field "dta" (did you mean "data"?)`, `unknown field "spec"`}},
		"in metadata":                       {"{metadata: {labls: {}}}", reflect.TypeFor[corev1.Secret](), []string{`unknown field "metadata.labls" (did you mean "labels"?)`}},
		"in a list":                         {"{spec: {secretRefs: [{nmae: x, argument: y}]}}", reflect.TypeFor[v1alpha1.ProviderConfig](), []string{`unknown field "spec.secretRefs[0].nmae" (did you mean "name"?)`}},
		"one level too high":                {"{provider: sim}", reflect.TypeFor[v1alpha1.ProviderConfig](), []string{`unknown field "provider" (did you mean "spec.provider"?)`}},
		"a name that YAML reads as a value": {"{spec: {plan: {on: [Change]}}}", reflect.TypeFor[v1alpha1.Stack](), []string{`unknown field "spec.plan.true" (YAML reads on, yes, off and no without quotes as true and false; kubectl explain lists the fields)`}},
		"below what is any object":          {"{spec: {config: {regoin: x}}}", reflect.TypeFor[v1alpha1.ProviderConfig](), nil},
		"of another type than said":         {"{spec: 1, data: []}", reflect.TypeFor[corev1.Secret](), []string{`unknown field "spec"`}},
	} {
		t.Run(reason, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(tt.object), &object); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range Check(object, tt.of) {
				got = append(got, u.Error())
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
