package lang

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
)

// Evaluate evaluates the expressions and converts the result to the block's type. scope returns the value of an
// address, or false if there is no such object. The value of a ConfigMap or Secret is an object of its keys. Values may
// be partly unknown and have marks (see MarkSensitive); both propagate to the results. If Evaluate returns errors, the
// value must not be used.
func (c *Config) Evaluate(scope func(Address) (cty.Value, bool)) (cty.Value, diag.Diagnostics) {
	if c.constant != cty.NilVal {
		return c.constant, nil
	}
	return c.run(&evaluation{program: &c.program, scope: scope})
}

func (c *Config) run(ev *evaluation) (cty.Value, diag.Diagnostics) {
	ev.prepare()
	defer ev.budget.end()
	raw := ev.eval(c.root)
	if diag.HasErrors(ev.diags) {
		return cty.UnknownVal(c.block.ImpliedType()), ev.diags
	}
	co := &coercion{static: ev.warn, dry: ev.static, ephemeral: c.ephemeral}
	v := co.block(c.block, raw, "spec")
	ev.mismatches = co.mismatches
	return v, append(ev.diags, co.diags...)
}

// evaluation is one evaluation of a program.
type evaluation struct {
	*program
	scope func(Address) (cty.Value, bool)
	// selfValue is the value of "self"; NilVal if the program has none.
	selfValue cty.Value
	// static is true for a dry run, in which every reference is unknown. warn is true for the dry run that also reports
	// warnings.
	static, warn bool
	// mismatches has the kinds of the coercion's errors.
	mismatches map[v1alpha1.Diagnostic]Mismatch
	// catalog gives a dry run the types of the references; nil if they are not known.
	catalog *Catalog

	ctx    *hcl.EvalContext
	budget *costBudget
	diags  diag.Diagnostics
}

func (ev *evaluation) prepare() {
	ev.budget = &costBudget{left: maxWork, functions: ev.functions, request: ev.request, namespace: ev.namespace,
		module: ev.module}
	if !ev.static { // a dry run has no context, so impure functions are unknown in it
		ev.budget.context = ev.context
	}
	ev.ctx = &hcl.EvalContext{Variables: ev.variables(), Functions: make(map[string]function.Function, len(ev.calls))}
	ev.ctx.Variables[costBudgetVariable] = cty.CapsuleVal(costBudgetType, ev.budget)
	for name, f := range ev.calls {
		ev.ctx.Functions[name] = ev.budget.function(name, f)
	}
}

// branch is a node in the tree of referenced values.
type branch struct {
	value cty.Value
	below map[string]*branch
}

func (b *branch) child(name string) *branch {
	if b.below == nil {
		b.below = make(map[string]*branch)
	}
	if b.below[name] == nil {
		b.below[name] = &branch{}
	}
	return b.below[name]
}

func (b *branch) val() cty.Value {
	if b.value != cty.NilVal {
		return b.value
	}
	vals := make(map[string]cty.Value, len(b.below))
	for name, c := range b.below {
		vals[name] = c.val()
	}
	return cty.ObjectVal(vals)
}

// variables returns the referenced values, and no others, nested by the parts of their addresses.
func (ev *evaluation) variables() map[string]cty.Value {
	root := &branch{}
	for _, r := range ev.refs {
		at, place := root, r.place()
		for _, name := range place[:len(place)-1] {
			if at.value != cty.NilVal {
				break
			}
			at = at.child(name)
		}
		last := place[len(place)-1]
		if at.value != cty.NilVal || at.below[last] != nil && at.below[last].value != cty.NilVal {
			continue
		}
		if !r.optional() {
			at.child(last).value = ev.value(r)
			continue
		}
		// Of a set or a module, only the referenced instances and outputs are in the value.
		if at.below == nil {
			at.below = make(map[string]*branch)
		}
		if v, ok := ev.instanceValue(r); ok && (at.below[last] == nil || at.below[last].value == cty.NilVal) {
			at.child(last).value = v
		}
	}
	vars := make(map[string]cty.Value, len(root.below)+4)
	for name, b := range root.below {
		vars[name] = b.val()
	}
	ev.addRepetition(vars)
	if ev.self {
		vars[rootSelf] = ev.selfValue
		if ev.selfValue == cty.NilVal {
			vars[rootSelf] = cty.DynamicVal
		}
	}
	return vars
}

// value returns the value of a reference. It marks secrets and ephemeral values itself, so that a scope without these
// marks reveals nothing.
func (ev *evaluation) value(r Reference) cty.Value {
	var v cty.Value
	if ev.static {
		v = ev.unknownValue(r.Address)
	} else {
		var ok bool
		if v, ok = ev.scope(r.Address); !ok || v == cty.NilVal {
			if r.Named() {
				ev.diags = append(ev.diags, undeclared(r))
			} else {
				ev.diags = append(ev.diags, missingObject(r, nil))
			}
			v = cty.DynamicVal
		}
	}
	switch {
	case r.Mode == v1alpha1.ModeEphemeral:
		return v.Mark(Ephemeral)
	case r.Stored() && r.Type == TypeSecret:
		return v.Mark(Sensitive)
	}
	return v
}

