package module

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// writtenVariable has the arguments of a variable that an override file may replace one by one.
type writtenVariable struct{ ty, fallback *hcl.Attribute }

// reservedVariables are names that an argument of a module block cannot have.
var reservedVariables = []string{"source", "version", "providers", "count", "for_each", "lifecycle", "depends_on",
	"locals"}

func (d *decoder) variable(b *hcl.Block) {
	name := b.Labels[0]
	old := d.config.Variables[name]
	if d.duplicate(old != nil, "variable", name, b) {
		return
	}
	if slices.Contains(reservedVariables, name) {
		d.fail(b.LabelRanges[0], "Invalid variable name",
			"The variable name %q is reserved due to its special meaning inside module blocks.", name)
		return
	}
	content := d.content(b.Body, variableSchema)
	v := &Variable{Name: name, Nullable: true, Range: b.DefRange}
	if old != nil {
		v = old
	}
	attrs := content.Attributes
	v.Nullable, v.Sensitive = d.bool(attrs["nullable"], v.Nullable), d.bool(attrs["sensitive"], v.Sensitive)
	v.Ephemeral = d.bool(attrs["ephemeral"], v.Ephemeral)
	d.text(attrs["description"])
	if attr := attrs["deprecated"]; attr != nil {
		v.Deprecated = d.text(attr)
	}
	if attrs["type"] != nil {
		v.written.ty = attrs["type"]
	}
	if attrs["default"] != nil {
		v.written.fallback = attrs["default"]
	}
	if conditions := d.conditions(content.Blocks, "validation", diag.KeyField("variable", name)); conditions != nil {
		v.Validations = conditions
	}
	d.typed(v)
	d.config.Variables[name] = v
}

// typed sets the type and the default of a variable.
func (d *decoder) typed(v *Variable) {
	v.Type, v.Defaults, v.Default = cty.DynamicPseudoType, nil, cty.NilVal
	if attr := v.written.ty; attr != nil {
		v.Type, v.Defaults = d.constraint(attr.Expr)
	}
	attr := v.written.fallback
	if attr == nil {
		return
	}
	value, ok := d.literal(attr.Expr)
	if !ok {
		return
	}
	if value.IsNull() && !v.Nullable {
		d.fail(attr.Expr.Range(), "Invalid default value for variable",
			"A null default value is not valid when nullable=false.")
		return
	}
	converted, err := v.convert(value)
	if err != nil {
		d.fail(attr.Expr.Range(), "Invalid default value for variable",
			"This default value is not compatible with the variable's type constraint: %s.", describe(err))
		return
	}
	v.Default = converted
}

// constraint reads a type constraint. The words list and map mean those of any type, as in Terraform.
func (d *decoder) constraint(e hcl.Expression) (cty.Type, *typeexpr.Defaults) {
	switch hcl.ExprAsKeyword(e) {
	case "list":
		return cty.List(cty.DynamicPseudoType), nil
	case "map":
		return cty.Map(cty.DynamicPseudoType), nil
	}
	ty, defaults, diags := typeexpr.TypeConstraintWithDefaults(e)
	d.note(diags)
	if diags.HasErrors() {
		return cty.DynamicPseudoType, nil
	}
	return ty, defaults
}

// convert converts a value to the variable's type, with the defaults of optional attributes.
func (v *Variable) convert(value cty.Value) (cty.Value, error) {
	if v.Defaults != nil && !value.IsNull() {
		value = v.Defaults.Apply(value)
	}
	return lang.Convert(value, v.Type)
}

// describe returns the text of a failed conversion, with the path of the part that it is about.
func describe(err error) string {
	if pe, ok := err.(cty.PathError); ok && len(pe.Path) > 0 {
		return "attribute " + diag.PathField("", pe.Path) + ": " + pe.Error()
	}
	return err.Error()
}
