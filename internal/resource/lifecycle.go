package resource

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"k8s.io/apimachinery/pkg/runtime"
)

// TriggersOf returns the references of lifecycle.replaceTriggeredBy.
func TriggersOf(r *Resource) ([]*lang.Expression, error) {
	triggers := &r.Parse().triggers
	return triggers.list, triggers.failure("read lifecycle.replaceTriggeredBy")
}

// parseTriggers parses lifecycle.replaceTriggeredBy: each entry is a reference without the enclosing ${...}.
func (r *Resource) parseTriggers() parsed[*lang.Expression] {
	var out parsed[*lang.Expression]
	for i, text := range r.Lifecycle.ReplaceTriggeredBy {
		field := fmt.Sprintf("lifecycle.replaceTriggeredBy[%d]", i)
		expression, err := lang.TriggerExpression(text)
		if err != nil {
			out.diags = append(out.diags, diag.Errorf(field, "Invalid reference", "%s", err))
			continue
		}
		e, more := lang.ParseExpression("${"+expression+"}", field,
			lang.ExpressionOptions{Module: resourceset.ModuleOf(r.Object), Repetition: r.repetition()})
		for k := range more {
			more[k].Attribute = field // the column would count a "${" that the user did not write
		}
		out.diags = append(out.diags, more...)
		if diag.HasErrors(more) {
			continue
		}
		if len(e.References()) != 1 {
			out.diags = append(out.diags, diag.Errorf(field, "Invalid reference",
				"%q is not the address of one resource or attribute; write it as sim_network.main or sim_network.main.cidr.", text))
			continue
		}
		out.list = append(out.list, e)
	}
	return out
}

// parseImport parses the identity or the ID in lifecycle.import.
func (r *Resource) parseImport(options lang.ExpressionOptions) parsed[*lang.Expression] {
	by := r.Lifecycle.Import
	if by == nil {
		return parsed[*lang.Expression]{}
	}
	options.Settled = true
	var value any = by.ID
	field := "lifecycle.import.id"
	if by.Identity != nil {
		value, field = by.Identity, "lifecycle.import.identity"
	}
	e, diags := lang.ParseExpression(value, field, options)
	return parsed[*lang.Expression]{[]*lang.Expression{e}, diags}
}

// Importing evaluates the ID or identity in lifecycle.import. It returns the import for the provider, and in the form
// that the plan shows. That form masks an ID that comes from a sensitive value.
func Importing(r *Resource, t *instance.Type, at lang.EvaluationContext,
	scope func(lang.Address) (cty.Value, bool)) (instance.ImportBy, *v1alpha1.PlanImport, error) {
	fail := func(field, summary, format string, args ...any) error {
		return &diag.Failure{Operation: "import",
			Diagnostics: diag.Diagnostics{lang.Problem(r.Address, field, summary, fmt.Sprintf(format, args...))}}
	}
	imports := &r.Parse().imports
	if err := imports.failure("import"); err != nil {
		return instance.ImportBy{}, nil, err
	}
	v, diags := imports.list[0].With(at).Evaluate(scope, cty.NilVal)
	if diag.HasErrors(diags) {
		return instance.ImportBy{}, nil, &diag.Failure{Operation: "import", Diagnostics: diags}
	}
	if missing, held := lang.HoldsPassOnly(v); held { // planning calls the provider with it, without an approval
		return instance.ImportBy{}, nil,
			fail("lifecycle.import", lang.SummaryPassOnly, "%s",
				lang.PassOnlyText("An import with such an ID", missing))
	}
	secret := lang.HoldsSensitive(v)
	if secret && r.Lifecycle.Import.Identity != nil || v.HasMark(lang.Ephemeral) {
		return instance.ImportBy{}, nil,
			fail("lifecycle.import", "Invalid import argument",
				"An identity cannot come from a sensitive value, and neither ID nor identity from an ephemeral one.")
	}
	v = lang.WithoutMarks(v)
	if !v.IsWhollyKnown() {
		return instance.ImportBy{}, nil,
			fail("lifecycle.import", "Invalid import argument",
				"It depends on a value that is known after apply. Apply that resource first, or write the value itself.")
	}
	if r.Lifecycle.Import.Identity == nil {
		id, err := convert.Convert(v, cty.String)
		if err != nil || id.IsNull() || id.AsString() == "" {
			return instance.ImportBy{}, nil,
				fail("lifecycle.import.id", "Invalid import argument", "The ID must be a string that is not empty.")
		}
		shown := &v1alpha1.PlanImport{ID: id.AsString()}
		if secret {
			shown.ID = lang.Mask
		}
		return instance.ImportBy{ID: id.AsString()}, shown, nil
	}
	if t.Identity == nil {
		return instance.ImportBy{}, nil,
			fail("lifecycle.import.identity", "No identity",
				"The provider has no identity for %s; import it by its ID.", r.Address.Type)
	}
	identity, err := t.ConformIdentity(v)
	if err != nil {
		return instance.ImportBy{}, nil, fail("lifecycle.import.identity", "Invalid identity", "%v", err)
	}
	raw, err := t.EncodeIdentity(identity)
	if err != nil {
		return instance.ImportBy{}, nil, err
	}
	return instance.ImportBy{Identity: identity},
		&v1alpha1.PlanImport{Identity: &runtime.RawExtension{Raw: WithoutNulls(raw)}}, nil
}

// MaskImport masks an ID that is one of the secrets of the imported resource. masked is false if it is none.
func MaskImport(by *v1alpha1.PlanImport, secrets []string) (_ *v1alpha1.PlanImport, masked bool) {
	if by.ID == "" || !slices.Contains(secrets, by.ID) {
		return by, false
	}
	return &v1alpha1.PlanImport{ID: lang.Mask}, true
}

// SameImport reports whether an import is the one that ImportText wrote. Masked IDs count as equal.
func SameImport(by *v1alpha1.PlanImport, written string) bool {
	return written != "" && (written == ImportText(by) || by.ID != "" &&
		written == ImportText(&v1alpha1.PlanImport{ID: lang.Mask}))
}

// ImportText returns an import as JSON, for the status of its object.
func ImportText(by *v1alpha1.PlanImport) string {
	raw, err := json.Marshal(by)
	if err != nil {
		return "" // a Plan with such an import cannot be stored either
	}
	return string(raw)
}

// WithoutNulls removes the null attributes of a JSON object.
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

// AddressOf returns the address of an object without looking up its provider.
func AddressOf(kind, name string) lang.Address {
	mode, terraformType := v1alpha1.ParseKind(kind)
	return lang.AddressOf(mode, terraformType, name)
}
