package terraformjson

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/openapi"
	"github.com/hykube/hykube/internal/template"
)

// configJSON is the "configuration" member of Terraform's JSON plan. tfjson can decode expressions but not encode them,
// so this package has its own types.
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
	// Expressions is nil if the object cannot be read or has changed since it was planned.
	Expressions   map[string]any `json:"expressions,omitempty"`
	SchemaVersion uint64         `json:"schema_version"`
	DependsOn     []string       `json:"depends_on,omitempty"`
	// CountExpression or ForEachExpression is set for the template of a ResourceSet.
	CountExpression   map[string]any `json:"count_expression,omitempty"`
	ForEachExpression map[string]any `json:"for_each_expression,omitempty"`

	object v1alpha1.ObjectReference
	// provider is the provider's source address, and config is the name of the ProviderConfig.
	provider, config string
	marks, values    *runtime.RawExtension
}

// configure adds the resource of a change, and its provider, to the configuration.
func (t *Plan) configure(c *v1alpha1.PlanChange) {
	if c.Deposed != "" || c.Action == v1alpha1.ActionForget ||
		slices.Contains(withoutConfiguration, tfjson.ActionReason(c.ActionReason)) {
		return
	}
	address := c.Address
	if index := indexOf(c); index != nil {
		// Terraform lists the resource once, with the expression that repeats it.
		address = strings.TrimSuffix(address, keyOf(c))
		if t.repeated[address] {
			return
		}
		if t.repeated == nil {
			t.repeated = map[string]bool{}
		}
		t.repeated[address] = true
	}
	r := &configResource{Address: address, Mode: tfMode(c), Type: c.Type, Name: nameOf(c),
		object: c.Object, provider: c.Provider, config: c.ProviderConfig, marks: c.AfterSensitive, values: c.After}
	switch indexOf(c).(type) {
	case int:
		r.CountExpression = map[string]any{"references": []string{}}
	case string:
		r.ForEachExpression = map[string]any{"references": []string{}}
	}
	if isNull(c.After) {
		r.marks, r.values = c.BeforeSensitive, c.Before
	}
	t.config.RootModule.Resources = append(t.config.RootModule.Resources, r)
}

// withoutConfiguration are the reasons of deletes of resources that are no longer in the configuration.
var withoutConfiguration = []tfjson.ActionReason{
	tfjson.ActionReasonDeleteBecauseNoResourceConfig, tfjson.ActionReasonDeleteBecauseCountIndex,
	tfjson.ActionReasonDeleteBecauseEachKey,
	tfjson.ActionReasonDeleteBecauseWrongRepetition, tfjson.ActionReasonDeleteBecauseNoModule,
}

// keyOf returns the key of an instance as its address has it.
func keyOf(c *v1alpha1.PlanChange) string {
	_, key, _ := v1alpha1.ParseInstanceName(c.Object.Name)
	return key.String()
}

// describe adds data from the objects and the providers' schemas, which the changes lack.
func (t *Plan) describe(ctx context.Context) error {
	var objects []v1alpha1.ObjectReference
	for _, r := range t.config.RootModule.Resources {
		objects = append(objects, r.object)
	}
	for _, e := range t.entries {
		if e.prior {
			objects = append(objects, e.object)
		}
	}
	if err := t.source.Read(ctx, objects); err != nil {
		return err
	}
	schemas := map[string]map[string]*openapi.Schema{}
	schemaOf := func(ref v1alpha1.ObjectReference) *openapi.Schema {
		provider := ProviderName(ref)
		if _, asked := schemas[provider]; !asked {
			schemas[provider] = t.source.Schemas(ctx, provider)
		}
		return schemas[provider][ref.Kind]
	}
	for _, e := range t.entries {
		if s := schemaOf(e.object); s != nil {
			e.state.SchemaVersion = s.SchemaVersion
		}
		if e.prior && e.state.Mode == tfjson.ManagedResourceMode {
			deps, err := t.source.Dependencies(ctx, e.object)
			if err != nil {
				return err
			}
			e.state.DependsOn = deps
		}
	}
	for _, r := range t.config.RootModule.Resources {
		s := schemaOf(r.object)
		if s != nil {
			r.SchemaVersion = s.SchemaVersion
		}
		var spec map[string]any
		if spec, r.DependsOn = t.source.Spec(r.object); spec != nil {
			r.Expressions = blockExpressions(spec, s.Property("spec"), decodeRaw(r.marks), decodeRaw(r.values))
		}
	}
	t.providers(ctx)
	return ctx.Err()
}

// ProviderName returns the name of the Provider that serves an object's kind.
func ProviderName(ref v1alpha1.ObjectReference) string {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	provider, _ := v1alpha1.ProviderOfGroup(group)
	return provider
}

// blockExpressions returns the arguments and blocks of a body by name. Without a schema, it shows only values that the
// plan shows, since any other value may be secret.
func blockExpressions(body map[string]any, s *openapi.Schema, marks, values any) map[string]any {
	out := map[string]any{}
	for name, v := range body {
		p := s.Property(name)
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
			var elem openapi.Schema
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

func nested(v any, s *openapi.Schema, marks, values any) any {
	if body, ok := v.(map[string]any); ok {
		return blockExpressions(body, s, marks, values)
	}
	return expression(v, s, marks, true)
}

// expression returns one argument: its references if it has any, else its constant value. It returns neither for a
// function of constants. show is false if the argument may be secret.
func expression(v any, s *openapi.Schema, marks any, show bool) map[string]any {
	refs, constant, ok := template.Evaluate(v)
	switch {
	case len(refs) > 0:
		var names []string
		for _, r := range refs {
			names = append(names, r.Names()...)
		}
		return map[string]any{"references": names}
	case !ok || !show && constant != nil:
		return map[string]any{}
	}
	return map[string]any{"constant_value": maskSecrets(constant, s, marks)}
}

// maskSecrets returns a value with its secrets masked, as the schema and the marks of the change declare them.
func maskSecrets(v any, s *openapi.Schema, marks any) any {
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
			out[k] = maskSecrets(e, s.Property(k), field(marks, k))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = maskSecrets(e, s.Element(), element(marks, i))
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

// field and element return a part of a value of any shape. A true mark applies to every part.
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
