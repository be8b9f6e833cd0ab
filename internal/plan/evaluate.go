package plan

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Evaluate works the expressions out and makes a value of the block's type of the spec. scope returns the value of
// a resource, which may be unknown in parts and bear marks (see MarkSensitive), or false when there is none.
// Unknown values and marks propagate into what is made of them. When there are errors the value is good for
// nothing.
func (c *Config) Evaluate(scope func(Address) (cty.Value, bool)) (cty.Value, Diagnostics) {
	if c.constant != cty.NilVal {
		return c.constant, nil
	}
	ev := &evaluation{refs: c.refs, scope: scope}
	v := ev.run(c)
	return v, ev.diags
}

type evaluation struct {
	refs  []Reference
	scope func(Address) (cty.Value, bool)
	// static is true for the dry run, in which every reference is unknown.
	static bool
	ctx    *hcl.EvalContext
	diags  Diagnostics
}

func (ev *evaluation) run(c *Config) cty.Value {
	ev.ctx = &hcl.EvalContext{Variables: ev.variables(), Functions: functions}
	raw := ev.eval(c.root)
	if HasErrors(ev.diags) {
		return cty.UnknownVal(c.block.ImpliedType())
	}
	co := &coercion{static: ev.static}
	v := co.block(c.block, raw, "spec")
	ev.diags = append(ev.diags, co.diags...)
	return v
}

// variables holds the referenced resources and nothing else, by type and name.
func (ev *evaluation) variables() map[string]cty.Value {
	byType := make(map[string]map[string]cty.Value)
	for _, r := range ev.refs {
		names := byType[r.Type]
		if names == nil {
			names = make(map[string]cty.Value)
			byType[r.Type] = names
		}
		if _, done := names[r.Name]; done {
			continue
		}
		names[r.Name] = cty.DynamicVal
		if ev.static {
			continue
		}
		v, ok := ev.scope(r.Address)
		if !ok || v == cty.NilVal {
			ev.diags = append(ev.diags, missingResource(r, nil))
			continue
		}
		names[r.Name] = v
	}
	vars := make(map[string]cty.Value, len(byType))
	for ty, names := range byType {
		vars[ty] = cty.ObjectVal(names)
	}
	return vars
}

// eval makes a value of a part of the spec as it is written, before it meets the schema.
func (ev *evaluation) eval(n *node) cty.Value {
	switch {
	case n.isLiteral():
		return n.literal
	case n.expr != nil:
		v, diags := n.expr.Value(ev.ctx)
		if len(diags) > 0 {
			ev.diags = append(ev.diags, fromHCL(diags, n.field, ev.usesSecret(n))...)
		}
		if diags.HasErrors() {
			return cty.DynamicVal
		}
		if raw, _ := v.Unmark(); raw.Type() == cty.Number && raw.IsKnown() && !raw.IsNull() && raw.AsBigFloat().IsInf() {
			ev.diags = append(ev.diags, errorAt(columnField(n.field, n.expr.Range()), "Invalid number", "The result of the expression is infinite. Correct the expression."))
			return cty.DynamicVal
		}
		return v
	case n.attrs != nil:
		vals := make(map[string]cty.Value, len(n.attrs))
		for _, k := range sortedKeys(n.attrs) {
			vals[k] = ev.eval(n.attrs[k])
		}
		return cty.ObjectVal(vals)
	default:
		vals := make([]cty.Value, len(n.items))
		for i, item := range n.items {
			vals[i] = ev.eval(item)
		}
		return cty.TupleVal(vals)
	}
}

// usesSecret says whether a sensitive value is among what an expression refers to.
func (ev *evaluation) usesSecret(n *node) bool {
	for _, t := range n.expr.Variables() {
		if v, diags := t.TraverseAbs(ev.ctx); !diags.HasErrors() && v.ContainsMarked() {
			return true
		}
	}
	return false
}
