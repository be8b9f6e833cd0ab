package lang

import (
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
)

// Expression is a JSON value with templates that stands outside a spec, such as a condition, a message or the id of an
// import. It is immutable, and may be evaluated often and at once.
type Expression struct {
	program
	root   *node
	field  string
	want   cty.Type
	own    *schema.Block
	broken bool
}

// ExpressionOptions say what an expression may use and must give.
type ExpressionOptions struct {
	// Self is the schema of the object's own result, which the expression may refer to as "self"; nil where it may not.
	Self *schema.Block
	// Functions are the provider-defined functions that it may call. Their signatures do: With brings those that can be called.
	Functions Functions
	// Namespace is the object's own. References that name it are then the same as references that name none.
	Namespace string
	// Settled refuses functions that read the clock or chance, for what must be known whenever it is looked at.
	Settled bool
	// Bare reads a string as an expression, also without "${" and "}" around it.
	Bare bool
	// Type is what the result is converted to, and then it must not be null; NilType takes any result. A condition is of
	// cty.Bool, a message and an id are of cty.String.
	Type cty.Type
}

// ParseExpression reads a JSON value with templates; field is where it stands, such as
// "lifecycle.preconditions[0].condition". It reports what can be known without values. The Expression is never nil; when there
// are errors it is good for References alone.
func ParseExpression(v any, field string, o ExpressionOptions) (*Expression, diag.Diagnostics) {
	options := ConfigOptions{Functions: o.Functions, Namespace: o.Namespace, Settled: o.Settled, self: o.Self != nil, bare: o.Bare}
	if o.Type == cty.Bool {
		options.asks = askAll // whether a condition holds can be seen
	}
	p := newParser(options)
	e := &Expression{field: field, want: o.Type, own: o.Self}
	e.root = p.parse(v, field)
	e.program = p.program
	if diag.HasErrors(p.diags) {
		e.broken = true
		return e, p.diags
	}
	_, diags := e.run(&evaluation{program: &e.program, static: true, warn: true, selfValue: e.guessSelf()})
	e.broken = diag.HasErrors(diags)
	return e, append(p.diags, diags...)
}

// References lists the places that refer to something. The object's own result is not among them.
func (e *Expression) References() []Reference { return e.refs }

// Own lists the places that refer to the object's own result. Their addresses are empty.
func (e *Expression) Own() []Reference { return e.ownRefs }

// Addresses lists what is referred to, each once, in order.
func (e *Expression) Addresses() []Address { return addresses(e.refs) }

// With returns the expression as it is evaluated in a context.
func (e *Expression) With(at EvaluationContext) *Expression {
	bound := *e
	bound.program = e.in(at)
	return &bound
}

// Evaluate works the expression out. scope is as for Config.Evaluate; self is the object's own result, and may be NilVal where
// the options allow none. The result may be unknown, and keeps its marks. When there are errors it is good for nothing.
func (e *Expression) Evaluate(scope func(Address) (cty.Value, bool), self cty.Value) (cty.Value, diag.Diagnostics) {
	return e.run(&evaluation{program: &e.program, scope: scope, selfValue: self})
}

// CheckTypes reports what cannot work whatever the values will be, given the types of what is referred to. It repeats nothing
// that ParseExpression or CheckReferences said.
func (e *Expression) CheckTypes(in Catalog) diag.Diagnostics {
	if e.broken || len(e.refs) == 0 || diag.HasErrors(CheckReferences(e.refs, in.quiet())) {
		return nil
	}
	_, diags := e.run(&evaluation{program: &e.program, static: true, catalog: &in, selfValue: e.guessSelf()})
	return diags
}

// guessSelf is the object's own result as far as its schema tells; NilVal where there is none.
func (e *Expression) guessSelf() cty.Value {
	if e.own == nil {
		return cty.NilVal
	}
	return MarkSensitive(e.own, schema.UnknownBlock(e.own))
}

func (e *Expression) run(ev *evaluation) (cty.Value, diag.Diagnostics) {
	ev.prepare()
	v := ev.eval(e.root)
	if diag.HasErrors(ev.diags) || e.want == cty.NilType {
		return v, ev.diags
	}
	if missing, held := HoldsPassOnly(v); held && e.want == cty.Bool {
		return cty.UnknownVal(e.want), append(ev.diags, diag.Errorf(e.field, SummaryPassOnly, "%s", PassOnlyText("A condition", missing)))
	}
	if v.IsNull() {
		return cty.UnknownVal(e.want), append(ev.diags, diag.Errorf(e.field, "Invalid null value", "The result is null, but it must be %s. Correct the expression.", article(e.want.FriendlyName())))
	}
	out, err := convert.Convert(v, e.want)
	if err != nil && e.want == cty.Bool {
		return cty.UnknownVal(e.want), append(ev.diags, diag.Errorf(e.field, diag.SummaryWrongType, "The result must be a bool, so true or false, but it is %s.", article(v.Type().FriendlyName())))
	}
	if err != nil {
		return cty.UnknownVal(e.want), append(ev.diags, diag.Errorf(e.field, diag.SummaryWrongType, "%s.", conversionText("The expression", err, v, e.want, ev.static)))
	}
	return out, ev.diags
}

// EscapeTemplate writes text so that a spec that holds it evaluates to the text itself.
func EscapeTemplate(text string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(text)
}
