package lang

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
)

// This file evaluates count.index, each.key and each.value in the template of a ResourceSet. It also handles references
// to instances.

// Repetition is how a ResourceSet repeats its template: Terraform's count or for_each.
type Repetition string

// The ways to repeat a template. The zero Repetition is that of an object outside of a set.
const (
	RepeatCount   Repetition = "count"
	RepeatForEach Repetition = "forEach"
)

// Instance holds the values that one instance of a ResourceSet has for the expressions of the template.
type Instance struct {
	Key v1alpha1.InstanceKey
	// Value is each.value; NilVal for an index, or if it is not known.
	Value cty.Value
}

// hasInstances reports whether a set can have instances of the address's mode and type.
func (a Address) hasInstances() bool {
	return !a.Stored() && (a.Mode == "" || a.Mode == v1alpha1.ModeData)
}

// repetition handles a traversal of count or each. It returns false for other traversals.
func (p *parser) repetition(t hcl.Traversal, at string) bool {
	root := t.RootName()
	attributes := map[string][]string{rootCount: {"index"}, rootEach: {"key", "value"}}[root]
	if attributes == nil {
		return false
	}
	wanted := map[string]Repetition{rootCount: RepeatCount, rootEach: RepeatForEach}[root]
	name, _ := step(t, 1)
	switch {
	case p.opts.Repetition == "" && p.opts.Module != "":
		return false
	case p.opts.Repetition == "":
		p.fail(at, "Unsupported reference", "%q cannot be used here: %s.", root, reservedRoots[root])
	case p.opts.Repetition != wanted:
		p.fail(at, "Unsupported reference", "%q cannot be used here: the ResourceSet has spec.%s. Write %s.", root,
			p.opts.Repetition,
			map[Repetition]string{RepeatCount: "count.index",
				RepeatForEach: "each.key or each.value"}[p.opts.Repetition])
	case !slices.Contains(attributes, name):
		p.fail(at, "Unsupported attribute", "%q has no attribute %q. Write %s.", root, name,
			map[string]string{rootCount: "count.index", rootEach: "each.key or each.value"}[root])
	}
	p.repeats = true
	return true
}

// addRepetition adds the values of count and each.
func (ev *evaluation) addRepetition(vars map[string]cty.Value) {
	if !ev.repeats {
		return
	}
	if i := ev.context.Instance; i != nil {
		i.add(vars)
		return
	}
	vars[rootCount] = cty.ObjectVal(map[string]cty.Value{"index": cty.UnknownVal(cty.Number)})
	vars[rootEach] = cty.ObjectVal(map[string]cty.Value{"key": cty.UnknownVal(cty.String), "value": cty.DynamicVal})
}

func (i *Instance) add(vars map[string]cty.Value) {
	if i.Key.Named {
		value := i.Value
		if value == cty.NilVal {
			value = cty.DynamicVal
		}
		vars[rootEach] = cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(i.Key.Name), "value": value})
		return
	}
	vars[rootCount] = cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(int64(i.Key.Index))})
}

// instanceValue returns the value of an instance. It returns false if there is none, so that HCL reports the missing
// key in its own way, and try() can handle it.
func (ev *evaluation) instanceValue(r Reference) (cty.Value, bool) {
	if ev.static {
		return ev.value(r), r.Named() || ev.catalog == nil || !ev.catalog.lacksInstance(r.Address)
	}
	v, ok := ev.scope(r.Address)
	return v, ok && v != cty.NilVal
}

// keyStep returns the i-th step of a traversal as the key of an instance.
func keyStep(t hcl.Traversal, i int) (v1alpha1.InstanceKey, bool) {
	if i >= len(t) {
		return v1alpha1.InstanceKey{}, false
	}
	s, ok := t[i].(hcl.TraverseIndex)
	if !ok {
		return v1alpha1.InstanceKey{}, false
	}
	return keyOfValue(s.Key)
}

