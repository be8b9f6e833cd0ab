package cli

import (
	"context"
	"encoding/json"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// configJSON is Terraform's "configuration". tfjson reads expressions and cannot write them, hence types of our own.
type configJSON struct {
	ProviderConfigs map[string]*configProvider `json:"provider_config,omitempty"`
	RootModule      configModule               `json:"root_module"`
}

type configModule struct {
	Resources []*configResource `json:"resources,omitempty"`
}

type configResource struct {
	Address           string              `json:"address"`
	Mode              tfjson.ResourceMode `json:"mode"`
	Type              string              `json:"type"`
	Name              string              `json:"name"`
	ProviderConfigKey string              `json:"provider_config_key"`
	// Expressions are nil when the object cannot be read, or is not the one any more that was planned.
	Expressions   map[string]any `json:"expressions,omitempty"`
	SchemaVersion uint64         `json:"schema_version"`
	DependsOn     []string       `json:"depends_on,omitempty"`

	object v1alpha1.ObjectReference
	// provider and config are the provider's source address and its ProviderConfig.
	provider, config string
	marks, values    *runtime.RawExtension
}

// configure adds what the plan says of the configuration: which resources there are, and with which provider.
func (t *terraformPlan) configure(c *v1alpha1.PlanChange) {
	if c.Deposed != "" || c.Action == v1alpha1.ActionForget || c.ActionReason == string(tfjson.ActionReasonDeleteBecauseNoResourceConfig) {
		return
	}
	r := &configResource{Address: c.Address, Mode: tfMode(c), Type: c.Type, Name: c.Object.Name,
		object: c.Object, provider: c.Provider, config: c.ProviderConfig, marks: c.AfterSensitive, values: c.After}
	if isNull(c.After) {
		r.marks, r.values = c.BeforeSensitive, c.Before
	}
	t.config.RootModule.Resources = append(t.config.RootModule.Resources, r)
}

// describe adds what the objects and the providers' schemas tell beside the changes. What cannot be read is left out: who
// may read a plan need not be allowed to read every object.
func (t *terraformPlan) describe(ctx context.Context) error {
	l := newObjectCache(t.session)
	var want []wantedObject
	for _, r := range t.config.RootModule.Resources {
		want = append(want, wantedObject{keyOf(r.object), r.object.APIVersion, r.object.Kind})
	}
	for _, e := range t.entries {
		if e.prior {
			want = append(want, wantedObject{keyOf(e.object), e.object.APIVersion, e.object.Kind})
		}
	}
	if err := l.read(ctx, want); err != nil {
		return err
	}
	models := map[string]map[string]*openapi{}
	model := func(ref v1alpha1.ObjectReference) *openapi {
		group, _, _ := strings.Cut(ref.APIVersion, "/")
		provider, _ := v1alpha1.ProviderOfGroup(group)
		if _, asked := models[provider]; !asked {
			models[provider] = nil
			if doc, err := t.providerDocument(ctx, provider); err == nil { // without it, the rest is still worth printing
				models[provider] = doc.kinds(provider)
			}
		}
		return models[provider][ref.Kind]
	}
	for _, e := range t.entries {
		if m := model(e.object); m != nil {
			e.state.SchemaVersion = m.SchemaVersion
		}
		if e.prior && e.state.Mode == tfjson.ManagedResourceMode {
			deps, err := l.dependencies(ctx, keyOf(e.object))
			if err != nil {
				return err
			}
			e.state.DependsOn = deps
		}
	}
	for _, r := range t.config.RootModule.Resources {
		m := model(r.object)
		if m != nil {
			r.SchemaVersion = m.SchemaVersion
		}
		u := l.known[keyOf(r.object)]
		if u == nil || u.GetUID() != r.object.UID || u.GetGeneration() != r.object.Generation {
			continue // it does not ask any more for what was planned
		}
		r.DependsOn = dependsOn(u)
		spec, _ := u.Object["spec"].(map[string]any)
		r.Expressions = blockExpressions(spec, m.property("spec"), decodeRaw(r.marks), decodeRaw(r.values))
	}
	t.providers(ctx)
	return ctx.Err()
}

// dependsOn is what lifecycle.dependsOn names.
func dependsOn(u *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedStringSlice(u.Object, "lifecycle", "dependsOn")
	for i, s := range list {
		if t, err := parseTarget(s); err == nil {
			list[i] = t.full()
		}
	}
	return list
}

// blockExpressions are the arguments and blocks of a body, by name. The schema is nil when nobody knows it: then no value
// that may be secret is shown.
func blockExpressions(body map[string]any, s *openapi, marks, values any) map[string]any {
	out := map[string]any{}
	for name, v := range body {
		p := s.property(name)
		m, known := field(marks, name), field(values, name)
		switch {
		case p == nil || !p.Block:
			out[name] = expression(v, p, m, s != nil || known != nil)
		case p.Items != nil:
			list, ok := v.([]any)
			if !ok {
				out[name] = expression(v, p, m, true)
				continue
			}
			blocks := make([]any, len(list))
			for i, e := range list {
				blocks[i] = nested(e, p.Items, element(m, i), element(known, i))
			}
			out[name] = blocks
		case len(p.Properties) == 0 && len(p.Additional) > 0:
			var elem openapi
			entries, ok := v.(map[string]any)
			if !ok || json.Unmarshal(p.Additional, &elem) != nil {
				out[name] = expression(v, p, m, true)
				continue
			}
			blocks := map[string]any{}
			for k, e := range entries {
				blocks[k] = nested(e, &elem, field(m, k), field(known, k))
			}
			out[name] = blocks
		default:
			out[name] = nested(v, p, m, known)
		}
	}
	return out
}

func nested(v any, s *openapi, marks, values any) any {
	if body, ok := v.(map[string]any); ok {
		return blockExpressions(body, s, marks, values)
	}
	return expression(v, s, marks, true)
}

// expression is one argument: its value when it is constant, the references when it has any, and nothing when it is a
// function of constants. show is false when nobody can tell whether it is secret.
func expression(v any, s *openapi, marks any, show bool) map[string]any {
	refs, constant, ok := evaluate(v)
	switch {
	case len(refs) > 0:
		var names []string
		for _, r := range refs {
			names = append(names, r.unwrapped()...)
		}
		return map[string]any{"references": names}
	case !ok || !show && constant != nil:
		return map[string]any{}
	}
	return map[string]any{"constant_value": concealed(constant, s, marks)}
}

// concealed is a value without what its schema or the marks of the change call secret.
func concealed(v any, s *openapi, marks any) any {
	if v == nil {
		return nil
	}
	if marks == true || s != nil && s.Sensitive {
		return diff.Masked
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = concealed(e, s.property(k), field(marks, k))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = concealed(e, s.element(), element(marks, i))
		}
		return out
	}
	return v
}

func decodeRaw(r *runtime.RawExtension) any {
	var v any
	if json.Unmarshal(rawOr(r, "null"), &v) != nil {
		return nil
	}
	return v
}

// field and element look into a value of any shape; a mark of the whole counts for each part.
func field(v any, name string) any {
	if m, ok := v.(map[string]any); ok {
		return m[name]
	}
	if v == true {
		return true
	}
	return nil
}

func element(v any, i int) any {
	if l, ok := v.([]any); ok && i < len(l) {
		return l[i]
	}
	if v == true {
		return true
	}
	return nil
}
