package plan

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/hykube/hykube/internal/schema"
)

// Expression is a JSON value with templates that stands outside a spec, such as a condition, a message or the id of an
// import. It is immutable, and may be evaluated often and at once.
type Expression struct {
	program
	root   *node
	field  string
	want   cty.Type
	broken bool
}

// ExpressionOptions say what an expression may use and must give.
type ExpressionOptions struct {
	// Self lets the expression refer to the object's own result, as "self".
	Self bool
	// Functions are the provider-defined functions that it may call.
	Functions Functions
	// Namespace is the object's own. References that name it are then the same as references that name none.
	Namespace string
	// Type is what the result is converted to, and then it must not be null; NilType takes any result. A condition is of
	// cty.Bool, a message and an id are of cty.String.
	Type cty.Type
}

// ParseExpression reads a JSON value with templates; field is where it stands, such as
// "lifecycle.preconditions[0].condition". It reports what can be known without values. The Expression is never nil; when there
// are errors it is good for References alone.
func ParseExpression(v any, field string, o ExpressionOptions) (*Expression, Diagnostics) {
	p := newParser(ConfigOptions{Functions: o.Functions, Namespace: o.Namespace, self: o.Self})
	e := &Expression{field: field, want: o.Type}
	e.root = p.parse(v, field)
	e.program = p.program
	if HasErrors(p.diags) {
		e.broken = true
		return e, p.diags
	}
	_, diags := e.run(&evaluation{program: &e.program, static: true, warn: true})
	e.broken = HasErrors(diags)
	return e, append(p.diags, diags...)
}

// References lists the places that refer to something. The object's own result is not among them.
func (e *Expression) References() []Reference { return e.refs }

// Addresses lists what is referred to, each once, in order.
func (e *Expression) Addresses() []Address { return addresses(e.refs) }

// Evaluate works the expression out. scope is as for Config.Evaluate; self is the object's own result, and may be NilVal where
// the options allow none. The result may be unknown, and keeps its marks. When there are errors it is good for nothing.
func (e *Expression) Evaluate(scope func(Address) (cty.Value, bool), self cty.Value) (cty.Value, Diagnostics) {
	return e.run(&evaluation{program: &e.program, scope: scope, selfValue: self})
}

// CheckTypes reports what cannot work whatever the values will be, given the types of what is referred to; self is the
// object's own schema, and may be nil. It repeats nothing that ParseExpression or CheckReferences said.
func (e *Expression) CheckTypes(in Catalog, self *schema.Block) Diagnostics {
	if e.broken || HasErrors(CheckReferences(e.refs, in)) {
		return nil
	}
	ev := &evaluation{program: &e.program, static: true, catalog: &in}
	if self != nil {
		ev.selfValue = MarkSensitive(self, unknownBlock(self))
	}
	_, diags := e.run(ev)
	return diags
}

func (e *Expression) run(ev *evaluation) (cty.Value, Diagnostics) {
	ev.prepare()
	v := ev.eval(e.root)
	if HasErrors(ev.diags) || e.want == cty.NilType {
		return v, ev.diags
	}
	if v.IsNull() {
		return cty.UnknownVal(e.want), append(ev.diags, errorAt(e.field, "Invalid null value", "The result is null, but it must be %s. Correct the expression.", article(e.want.FriendlyName())))
	}
	out, err := convert.Convert(v, e.want)
	if err != nil {
		return cty.UnknownVal(e.want), append(ev.diags, errorAt(e.field, SummaryWrongType, "The result must be %s: %s.", article(e.want.FriendlyName()), conversionText(err, v, ev.static)))
	}
	return out, ev.diags
}
