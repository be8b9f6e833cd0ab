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
		"at the top":                        {"{dta: {}, spec: {}}", reflect.TypeFor[corev1.ConfigMap](), []string{`unknown field "dta" (did you mean "data"?)`, `unknown field "spec" (the fields are apiVersion, binaryData, data, immutable, kind, metadata)`}},
		"in metadata":                       {"{metadata: {labls: {}}}", reflect.TypeFor[corev1.Secret](), []string{`unknown field "metadata.labls" (did you mean "labels"?)`}},
		"in a list":                         {"{spec: {secretRefs: [{nmae: x, argument: y}]}}", reflect.TypeFor[v1alpha1.ProviderConfig](), []string{`unknown field "spec.secretRefs[0].nmae" (did you mean "name"?)`}},
		"one level too high":                {"{provider: sim}", reflect.TypeFor[v1alpha1.ProviderConfig](), []string{`unknown field "provider" (did you mean "spec.provider"?)`}},
		"a name that YAML reads as a value": {"{spec: {plan: {on: [Change]}}}", reflect.TypeFor[v1alpha1.Stack](), []string{`unknown field "spec.plan.true" (YAML reads on, yes, off and no without quotes as true and false; kubectl explain lists the fields)`}},
		"below what is any object":          {"{spec: {config: {regoin: x}}}", reflect.TypeFor[v1alpha1.ProviderConfig](), nil},
		"of another type than said":         {"{spec: 1, data: []}", reflect.TypeFor[corev1.Secret](), []string{`unknown field "spec" (the fields are apiVersion, data, immutable, kind, metadata, stringData, type)`}},
		"like none of few fields":           {"{spec: {secretRefs: [{secretRef: {name: x, key: y}}]}}", reflect.TypeFor[v1alpha1.ProviderConfig](), []string{`unknown field "spec.secretRefs[0].secretRef" (the fields are argument, key, name, rotates)`}},
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

func TestCheckValues(t *testing.T) {
	for reason, tt := range map[string]struct{ object, want string }{
		"a number in quotes": {`{spec: {count: "3"}}`, "spec.count: must be an integer of 32 bits, but is a string; write it without quotes"},
		"an expression":      {`{spec: {count: "${configmap.a.n}"}}`, "spec.count: must be an integer of 32 bits, but is a string; this field takes no expression"},
		"a text":             {`{spec: {count: three}}`, "spec.count: must be an integer of 32 bits, but is a string"},
		"too large a number": {`{spec: {count: "3000000000"}}`, "spec.count: must be an integer of 32 bits, but is a string"},
	} {
		t.Run(reason, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(tt.object), &object); err != nil {
				t.Fatal(err)
			}
			got := CheckValues(object, reflect.TypeFor[v1alpha1.ResourceSet]())
			if len(got) != 1 || got[0].Error() != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}
