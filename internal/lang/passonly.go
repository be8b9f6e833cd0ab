package lang

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// passOnly marks a sensitive value that an expression may pass on, and may neither show nor ask about: whether an operation fails,
// and whether a plan changes something, must not depend on a part of it. The mark says which right is missing for more.
type passOnly string

// SummaryPassOnly is the summary of the refusal to show a sensitive value, or to ask about it.
const SummaryPassOnly = "Missing right to a sensitive value"

// PassOnly lets expressions pass on what is marked as sensitive in a value, and nothing else. missing says which right would allow
// more. Unlike Withhold, it keeps the value.
func PassOnly(v cty.Value, missing string) (cty.Value, error) {
	return cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if v.HasMark(Sensitive) {
			return v.Mark(passOnly(missing)), nil
		}
		return v, nil
	})
}

// HoldsSensitive says whether a value is marked as sensitive, or holds one that is.
func HoldsSensitive(v cty.Value) bool {
	if !v.ContainsMarked() {
		return false
	}
	_, marks := v.UnmarkDeep()
	_, sensitive := marks[Sensitive]
	return sensitive
}

// HoldsPassOnly returns which right is missing for a value that may only be passed on, or that holds such values.
func HoldsPassOnly(v cty.Value) (missing string, held bool) {
	if !v.ContainsMarked() {
		return "", false
	}
	_, marks := v.UnmarkDeep()
	return missingIn(marks)
}

// isPassOnly is HoldsPassOnly for the value itself, without its elements.
func isPassOnly(v cty.Value) (missing string, held bool) {
	_, marks := v.Unmark()
	return missingIn(marks)
}

func missingIn(marks cty.ValueMarks) (missing string, held bool) {
	for m := range marks {
		if p, ok := m.(passOnly); ok && (!held || string(p) < missing) {
			missing, held = string(p), true
		}
	}
	return missing, held
}

// PassOnlyText explains the refusal; what names the operation.
func PassOnlyText(what, missing string) string {
	return fmt.Sprintf("%s would show something of a sensitive value: %s. Without that right a sensitive value can only be passed on: as it is, in a template, "+
		"or through functions such as format, join, jsonencode, base64encode and sha256.", what, missing)
}

// passOnlyError is the refusal of one operation.
type passOnlyError struct{ what, missing string }

func (e *passOnlyError) Error() string { return PassOnlyText(e.what, e.missing) }

// refuse notes that the evaluation asked about a value that it may only pass on: try() and can() must not make that undone.
func (m *costBudget) refuse(what, missing string) error {
	if m.refused == nil {
		m.refused = &passOnlyError{what, missing}
	}
	return m.refused
}

// askedExpr is an operand whose value decides something that can be seen. One that may only be passed on is refused.
type askedExpr struct {
	hclsyntax.Expression
	what string
	// whole looks at all that the value holds. Otherwise only the value itself counts, such as how long a list is.
	whole bool
}

func (e *askedExpr) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, diags := e.Expression.Value(ctx)
	held := isPassOnly
	if e.whole {
		held = HoldsPassOnly
	}
	if missing, no := held(v); no {
		err := costBudgetOf(ctx).refuse(e.what, missing)
		return cty.DynamicVal, append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: SummaryPassOnly, Detail: err.Error(), Subject: e.Range().Ptr()})
	}
	return v, diags
}

// asked wraps an operand. The parentheses let a traversal inside be found, which is not looked for in the node itself.
func asked(e hclsyntax.Expression, what string, whole bool) hclsyntax.Expression {
	switch e.(type) {
	case nil, *hclsyntax.LiteralValueExpr:
		return e
	}
	return &askedExpr{Expression: &hclsyntax.ParenthesesExpr{Expression: e, SrcRange: e.Range()}, what: what, whole: whole}
}

// embedding are functions that put their arguments into their result as a whole. They do not fail, whatever the sensitive text is.
// The number is the first argument that may be passed on.
var embedding = map[string]int{
	"base64encode": 0, "base64gzip": 0, "base64sha256": 0, "base64sha512": 0, "chomp": 0, "ephemeralasnull": 0, "format": 1, "indent": 1,
	"issensitive": 0, "join": 0, "jsonencode": 0, "md5": 0, "sensitive": 0, "sha1": 0, "sha256": 0, "sha512": 0, "tostring": 0, "trimspace": 0,
	"urlencode": 0, "yamlencode": 0,
}

// structural are functions that look at a collection and not at its elements, which may be passed on.
var structural = []string{
	"concat", "element", "keys", "length", "lookup", "merge", "reverse", "slice", "tolist", "tomap", templateString, "values",
}

// wholeVerbs are formats that write all of a value. A precision would cut a part out of it.
var wholeVerbs = regexp.MustCompile(`^(?:[^%]|%%|%(?:\[\d+\])?(?:[svq]|#v))*$`)

// wholly says whether a format writes all of its arguments.
func wholly(format cty.Value) bool {
	format, _ = format.Unmark()
	return format.Type() == cty.String && format.IsKnown() && !format.IsNull() && wholeVerbs.MatchString(format.AsString())
}

// mayPass refuses a call of a function with arguments that may only be passed on, unless it is one that passes them on.
func (m *costBudget) mayPass(name string, args []cty.Value) error {
	name = strings.TrimPrefix(name, corePrefix)
	from, embeds := embedding[name]
	if name == "format" && len(args) > 0 {
		embeds = wholly(args[0])
	}
	held := HoldsPassOnly
	if slices.Contains(structural, name) {
		held = isPassOnly
	}
	for i, a := range args {
		if embeds && i >= from {
			continue
		}
		if missing, no := held(a); no {
			return m.refuse(name+"()", missing)
		}
	}
	return nil
}

// watched lets the result of try or can bear the marks of what its arguments refer to: whether one of them fails may tell something
// of a value that may only be passed on.
func watched(f function.Function) function.Function {
	return function.New(&function.Spec{
		Params: f.Params(), VarParam: f.VarParam(),
		Type: f.ReturnTypeForValues,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := f.Call(args)
			if err != nil {
				return v, err
			}
			for _, a := range args {
				closure := customdecode.ExpressionClosureFromVal(a)
				for _, t := range closure.Expression.Variables() {
					v = v.WithMarks(passOnlyMarks(closure.EvalContext, t))
				}
			}
			return v, nil
		},
	})
}

// passOnlyMarks are the marks of what a traversal leads to, as far as there is something.
func passOnlyMarks(ctx *hcl.EvalContext, t hcl.Traversal) cty.ValueMarks {
	for n := len(t); n > 0; n-- {
		v, diags := t[:n].TraverseAbs(ctx)
		if diags.HasErrors() {
			continue
		}
		held := HoldsPassOnly
		if n < len(t) { // the step that fails asks about the value, and not about what it holds
			held = isPassOnly
		}
		if missing, no := held(v); no {
			return cty.NewValueMarks(Sensitive, passOnly(missing))
		}
		return nil
	}
	return nil
}

// keyOf wraps the key of an object that is written with an expression. A name alone stays one.
func keyOf(e *hclsyntax.ObjectConsKeyExpr) hclsyntax.Expression {
	if _, name := e.Wrapped.(*hclsyntax.ScopeTraversalExpr); name && !e.ForceNonLiteral {
		return withBudget(e.Wrapped)
	}
	return asked(withBudget(e.Wrapped), "A key", true)
}