// unknownValue returns an unknown value of the most specific type that is known for the address.
func (ev *evaluation) unknownValue(a Address) cty.Value {
	if a.Stored() {
		return cty.UnknownVal(cty.Map(cty.String))
	}
	if a.Named() || ev.catalog == nil || ev.catalog.repeats(a) != "" {
		return cty.DynamicVal
	}
	block := ev.catalog.Block(a)
	if block == nil {
		return cty.DynamicVal
	}
	// A dry run also marks sensitive values, so that errors do not show them.
	return MarkSensitive(block, schema.UnknownBlock(block))
}

// eval returns the value of a part of the spec, before it is converted to the schema's type.
func (ev *evaluation) eval(n *node) cty.Value {
	switch {
	case n.isLiteral():
		return n.literal
	case n.expr != nil:
		ev.budget.field = n.field
		v, diags := n.expr.Value(ev.ctx)
		if refused := ev.budget.refused; refused != nil {
			ev.budget.refused = nil
			ev.diags = append(ev.diags, diag.Errorf(columnField(n.field, n.expr.Range()), SummaryPassOnly, "%s",
				refused.Error()))
			return cty.DynamicVal
		}
		if len(diags) > 0 {
			ev.diags = append(ev.diags, fromHCL(diags, n.field, !ev.static && ev.usesSecret(n))...)
		}
		if diags.HasErrors() {
			return cty.DynamicVal
		}
		if raw, _ := v.Unmark(); hugeNumber(raw) {
			ev.diags = append(ev.diags, diag.Errorf(columnField(n.field, n.expr.Range()), "Invalid number",
				"The result of the expression is infinite or out of range. Correct the expression."))
			return cty.DynamicVal
		}
		return v
	case n.attrs != nil:
		return ev.object(n)
	default:
		vals := make([]cty.Value, len(n.items))
		for i, item := range n.items {
			vals[i] = ev.eval(item)
		}
		return cty.TupleVal(vals)
	}
}

// object evaluates an object whose keys may be templates. If a key is unknown, the whole object is unknown.
func (ev *evaluation) object(n *node) cty.Value {
	vals := make(map[string]cty.Value, len(n.attrs))
	var marks []cty.ValueMarks
	unknown := false
	for _, k := range sortedKeys(n.attrs) {
		name, known := k, true
		if key := n.keys[k]; key != nil {
			var m cty.ValueMarks
			name, m, known = ev.key(key)
			marks = append(marks, m)
		}
		v := ev.eval(n.attrs[k])
		if !known {
			unknown = true // the text of its template may be another key
			continue
		}
		if _, twice := vals[name]; twice {
			ev.diags = append(ev.diags, diag.Errorf(n.field, "Duplicate map key",
				"Two expressions give the same key. Keys must differ."))
		}
		vals[name] = v
	}
	if unknown {
		return cty.DynamicVal.WithMarks(marks...)
	}
	return cty.ObjectVal(vals).WithMarks(marks...)
}

// key evaluates a template that is a key of an object. known is false if the key is unknown or invalid.
func (ev *evaluation) key(n *node) (name string, marks cty.ValueMarks, known bool) {
	v, marks := ev.eval(n).Unmark()
	if missing, held := missingIn(marks); held {
		ev.diags = append(ev.diags, diag.Errorf(n.field, SummaryPassOnly, "%s", PassOnlyText("A key", missing)))
	}
	v, err := convert.Convert(v, cty.String)
	switch {
	case err != nil || v.IsKnown() && v.IsNull():
		ev.diags = append(ev.diags, diag.Errorf(n.field, "Invalid map key",
			"The key must be a string. Correct the expression in it."))
		return "", marks, false
	case !v.IsKnown():
		return "", marks, false
	}
	return v.AsString(), marks, true
}

// usesSecret reports whether an expression refers to a sensitive value.
func (ev *evaluation) usesSecret(n *node) bool {
	return slices.ContainsFunc(n.vars, func(t hcl.Traversal) bool {
		v := ev.ctx.Variables[t.RootName()]
		for _, s := range t[1:] {
			var diags hcl.Diagnostics
			if v.IsMarked() {
				return true
			}
			if v, diags = s.TraversalStep(v); diags.HasErrors() {
				// The error is about the step itself, whose text is in the spec and not secret.
				return false
			}
		}
		return v.ContainsMarked()
	})
}
