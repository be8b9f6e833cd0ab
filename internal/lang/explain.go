package lang

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/suggest"
)

// explained replaces the detail of an HCL diagnostic. It names the part of the expression that lacks an attribute,
// element or key, and lists what the value has instead. It reveals nothing of marked values, so it is safe where
// details are not.
type explained struct{ text string }

// explain adds a better detail to each error about a step that does not exist. It leaves other diagnostics unchanged.
func explain(ds hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range ds {
		if d.Severity != hcl.DiagError || d.Extra != nil {
			continue
		}
		if text := traversalError(d); text != "" {
			d.Extra = explained{text}
		}
	}
	return ds
}

func traversalError(d *hcl.Diagnostic) string {
	switch e := d.Expression.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		v, ok := variable(d.EvalContext, e.Traversal.RootName())
		if !ok {
			return noVariable(d.EvalContext, e.Traversal.RootName())
		}
		return walk(v, e.Traversal, e.Traversal[1:], costBudgetOf(d.EvalContext))
	case *hclsyntax.RelativeTraversalExpr:
		v, diags := e.Source.Value(d.EvalContext)
		if diags.HasErrors() {
			return ""
		}
		return walk(v, nil, e.Traversal, costBudgetOf(d.EvalContext))
	case *hclsyntax.IndexExpr:
		v, diags := e.Collection.Value(d.EvalContext)
		key, more := e.Key.Value(d.EvalContext)
		if diags.HasErrors() || more.HasErrors() || key.IsMarked() || v.IsMarked() {
			return ""
		}
		what := anything
		if t, ok := e.Collection.(*hclsyntax.ScopeTraversalExpr); ok {
			what = traversalText(t.Traversal)
			if ofObject(t.Traversal) && costBudgetOf(d.EvalContext).module == "" {
				if text := noInstance(v, key, what); text != "" {
					return text
				}
			}
		}
		return missing(v, key, what, "")
	}
	return ""
}

// noInstance returns the text for a key that a ResourceSet with spec.forEach lacks. It returns "" if v is another
// value: the values of an object are not all objects.
func noInstance(v, key cty.Value, what string) string {
	if !key.IsKnown() || key.IsNull() || key.Type() != cty.String || !v.Type().IsObjectType() {
		return ""
	}
	instances := v.Type().AttributeTypes()
	for _, ty := range instances {
		if !ty.IsObjectType() && ty != cty.DynamicPseudoType {
			return ""
		}
	}
	return fmt.Sprintf("The ResourceSet of %s has no instance [%s].%s", what, keyText(key),
		diag.DidYouMean(key.AsString(), sortedKeys(instances)))
}

// anything is the text for a value that has no name in the expression.
const anything = "The value"

// variable looks up a variable in the context and its parents.
func variable(ctx *hcl.EvalContext, name string) (cty.Value, bool) {
	for ; ctx != nil; ctx = ctx.Parent() {
		if v, ok := ctx.Variables[name]; ok {
			return v, true
		}
	}
	return cty.NilVal, false
}

// noVariable returns the text for an unknown variable: it lists the variables in scope of the for expression.
func noVariable(ctx *hcl.EvalContext, name string) string {
	var names []string
	for ; ctx != nil; ctx = ctx.Parent() {
		for n := range ctx.Variables {
			if n != costBudgetVariable {
				names = append(names, n)
			}
		}
	}
	if near := suggest.Nearest(name, names); near != "" {
		return fmt.Sprintf("There is no variable named %q. Did you mean %q?", name, near)
	}
	return ""
}

// walk follows the steps to the one that fails, and returns the text for it. whole is the complete traversal that ends
// with these steps; nil if the steps start at an expression. of is the budget of the evaluation.
func walk(v cty.Value, whole, steps hcl.Traversal, of *costBudget) string {
	for i, s := range steps {
		next, diags := s.TraversalStep(v)
		if !diags.HasErrors() {
			v = next
			continue
		}
		key, ok := stepKey(s)
		if !ok {
			return ""
		}
		what, stored := anything, ""
		if whole != nil {
			before := whole[:len(whole)-len(steps)+i]
			what = traversalText(before)
			if of.module != "" {
				return missing(v, key, what, "")
			}
			stored = storedAt(before, of.namespace)
			// only a ResourceSet has numbers as keys
			if ofObject(before) && v.Type().IsObjectType() && key.Type() == cty.Number {
				return fmt.Sprintf("The ResourceSet of %s has no instance [%s]: see its spec.count or spec.forEach.",
					what, keyText(key))
			}
		}
		return missing(v, key, what, stored)
	}
	return ""
}