// keyOfValue returns the key of an instance for the value of an index.
func keyOfValue(v cty.Value) (v1alpha1.InstanceKey, bool) {
	if v.IsMarked() || !v.IsKnown() || v.IsNull() {
		return v1alpha1.InstanceKey{}, false
	}
	switch v.Type() {
	case cty.String:
		return v1alpha1.InstanceKey{Named: true, Name: v.AsString()}, true
	case cty.Number:
		i, accuracy := v.AsBigFloat().Int64()
		key := v1alpha1.InstanceKey{Index: int(i)}
		_, _, valid := v1alpha1.ParseInstanceName("x" + key.String())
		return key, valid && accuracy == 0
	}
	return v1alpha1.InstanceKey{}, false
}

// instanceKeyExpr is an index expression directly after a traversal, and the steps after the index.
type instanceKeyExpr struct {
	expr  hclsyntax.Expression
	after hcl.Traversal
}

// instanceKeys maps the source range of each traversal that is followed by an index expression to that expression.
func instanceKeys(e hclsyntax.Expression) map[hcl.Range]instanceKeyExpr {
	var out map[hcl.Range]instanceKeyExpr
	note := func(e hclsyntax.Expression, after hcl.Traversal) {
		index, ok := e.(*hclsyntax.IndexExpr)
		if !ok {
			return
		}
		t, ok := index.Collection.(*hclsyntax.ScopeTraversalExpr)
		if !ok {
			return
		}
		at := t.Traversal.SourceRange()
		if _, noted := out[at]; noted {
			return // with the steps after it
		}
		if out == nil {
			out = map[hcl.Range]instanceKeyExpr{}
		}
		out[at] = instanceKeyExpr{index.Key, after}
	}
	_ = hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.RelativeTraversalExpr:
			note(n.Source, n.Traversal)
		case *hclsyntax.IndexExpr:
			note(n, nil)
		}
		return nil
	})
	return out
}

// instanceReferences returns the references of the expressions of one instance. If the key in a reference depends only
// on the instance, as in sim_network.n[count.index], the reference becomes one to an instance of the other set.
func (p *program) instanceReferences(i *Instance) []Reference {
	if !slices.ContainsFunc(p.refs, func(r Reference) bool { return r.key != nil }) {
		return p.refs
	}
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{},
		Functions: make(map[string]function.Function, len(p.calls))}
	i.add(ctx.Variables)
	budget := &costBudget{left: maxWork, functions: p.functions, request: p.request}
	defer budget.end()
	ctx.Variables[costBudgetVariable] = cty.CapsuleVal(costBudgetType, budget)
	for name, f := range p.calls {
		ctx.Functions[name] = budget.function(name, f)
	}
	out := slices.Clone(p.refs)
	for k, r := range out {
		if r.key == nil {
			continue
		}
		v, diags := r.key.Value(ctx)
		if diags.HasErrors() {
			continue // the key depends on another value, so the reference is to all instances
		}
		key, ok := keyOfValue(v)
		switch {
		case !ok:
		case r.isValue():
			out[k] = r.withSteps(v)
		default:
			out[k] = r.toInstance(key)
		}
	}
	return out
}

// withSteps returns a reference to a part of a named value: the element with a key, and the steps after it.
func (r Reference) withSteps(key cty.Value) Reference {
	r.steps = slices.Concat(r.steps, hcl.Traversal{hcl.TraverseIndex{Key: key}}, r.after)
	r.key, r.after = nil, nil
	return r
}

// toInstance returns the reference to the instance with a key.
func (r Reference) toInstance(key v1alpha1.InstanceKey) Reference {
	r.Address, r.written = r.Address.Instance(key), r.written.Instance(key)
	r.steps = r.after
	if name, ok := attribute(r.after, 0); ok && r.Mode == ModeModule {
		r.Address, r.written, r.steps = r.Address.output(name), r.written.output(name), r.after[1:]
	}
	r.Attribute, _ = step(r.steps, 0)
	r.key, r.after = nil, nil
	return r
}

// repeats returns how the set with an address repeats its template; "" if no set has the address.
func (in Catalog) repeats(a Address) Repetition {
	if in.Repeats == nil {
		return ""
	}
	return in.Repeats(a)
}

