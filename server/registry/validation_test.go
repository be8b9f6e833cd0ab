package registry

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/schema"
)

// Objects of the fixed kinds are checked without what is stored.
func TestFixed(t *testing.T) {
	block := &schema.Block{
		Attributes: []*schema.Attribute{{Name: "id", Type: cty.String, Computed: true}, {Name: "password", Type: cty.String, Optional: true}},
		Blocks:     []*schema.NestedBlock{{TypeName: "auth", Nesting: schema.NestingSingle, Block: &schema.Block{Attributes: []*schema.Attribute{{Name: "token", Type: cty.String, Optional: true}}}}},
	}
	r := &validations{config: func(provider string) *schema.Block {
		if provider == "sim" {
			return block
		}
		return nil
	}}
	config := func(argument string) string {
		return fmt.Sprintf("{apiVersion: hykube.io/v1alpha1, kind: ProviderConfig, metadata: {name: a, namespace: x}, spec: {provider: sim, secretRefs: [{argument: %s, name: s, key: k}]}}", argument)
	}
	policy := func(kind, when string) string {
		return fmt.Sprintf("{apiVersion: hykube.io/v1alpha1, kind: %s, metadata: {name: a}, spec: {rules: [{name: a, when: '%s', effect: Deny}]}}", kind, when)
	}
	const at = "spec.secretRefs[0].argument: Invalid value: "
	for reason, tt := range map[string]struct {
		object string
		want   []string
	}{
		"a Secret":                               {"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: x}, type: kubernetes.io/tls, stringData: {a: ''}}", nil},
		"a Secret with a misspelled field":       {"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: x}, strngData: {a: ''}}", []string{`strngData: unknown field "strngData" (did you mean "stringData"?)`}},
		"a ConfigMap with a spec":                {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: x}, spec: {}}", []string{`spec: unknown field "spec"`}},
		"a ConfigMap with a bad key":             {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: x}, data: {a/b: c}}", []string{"data[a/b]: Invalid value"}},
		"a value that is no text":                {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: x}, data: {a: 1}}", []string{": "}},
		"a Namespace":                            {"{apiVersion: v1, kind: Namespace, metadata: {name: A}}", []string{"metadata.name: Invalid value"}},
		"a Role":                                 {"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: x}, rules: [{verbs: [get], resource: [plans]}]}", []string{`rules[0].resource: unknown field "rules[0].resource" (did you mean "resources"?)`}},
		"a ProviderConfig with a field too high": {"{apiVersion: hykube.io/v1alpha1, kind: ProviderConfig, metadata: {name: a, namespace: x}, provider: sim}", []string{`provider: unknown field "provider" (did you mean "spec.provider"?)`}},
		"an argument from a Secret":              {config("password"), nil},
		"one of a block":                         {config("auth.token"), nil},
		"one that is misspelled":                 {config("pasword"), []string{at + `the provider has no argument "pasword"; did you mean "password"?`}},
		"one that is misspelled in a block":      {config("auth.tokne"), []string{at + `the provider has no argument "auth.tokne"; did you mean "auth.token"?`}},
		"one that the provider sets":             {config("id"), []string{at + `the provider has no argument "id"`}},
		"a block":                                {config("auth"), []string{at + `"auth" is a block: name an argument of it`}},
		"a PlanPolicy":                           {policy("PlanPolicy", "counts.delete > 0"), nil},
		"a PlanPolicy that does not compile":     {policy("PlanPolicy", "deletes > 0"), []string{"spec.rules[0].when: Invalid value"}},
		"a ClusterPlanPolicy that is no bool":    {policy("ClusterPlanPolicy", "1"), []string{"spec.rules[0].when: Invalid value"}},
		"another API's":                          {"{apiVersion: v1, kind: Elsewhere, metadata: {name: a}, anything: 1}", nil},
	} {
		t.Run(reason, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tt.object), &u.Object); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range r.fixedKindProblems(t.Context(), u) {
				got = append(got, p.Field+": "+p.Message)
			}
			if len(got) != len(tt.want) {
				t.Fatal(cmp.Diff(tt.want, got))
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tt.want[i]) {
					t.Error(cmp.Diff(tt.want, got))
				}
			}
		})
	}
}

// A strict error suggests a similar field, and is otherwise unchanged.
func TestHints(t *testing.T) {
	codecs := NewCodecs()
	for _, tt := range []struct {
		reason string
		s      runtime.NegotiatedSerializer
		object string
		want   string
	}{
		{"a kind of ours", negotiated{codecs.Factory, codecs.Scheme}, `{"apiVersion":"hykube.io/v1alpha1","kind":"Provider","metadata":{"name":"a"},"spec":{"sorce":"x/y"}}`, `strict decoding error: unknown field "spec.sorce" (did you mean "source"?)`},
		{"a kind of Kubernetes", WithHints(legacyscheme.Codecs, legacyscheme.Scheme), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labls":{}},"dta":{},"data":{"a":"b","a":"c"}}`,
			`strict decoding error: unknown field "dta" (did you mean "data"?), duplicate field "data.a", unknown field "metadata.labls" (did you mean "labels"?)`},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			info, _ := runtime.SerializerInfoForMediaType(tt.s.SupportedMediaTypes(), runtime.ContentTypeJSON)
			_, _, err := tt.s.DecoderToVersion(info.StrictSerializer, nil).Decode([]byte(tt.object), nil, nil)
			if err == nil {
				t.Fatal("decoded")
			}
			for _, part := range strings.Split(strings.TrimPrefix(tt.want, "strict decoding error: "), ", ") {
				if !runtime.IsStrictDecodingError(err) || !strings.Contains(err.Error(), part) {
					t.Errorf("got  %v\nwant %s", err, part)
				}
			}
		})
	}
}

