package resource

import (
	"encoding/json"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"k8s.io/apimachinery/pkg/runtime"
)

// TriggersOf parses lifecycle.replaceTriggeredBy: each is a reference without the ${...} around it.
func TriggersOf(r *Resource) ([]*lang.Expression, diag.Diagnostics) {
	var out []*lang.Expression
	var diags diag.Diagnostics
	for i, text := range r.Lifecycle.ReplaceTriggeredBy {
		field := fmt.Sprintf("lifecycle.replaceTriggeredBy[%d]", i)
		expression, err := lang.TriggerExpression(text)
		if err != nil {
			diags = append(diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "Invalid reference", Attribute: field, Detail: err.Error()})
			continue
		}
		e, more := lang.ParseExpression("${"+expression+"}", field, lang.ExpressionOptions{})
		for k := range more {
			more[k].Attribute = field // not the column in a template that nobody wrote
		}
		diags = append(diags, more...)
		if diag.HasErrors(more) {
			continue
		}
		if len(e.References()) != 1 {
			diags = append(diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "Invalid reference", Attribute: field,
				Detail: fmt.Sprintf("%q is not the address of one resource or attribute; write it as sim_network.main or sim_network.main.cidr.", text)})
			continue
		}
		out = append(out, e)
	}
	return out, diags
}

// importExpressions parses lifecycle.import.
func (r *Resource) importExpressions(options lang.ExpressionOptions) ([]*lang.Expression, diag.Diagnostics) {
	by := r.Lifecycle.Import
	if by == nil {
		return nil, nil
	}
	options.Settled, options.Namespace = true, r.Ref.Namespace
	if by.Identity != nil {
		e, diags := lang.ParseExpression(by.Identity, "lifecycle.import.identity", options)
		return []*lang.Expression{e}, diags
	}
	e, diags := lang.ParseExpression(by.ID, "lifecycle.import.id", options)
	return []*lang.Expression{e}, diags
}

// Importing is what an existing instance is to be found by, for the provider and for people.
func Importing(r *Resource, t *instance.Type, options lang.ExpressionOptions, scope func(lang.Address) (cty.Value, bool)) (instance.ImportBy, *v1alpha1.PlanImport, error) {
	exprs, diags := r.importExpressions(options)
	fail := func(field, summary, format string, args ...any) error {
		return &diag.Failure{Operation: "import", Diagnostics: diag.Diagnostics{lang.Problem(r.Addr, field, summary, fmt.Sprintf(format, args...))}}
	}
	if diag.HasErrors(diags) {
		return instance.ImportBy{}, nil, &diag.Failure{Operation: "import", Diagnostics: diags}
	}
	v, diags := exprs[0].Evaluate(scope, cty.NilVal)
	if diag.HasErrors(diags) {
		return instance.ImportBy{}, nil, &diag.Failure{Operation: "import", Diagnostics: diags}
	}
	if v.ContainsMarked() {
		return instance.ImportBy{}, nil, fail("lifecycle.import", "Invalid import argument", "What a resource is imported by is shown in the plan, so it cannot come from a sensitive value.")
	}
	if !v.IsWhollyKnown() {
		return instance.ImportBy{}, nil, fail("lifecycle.import", "Invalid import argument", "It depends on something that is known only after an apply. Apply that first, or write the value itself.")
	}
	if r.Lifecycle.Import.Identity == nil {
		id, err := convert.Convert(v, cty.String)
		if err != nil || id.IsNull() || id.AsString() == "" {
			return instance.ImportBy{}, nil, fail("lifecycle.import.id", "Invalid import argument", "The ID must be a string that is not empty.")
		}
		return instance.ImportBy{ID: id.AsString()}, &v1alpha1.PlanImport{ID: id.AsString()}, nil
	}
	if t.Identity == nil {
		return instance.ImportBy{}, nil, fail("lifecycle.import.identity", "No identity", "The provider has no identity for %s; import it by its ID.", r.Addr.Type)
	}
	identity, err := t.ConformIdentity(v)
	if err != nil {
		return instance.ImportBy{}, nil, fail("lifecycle.import.identity", "Invalid identity", "%v", err)
	}
	raw, err := t.EncodeIdentity(identity)
	if err != nil {
		return instance.ImportBy{}, nil, err
	}
	return instance.ImportBy{Identity: identity}, &v1alpha1.PlanImport{Identity: &runtime.RawExtension{Raw: WithoutNulls(raw)}}, nil
}

// WithoutNulls drops the attributes of a JSON object that are null.
func WithoutNulls(raw json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return raw
	}
	for k, v := range m {
		if string(v) == "null" {
			delete(m, k)
		}
	}
	out, err := json.Marshal(m)
	if err != nil {
		return raw
	}
	return out
}

// AddressOf is the address of an object whose provider may not be known.
func AddressOf(kind, name string) lang.Address {
	mode, terraformType := v1alpha1.ParseKind(kind)
	if mode == v1alpha1.ModeManaged {
		mode = ""
	}
	return lang.Address{Mode: mode, Type: terraformType, Name: name}
}
