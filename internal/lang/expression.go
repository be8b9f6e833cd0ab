package lang

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
)

// Expression is a JSON value with templates outside a spec, such as a condition, a message or the id of an import. It
// is immutable and safe for concurrent evaluation.
type Expression struct {
	program
	root   *node
	field  string
	want   cty.Type
	own    *schema.Block
	broken bool
}

// ExpressionOptions configures ParseExpression.
type ExpressionOptions struct {
	// Self is the schema of the object's own result, which the expression may refer to as "self"; nil if it may not.
	Self *schema.Block
	// Functions are the provider-defined functions that the expression may call. For parsing, their signatures suffice:
	// Expression.With supplies callable ones.
	Functions Functions
	// Namespace is the object's own namespace. A reference that names it is equal to a reference without a namespace.
	Namespace string
	// Module is the path of the object's own module; empty outside of one. See ConfigOptions.
	Module string
	// Settled refuses impure functions (clock and random values), because the result must be the same in each
	// evaluation.
	Settled bool
	// Repetition allows count.index, or each.key and each.value, in the template of a ResourceSet.
	Repetition Repetition
	// Bare reads a string as an expression even without "${" and "}" around it.
	Bare bool
	// Budget bounds the evaluation, in addition to its own limit.
	Budget *Budget
	// Type is the type of the result, which then must not be null. NilType accepts any result. A condition has
	// cty.Bool; a message and an id have cty.String.
	Type cty.Type
}

// ParseExpression parses a JSON value with templates. field is its path, such as
// "lifecycle.preconditions[0].condition". It reports each error that it can find without values. The Expression is
// never nil. After an error, only its References are valid.
func ParseExpression(v any, field string, o ExpressionOptions) (*Expression, diag.Diagnostics) {
	p := o.parser()
	e := &Expression{field: field, want: o.Type, own: o.Self}
	e.root = p.parse(v, field)
	e.program = p.program
	if diag.HasErrors(p.diags) {
		e.broken = true
		return e, p.diags
	}
	_, diags := e.run(&evaluation{program: &e.program, static: true, warn: true, selfValue: e.unknownSelf()})
	e.broken = diag.HasErrors(diags)
	return e, append(p.diags, diags...)
}

// References lists the references of a JSON value with templates, as Expression.References and Expression.Own do. It
// evaluates nothing, so it needs no budget. It ignores errors, and lists the references in calls of unknown functions.
func (o ExpressionOptions) References(v any, field string) (refs, own []Reference) {
	p := o.parser()
	p.referencesOnly = true
	p.parse(v, field)
	return p.refs, p.ownRefs
}

func (o ExpressionOptions) parser() *parser {
	options := ConfigOptions{Functions: o.Functions, Namespace: o.Namespace, Module: o.Module, Settled: o.Settled,
		Repetition: o.Repetition, self: o.Self != nil, bare: o.Bare, Budget: o.Budget}
	if o.Type == cty.Bool {
		options.reveals = revealAll // the result of a condition is visible
	}
	return newParser(options)
}

// References lists the references to other objects, without those to "self".
func (e *Expression) References() []Reference { return e.refs }

// Own lists the references to "self". Their addresses are empty.
func (e *Expression) Own() []Reference { return e.ownRefs }

// UsesKey reports whether the expression refers to count.index, each.key or each.value.
func (e *Expression) UsesKey() bool { return e.repeats }

// Addresses lists the addresses of the references, sorted and without duplicates.
func (e *Expression) Addresses() []Address { return addresses(e.refs) }

// With returns a copy of the expression that evaluates in the context.
func (e *Expression) With(at EvaluationContext) *Expression {
	bound := *e
	bound.program = e.in(at)
	return &bound
}

// Evaluate evaluates the expression. scope is as for Config.Evaluate. self is the object's own result; it may be NilVal
// if the options have no Self. The result may be unknown and keeps its marks. If Evaluate returns errors, the value
// must not be used.
func (e *Expression) Evaluate(scope func(Address) (cty.Value, bool), self cty.Value) (cty.Value, diag.Diagnostics) {
	return e.run(&evaluation{program: &e.program, scope: scope, selfValue: self})
}

