package lang

import (
	"github.com/hykube/hykube/internal/diag"

	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

const templateString = "templatestring"

// templateStringFunc renders a template that is itself a value, such as a key of a ConfigMap.
func templateStringFunc(m *costBudget) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{
			{Name: "template", Type: cty.String, AllowMarked: true},
			{Name: "vars", Type: cty.DynamicPseudoType, AllowMarked: true},
		},
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := m.mayPass(templateString, args); err != nil {
				return cty.NilType, err
			}
			if !args[0].IsKnown() || !args[1].IsKnown() {
				return cty.DynamicPseudoType, nil
			}
			v, err := m.render(args[0], args[1])
			return v.Type(), err
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return m.render(args[0], args[1]) },
	})
}

// TemplateFile is the name of the function that renders a file of a module.
const TemplateFile = "templatefile"

// templateFileFunc renders the template that a function reads from a file.
func templateFileFunc(m *costBudget, read function.Function) function.Function {
	render := func(args []cty.Value) (cty.Value, error) {
		template, err := read.Call(args[:1])
		if err != nil || !template.IsKnown() {
			return cty.DynamicVal, err
		}
		if err := m.spendValue(template); err != nil {
			return cty.DynamicVal, err
		}
		return m.render(template, args[1])
	}
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String, AllowMarked: true},
			{Name: "vars", Type: cty.DynamicPseudoType, AllowMarked: true}},
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := m.mayPass(templateString, args); err != nil {
				return cty.NilType, err
			}
			if !args[0].IsKnown() || !args[1].IsKnown() {
				return cty.DynamicPseudoType, nil
			}
			v, err := render(args)
			return v.Type(), err
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return render(args) },
	})
}

func (m *costBudget) render(template, vars cty.Value) (cty.Value, error) {
	template, marks := template.Unmark()
	bareVars, varMarks := vars.Unmark()
	if ty := vars.Type(); !ty.IsObjectType() && !ty.IsMapType() {
		return cty.DynamicVal, function.NewArgErrorf(1, "invalid vars value: must be a map")
	}
	p := newParser(ConfigOptions{Functions: m.functions, Module: m.module})
	expr, ok := p.expression(template.AsString(), "")
	if !ok {
		return cty.DynamicVal, function.NewArgErrorf(0, "%s", describeTemplate(p.diags))
	}
	if calls(p, templateString) {
		return cty.DynamicVal, function.NewArgErrorf(0, "a template cannot call templatestring itself")
	}
	if calls(p, TemplateFile) {
		return cty.DynamicVal, function.NewArgErrorf(0, "a template cannot call templatefile")
	}
	if calls(p, nonsensitiveName) {
		return cty.DynamicVal, function.NewArgErrorf(0,
			"a template cannot call nonsensitive; call it where templatestring is called")
	}
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{},
		Functions: make(map[string]function.Function, len(p.calls))}
	if expr == nil {
		return template.WithMarks(marks, varMarks), nil
	}
	for it := bareVars.ElementIterator(); it.Next(); {
		k, v := it.Element()
		k, _ = k.Unmark()
		ctx.Variables[k.AsString()] = v.WithMarks(varMarks)
	}
	for _, t := range expr.Variables() {
		if _, ok := ctx.Variables[t.RootName()]; !ok {
			return cty.DynamicVal, function.NewArgErrorf(1, "vars map does not contain key %q, referenced at %s",
				t.RootName(), columnField("", t.SourceRange()))
		}
	}
	ctx.Variables[costBudgetVariable] = cty.CapsuleVal(costBudgetType, m)
	for name, f := range p.calls {
		ctx.Functions[name] = m.function(name, f)
	}
	v, diags := withBudget(expr).Value(ctx)
	if diags.HasErrors() {
		return cty.DynamicVal, function.NewArgErrorf(0, "%s", describeTemplate(fromHCL(diags, "", false)))
	}
	if v.IsNull() {
		return cty.DynamicVal, errors.New("the template's result is null")
	}
	return v.WithMarks(marks, varMarks), nil
}

// describeTemplate returns the text of the first error, with its position in the template.
func describeTemplate(ds diag.Diagnostics) string {
	for _, d := range ds {
		if diag.HasErrors(diag.Diagnostics{d}) {
			return fmt.Sprintf("at %s of the template: %s: %s", d.Attribute, d.Summary, d.Detail)
		}
	}
	return "the template is not valid"
}

func calls(p *parser, name string) bool {
	_, plain := p.calls[name]
	_, core := p.calls[corePrefix+name]
	return plain || core
}
