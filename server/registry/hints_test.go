package registry

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
)

// A server-side apply or a patch with unknown fields gets the error of a create. Other requests pass with their whole body.
func TestApplyHints(t *testing.T) {
	const apply, strategic, merge = "application/apply-patch+yaml", "application/strategic-merge-patch+json", "application/merge-patch+json"
	head := "apiVersion: hykube.io/v1alpha1\nmetadata: {name: a}\n"
	for name, tt := range map[string]struct {
		group, media, body, want string
	}{
		"a Provider":          {v1alpha1.GroupName, apply, head + "kind: Provider\nspec: {sorce: x/y}", `Provider in version \"v1alpha1\" cannot be handled as a Provider: strict decoding error: unknown field \"spec.sorce\" (did you mean \"source\"?)`},
		"a ProviderConfig":    {v1alpha1.GroupName, apply, head + "kind: ProviderConfig\nspec: {provider: sim, confg: {}}", `unknown field \"spec.confg\" (did you mean \"config\"?)`},
		"a Plan":              {v1alpha1.GroupName, apply, head + "kind: Plan\nspec: {aproval: Manual}\nlabls: {}", `unknown field \"spec.aproval\" (did you mean \"approval\"?)`},
		"an unquoted Off":     {v1alpha1.GroupName, apply, head + "kind: Provider\nspec: {source: x/y, sandbox: {mode: Off}}", `write mode: \"Off\"`},
		"a quoted Off":        {v1alpha1.GroupName, apply, head + "kind: Provider\nspec: {source: x/y, sandbox: {mode: \"Off\"}}", ""},
		"nothing unknown":     {v1alpha1.GroupName, apply, head + "kind: ProviderConfig\nspec: {provider: sim, config: {anything: {x: 1}}}", ""},
		"a number as a pause": {v1alpha1.GroupName, apply, head + "kind: ResourceSet\nspec: {rollout: {pause: 5, waves: 1}}", `as a ResourceSet: spec.rollout.pause: must be a duration, such as \"5m\", but is a number, spec.rollout.waves: must be a list, but is a number`},
		"a strict patch":      {v1alpha1.GroupName, strategic + "?", `{"spec":{"foo":1,"$retainKeys":["source"]}}`, `Provider.hykube.io \"x\" is invalid: patch: Invalid value: strict decoding error: unknown field \"spec.foo\" (the fields are checksums, environment, sandbox, signingKeys, source, version)","reason"`},
		"a strict merge":      {v1alpha1.GroupName, merge + "?", `{"spec":{"sorce":"x/y"}}`, `unknown field \"spec.sorce\" (did you mean \"source\"?)`},
		"a patched value":     {v1alpha1.GroupName, merge, `{"spec":{"source":1}}`, `patch: Invalid value: spec.source: must be a string, but is a number`},
		"a strict directive":  {v1alpha1.GroupName, strategic + "?", `{"metadata":{"$setElementOrder/finalizers":["a"],"labels":{"a":null}}}`, ""},
		"another patch":       {v1alpha1.GroupName, "application/merge-patch+json", `{"spec":{"sorce":"x/y"}}`, ""},
		"a provider's kind":   {"sim.hykube.io", apply, "apiVersion: sim.hykube.io/v1\nkind: sim-network\nspecc: {}", ""},
		"no YAML":             {v1alpha1.GroupName, apply, "{", ""},
		"more than is read":   {v1alpha1.GroupName, apply, head + "kind: Provider\nspec: {source: x/y}\n#" + strings.Repeat("x", 2000), ""},
		"an unknown version":  {v1alpha1.GroupName, apply, "apiVersion: hykube.io/v9\nkind: Plan\nspecc: {}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			passed := ""
			h := WithPatchHints(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				passed = string(body)
			}), NewCodecs(), 1000)
			media, strict := strings.CutSuffix(tt.media, "?")
			target := "/"
			if strict {
				target += "?fieldValidation=Strict"
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, target, strings.NewReader(tt.body))
			r.Header.Set("Content-Type", media)
			r = r.WithContext(genericapirequest.WithRequestInfo(r.Context(), &genericapirequest.RequestInfo{Verb: "patch", APIGroup: tt.group, APIVersion: "v1alpha1", Resource: "providers", Name: "x"}))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			code := http.StatusUnprocessableEntity
			if media == apply {
				code = http.StatusBadRequest
			}
			switch {
			case tt.want == "" && passed != tt.body:
				t.Errorf("passed on %q", passed)
			case tt.want != "" && (passed != "" || w.Code != code || !strings.Contains(w.Body.String(), tt.want)):
				t.Errorf("%d %s, want %s", w.Code, w.Body, tt.want)
			}
		})
	}
}

// TestUnquotedOff creates a Provider with the boolean that YAML makes of an unquoted Off.
func TestUnquotedOff(t *testing.T) {
	decoder := NewCodecs().Factory.UniversalDeserializer()
	for mode, want := range map[string]string{`false`: `write mode: "Off"`, `true`: "cannot unmarshal bool", `"Off"`: ""} {
		body := `{"apiVersion":"hykube.io/v1alpha1","kind":"Provider","metadata":{"name":"a"},"spec":{"source":"x/y","sandbox":{"mode":` + mode + `}}}`
		obj, _, err := decoder.Decode([]byte(body), nil, nil)
		if want == "" {
			if p, ok := obj.(*v1alpha1.Provider); err != nil || !ok || p.Spec.Sandbox.Mode != v1alpha1.SandboxOff {
				t.Errorf("%s: %v", mode, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", mode, err, want)
		}
	}
}

// The error about a value of another type names the field and the expected form, and no Go type.
func TestValuesOfAnotherType(t *testing.T) {
	codecs := NewCodecs()
	s := negotiated{codecs.Factory, codecs.Scheme}
	info, _ := runtime.SerializerInfoForMediaType(s.SupportedMediaTypes(), runtime.ContentTypeJSON)
	for rollout, want := range map[string]string{
		`{"pause":5}`:           `spec.rollout.pause: must be a duration, such as "5m", but is a number`,
		`{"pause":"soon"}`:      `spec.rollout.pause: must be a duration, such as "5m"`,
		`{"waves":1}`:           `spec.rollout.waves: must be a list, but is a number`,
		`{"waves":[1,true]}`:    `spec.rollout.waves[1]: must be a whole number or a percentage, such as 3 or "10%", but is a boolean`,
		`"fast"`:                `spec.rollout: must be an object, but is a string`,
		`{"pause":5,"waves":1}`: `spec.rollout.pause: must be a duration, such as "5m", but is a number, spec.rollout.waves: must be a list, but is a number`,
	} {
		body := `{"apiVersion":"hykube.io/v1alpha1","kind":"ResourceSet","metadata":{"name":"a"},"spec":{"rollout":` + rollout + `}}`
		if _, _, err := s.DecoderToVersion(info.StrictSerializer, nil).Decode([]byte(body), nil, nil); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", rollout, err, want)
		}
	}
}