// ofObject reports whether a traversal is the address of an object, without an attribute.
func ofObject(t hcl.Traversal) bool {
	if t.RootName() == rootNamespace {
		return len(t) == 4
	}
	return len(t) == 2
}

// storedAt returns kubectl's arguments for the ConfigMap or Secret that a traversal refers to. It returns "" if the
// traversal refers to neither.
func storedAt(t hcl.Traversal, namespace string) string {
	root := t.RootName()
	if root == rootNamespace && len(t) > 2 {
		ns, _ := step(t, 1)
		root, _ = step(t, 2)
		t, namespace = t[2:], ns
	}
	name, ok := step(t, 1)
	if ok && len(t) == 2 && (root == TypeConfigMap || root == TypeSecret) {
		if namespace != "" {
			namespace = " -n " + namespace
		}
		return root + " " + name + namespace
	}
	return ""
}

// stepKey returns the name or index of a step.
func stepKey(s hcl.Traverser) (cty.Value, bool) {
	switch s := s.(type) {
	case hcl.TraverseAttr:
		return cty.StringVal(s.Name), true
	case hcl.TraverseIndex:
		return s.Key, true
	}
	return cty.NilVal, false
}

// missing returns the text for a name or index that a value lacks. stored is the ConfigMap or Secret that holds the
// value, if any. The text of the expression is not secret, but the attribute names of a marked value are.
func missing(v, key cty.Value, what, stored string) string {
	v, marks := v.Unmark()
	ty := v.Type()
	if !key.IsKnown() || key.IsNull() || ty == cty.DynamicPseudoType {
		return ""
	}
	if v.IsNull() && len(marks) > 0 {
		return ""
	}
	if v.IsNull() {
		return fmt.Sprintf("%s is null, so it has no %s. Check for null first, or use try().", what, keyText(key))
	}
	switch key.Type() {
	case cty.Number:
		if len(marks) > 0 {
			return ""
		}
		return missingElement(v, key, what)
	case cty.String:
		return missingName(v, key.AsString(), what, stored, len(marks) > 0)
	}
	return ""
}

// missingElement is missing for the index of a list or tuple.
func missingElement(v, key cty.Value, what string) string {
	ty := v.Type()
	n := 0
	switch {
	case ty.IsTupleType():
		n = len(ty.TupleElementTypes())
	case ty.IsListType() && v.IsKnown():
		n = v.LengthInt()
	default:
		return ""
	}
	switch n {
	case 0:
		return fmt.Sprintf("%s is empty, so it has no element [%s].", what, keyText(key))
	case 1:
		return fmt.Sprintf("%s has one element, [0], so [%s] does not exist.", what, keyText(key))
	default:
		return fmt.Sprintf("%s has %d elements, [0] to [%d], so [%s] does not exist.", what, n, n-1, keyText(key))
	}
}

// missingName is missing for the name of an attribute, or the key of a map.
func missingName(v cty.Value, name, what, stored string, marked bool) string {
	ty := v.Type()
	var names []string
	part := "attribute"
	switch {
	case ty.IsObjectType():
		names = sortedKeys(ty.AttributeTypes())
	case ty.IsMapType():
		part = "element"
		if v.IsKnown() && !marked {
			names = sortedKeys(v.AsValueMap())
		}
	default:
		return ""
	}
	hint := ""
	switch {
	case stored != "":
		part = "key"
		if strings.HasPrefix(stored, TypeSecret) || marked {
			// A reader of the plan may lack the right to read the Secret.
			names = nil
		}
		hint = fmt.Sprintf(" kubectl describe %s lists the keys.", stored)
	case marked:
		names = nil
	}
	if near := diag.DidYouMean(name, names); near != "" {
		hint = near
	}
	return fmt.Sprintf("%s has no %s %q.%s", what, part, name, hint)
}

func keyText(key cty.Value) string {
	if key.Type() == cty.Number {
		return diag.NumberText(key.AsBigFloat())
	}
	if key.Type() == cty.String {
		return fmt.Sprintf("%q", key.AsString())
	}
	return "of that name"
}

// traversalText returns a traversal in expression syntax.
func traversalText(t hcl.Traversal) string {
	var b strings.Builder
	for _, s := range t {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			b.WriteString("[" + keyText(s.Key) + "]")
		}
	}
	return b.String()
}

// explainedExpr explains the errors of its expression while the values of the enclosing expression, such as a splat,
// are still in scope.
type explainedExpr struct{ hclsyntax.Expression }

func (e *explainedExpr) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, diags := e.Expression.Value(ctx)
	return v, explain(diags)
}