// TestValidationOfObjectsWithoutANamespace sends a Namespace and a ConfigMap as files hold them.
func TestValidationOfObjectsWithoutANamespace(t *testing.T) {
	r := &validations{slots: fair.New(1), running: map[string]int{}, check: func(context.Context, []*unstructured.Unstructured) ([]v1alpha1.ValidationProblem, error) {
		return nil, nil
	}}
	v := &v1alpha1.Validation{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}
	for _, text := range []string{`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`} {
		v.Spec.Objects = append(v.Spec.Objects, runtime.RawExtension{Raw: []byte(text)})
	}
	err := r.answer(t.Context(), v, nil, nil)
	if err != nil || len(v.Status.Problems) != 0 {
		t.Errorf("%v, %v; want no problem", v, err)
	}
}

// TestValidationsLeaveProcessorsFree has one check hold the only slot, and then exceed its time.
func TestValidationsLeaveProcessorsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endless := func(ctx context.Context, _ []*unstructured.Unstructured) ([]v1alpha1.ValidationProblem, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		r := &validations{slots: fair.New(1), running: map[string]int{}, check: endless}
		ask := func(ctx context.Context) error {
			return r.answer(ctx, &v1alpha1.Validation{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}, nil, nil)
		}
		first := make(chan error)
		go func() { first <- ask(t.Context()) }()
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := ask(impatient); !apierrors.IsTooManyRequests(err) {
			t.Errorf("beside another check: %v", err)
		}
		for range maxValidations - 1 {
			go func() { _ = ask(t.Context()) }()
		}
		synctest.Wait()
		if err := ask(t.Context()); !apierrors.IsTooManyRequests(err) {
			t.Errorf("beside too many of the same user: %v", err)
		}
		if err := <-first; !apierrors.IsRequestEntityTooLargeError(err) {
			t.Errorf("a check without end: %v", err)
		}
	})
}

// TestProviderConfigWarnings writes ProviderConfigs that no provider accepts yet.
func TestProviderConfigWarnings(t *testing.T) {
	block := &schema.Block{Attributes: []*schema.Attribute{{Name: "region", Type: cty.String, Optional: true}}}
	for reason, test := range map[string]struct {
		config string
		block  *schema.Block
		want   string
	}{
		"a Provider that is not ready":   {`{"regoin":"eu"}`, nil, `spec.config: the Provider "sim" is not ready, so the server checks the arguments later`},
		"no arguments":                   {`{}`, nil, ""},
		"arguments that it accepts":      {`{"region":"eu"}`, block, ""},
		"an argument of the wrong shape": {`{"region":{"a":1}}`, block, "spec.config.region: "},
	} {
		pc := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: "sim", Config: &runtime.RawExtension{Raw: []byte(test.config)}}}
		got := strings.Join(warnProviderConfig(t.Context(), pc, test.block), "; ")
		if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
}

// TestProviderOfAConfig names a Provider that does not exist, and then another one.
func TestProviderOfAConfig(t *testing.T) {
	for name, want := range map[string]string{
		"amazon": `spec.provider: there is no Provider "amazon" yet`,
		"simm":   `spec.provider: there is no Provider "simm" yet; did you mean "sim"?`,
	} {
		if got := noProvider(name, []string{"random", "sim"}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	with := func(provider string) *v1alpha1.ProviderConfig {
		return &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: provider}}
	}
	if errs := validateProviderConfigUpdate(with("sim"), with("sim")); len(errs) > 0 {
		t.Error(errs)
	}
	if errs := validateProviderConfigUpdate(with("sim"), with("simm")); fieldsOf(errs) != "spec.provider: FieldValueInvalid" {
		t.Error(errs)
	}
}

// TestUnknownArguments separates the arguments that a provider does not have, which a write refuses, from values that
// it does not accept.
func TestUnknownArguments(t *testing.T) {
	block := &schema.Block{Attributes: []*schema.Attribute{
		{Name: "region", Type: cty.String, Required: true}, {Name: "token", Type: cty.String, Optional: true}, {Name: "id", Type: cty.String, Computed: true},
	}}
	for reason, test := range map[string]struct {
		config          string
		fromSecret      string
		unknown, others string
	}{
		"a misspelled argument":     {`{"regoin":"eu","region":"us"}`, "", "spec.config.regoin", ""},
		"one that it sets itself":   {`{"id":"x","region":"us"}`, "", "spec.config.id", ""},
		"one from a Secret":         {`{"region":"us"}`, "tokne", "spec.secretRefs[0].argument", ""},
		"a value of another type":   {`{"region":["us"]}`, "", "", "spec.config.region"},
		"a missing one":             {`{}`, "", "", "spec.config.region"},
		"all is well":               {`{"region":"us"}`, "token", "", ""},
		"two mistakes of two kinds": {`{"regoin":"eu"}`, "", "spec.config.regoin", "spec.config.region"},
	} {
		pc := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: "sim", Config: &runtime.RawExtension{Raw: []byte(test.config)}}}
		if test.fromSecret != "" {
			pc.Spec.SecretRefs = []v1alpha1.SecretArgument{{Argument: test.fromSecret, Name: "s", Key: "k"}}
		}
		unknown, others := argumentProblems(t.Context(), block, pc)
		for name, got := range map[string]field.ErrorList{test.unknown: unknown, test.others: others} {
			if name != "" && (len(got) != 1 || got[0].Field != name) {
				t.Errorf("%s: %v, want one error of %s", reason, got, name)
			}
		}
		if test.unknown == "" && len(unknown) > 0 || test.others == "" && len(others) > 0 {
			t.Errorf("%s: unknown %v, others %v", reason, unknown, others)
		}
	}
}