// CheckTypes reports each problem that the types of the references make certain. It returns nil if ParseExpression or
// CheckReferences reported an error.
func (e *Expression) CheckTypes(in Catalog) diag.Diagnostics {
	if e.broken || len(e.refs) == 0 || diag.HasErrors(CheckReferences(e.refs, in.quiet())) {
		return nil
	}
	_, diags := e.run(&evaluation{program: &e.program, static: true, catalog: &in, selfValue: e.unknownSelf()})
	return diags
}

// unknownSelf returns an unknown value of the type of "self"; NilVal if the options have no Self.
func (e *Expression) unknownSelf() cty.Value {
	if e.own == nil {
		return cty.NilVal
	}
	return MarkSensitive(e.own, schema.UnknownBlock(e.own))
}

func (e *Expression) run(ev *evaluation) (cty.Value, diag.Diagnostics) {
	ev.prepare()
	defer ev.budget.end()
	v := ev.eval(e.root)
	if diag.HasErrors(ev.diags) || e.want == cty.NilType {
		return v, ev.diags
	}
	if missing, held := HoldsPassOnly(v); held && e.want == cty.Bool {
		return cty.UnknownVal(e.want),
			append(ev.diags, diag.Errorf(e.field, SummaryPassOnly, "%s", PassOnlyText("A condition", missing)))
	}
	if v.IsNull() {
		return cty.UnknownVal(e.want),
			append(ev.diags, diag.Errorf(e.field, "Invalid null value",
				"The result is null, but it must be %s. Correct the expression.", article(e.want.FriendlyName())))
	}
	out, err := convert.Convert(v, e.want)
	if err != nil && e.want == cty.Bool {
		return cty.UnknownVal(e.want),
			append(ev.diags, diag.Errorf(e.field, summaryWrongType,
				"The result must be a bool, so true or false, but it is %s.", article(v.Type().FriendlyName())))
	}
	if err != nil {
		return cty.UnknownVal(e.want),
			append(ev.diags, diag.Errorf(e.field, summaryWrongType, "%s.",
				conversionText("The expression", err, v, e.want, ev.static)))
	}
	return out, ev.diags
}

// EscapeTemplate escapes text so that it evaluates to itself in a spec.
func EscapeTemplate(text string) string {
	return templateEscaper.Replace(text)
}

// Constant returns the text of a template without expressions, with ${ for $${ and %{ for %%{. It returns false if the
// template has an expression, or is no valid template.
func Constant(template string) (string, bool) {
	if !strings.Contains(template, "${") && !strings.Contains(template, "%{") {
		return template, true
	}
	e, diags := hclsyntax.ParseTemplate([]byte(template), "", hcl.InitialPos)
	parts, ok := e.(*hclsyntax.TemplateExpr)
	if diags.HasErrors() || !ok {
		return "", false
	}
	var text strings.Builder
	for _, part := range parts.Parts {
		literal, ok := part.(*hclsyntax.LiteralValueExpr)
		if !ok || literal.Val.Type() != cty.String {
			return "", false
		}
		text.WriteString(literal.Val.AsString())
	}
	return text.String(), true
}

// HasTemplate reports whether a text or a key in a JSON value has the beginning of a template, also an escaped one.
func HasTemplate(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "${") || strings.Contains(v, "%{")
	case []any:
		return slices.ContainsFunc(v, HasTemplate)
	case map[string]any:
		for key, member := range v {
			if HasTemplate(key) || HasTemplate(member) {
				return true
			}
		}
	}
	return false
}

// EscapeTemplates returns a JSON value whose strings evaluate to themselves in a spec.
func EscapeTemplates(v any) any {
	switch v := v.(type) {
	case string:
		return EscapeTemplate(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = EscapeTemplates(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = EscapeTemplates(e)
		}
		return out
	}
	return v
}