// lacksInstance reports whether an address is that of an instance which an existing set does not have.
func (in Catalog) lacksInstance(a Address) bool {
	set, _, ok := a.Set()
	return ok && in.repeats(set) != "" && !in.Exists(a)
}

// MissingInstance returns the error for a reference to an instance that a set does not have. ok is false for all other
// references.
func MissingInstance(r Reference, in Catalog) (d v1alpha1.Diagnostic, ok bool) {
	if !in.lacksInstance(r.Address) {
		return d, false
	}
	set, key, _ := r.Address.Set()
	hint := ""
	switch repeats := in.repeats(set); {
	case key.Named && repeats == RepeatCount:
		hint = fmt.Sprintf(" Its keys are numbers, as in %s.", set.Instance(v1alpha1.InstanceKey{}).Expression())
	case !key.Named && repeats == RepeatForEach:
		hint = fmt.Sprintf(" Its keys are strings, as in %s.",
			set.Instance(v1alpha1.InstanceKey{Named: true, Name: key.Text()}).Expression())
	}
	return diag.Errorf(r.Field, "Invalid index", "The ResourceSet of %s has no instance %s.%s", set, key, hint), true
}

// instanceProblem reports a reference to a set without the key that its attribute needs. It also reports a reference
// with a key to an object that is not a set.
func (in Catalog) instanceProblem(r Reference) (v1alpha1.Diagnostic, bool) {
	if in.Repeats == nil || r.Named() || !r.hasInstances() {
		return v1alpha1.Diagnostic{}, false
	}
	set, key, keyed := r.Address.Set()
	repeats, attribute := in.repeats(set), ""
	if len(r.steps) > 0 {
		if s, ok := r.steps[0].(hcl.TraverseAttr); ok {
			attribute = s.Name
		}
	}
	switch {
	case keyed && repeats == "" && in.Exists(set):
		remedy := fmt.Sprintf("Remove %s.", key)
		if hclsyntax.ValidIdentifier(key.Name) {
			remedy = fmt.Sprintf("For the attribute, write %s.%s.", set.Expression(), key.Name)
		}
		return diag.Errorf(r.Field, "Unexpected resource instance key",
			"%s is no ResourceSet, so a reference to it must not have a key. %s", set, remedy), true
	case !keyed && repeats == RepeatCount && attribute != "":
		return diag.Errorf(r.Field, "Missing resource instance key",
			"%s is a ResourceSet with spec.count, so an attribute needs the index of an instance: %s[0].%s, %s[count.index].%s in the template of another set, or %s[*].%s for all.",
			set, set.Expression(), attribute, set.Expression(), attribute, set.Expression(), attribute), true
	case !keyed && repeats == RepeatForEach && attribute != "":
		return diag.Errorf(r.Field, "Missing resource instance key",
			"%s is a ResourceSet with spec.forEach, so an attribute needs the key of an instance: %s[each.key].%s in the template of another set, or values(%s)[*].%s for all.",
			set, set.Expression(), attribute, set.Expression(), attribute), true
	}
	return v1alpha1.Diagnostic{}, false
}

// Normalized returns a text as expressions see it: in Unicode's normalization form NFC.
func Normalized(text string) string { return cty.NormalizeString(text) }

// Literal returns a JSON value as a value for each.value. A list becomes a tuple, and an object an object.
func Literal(v any) (cty.Value, error) {
	p := newParser(ConfigOptions{})
	n := p.literal(v)
	if diag.HasErrors(p.diags) {
		return cty.NilVal, fmt.Errorf("%s", p.diags[0].Detail)
	}
	return n, nil
}

// literal returns a value whose strings are no templates.
func (p *parser) literal(v any) cty.Value {
	switch v := v.(type) {
	case string:
		return cty.StringVal(v)
	case []any:
		items := make([]cty.Value, len(v))
		for i, item := range v {
			items[i] = p.literal(item)
		}
		return cty.TupleVal(items)
	case map[string]any:
		attrs := make(map[string]cty.Value, len(v))
		for name, attr := range v {
			attrs[name] = p.literal(attr)
		}
		return cty.ObjectVal(attrs)
	}
	return p.parse(v, "").literal
}
