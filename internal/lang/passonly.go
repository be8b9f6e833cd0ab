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

// passOnly marks a sensitive value that an expression may pass on, but not reveal: neither an operation's failure nor a
// plan's changes may depend on a part of it. The mark's text names the right that the user lacks.
type passOnly string

// SummaryPassOnly is the summary of the error for an operation that would reveal a sensitive value.
const SummaryPassOnly = "Missing right to a sensitive value"

// PassOnly returns the value with its sensitive parts marked so that expressions can only pass them on. missing names
// the right that the user lacks. Unlike Withhold, PassOnly keeps the values.
func PassOnly(v cty.Value, missing string) (cty.Value, error) {
	return cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if v.HasMark(Sensitive) {
			return v.Mark(passOnly(missing)), nil
		}
		return v, nil
	})
}

// HoldsSensitive reports whether a value, or a value within it, is marked as sensitive.
func HoldsSensitive(v cty.Value) bool {
	if !v.ContainsMarked() {
		return false
	}
	_, marks := v.UnmarkDeep()
	_, sensitive := marks[Sensitive]
	return sensitive
}

// HoldsPassOnly reports whether a value, or a value within it, may only be passed on. It returns the right that the
// user lacks.
func HoldsPassOnly(v cty.Value) (missing string, held bool) {
	if !v.ContainsMarked() {
		return "", false
	}
	_, marks := v.UnmarkDeep()
	return missingIn(marks)
}

// isPassOnly is HoldsPassOnly for the value itself, ignoring its elements.
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

// PassOnlyText returns the detail of the refusal. what names the operation; missing names the right that the user
// lacks.
func PassOnlyText(what, missing string) string {
	return fmt.Sprintf("%s would reveal something about a sensitive value: %s. Without that right, an expression can only pass the value on: as it is, in a template, "+
		"or through functions such as format, join, jsonencode, base64encode and sha256.", what, missing)
}

// passOnlyError is the error of a refused operation.
type passOnlyError struct{ what, missing string }

func (e *passOnlyError) Error() string { return PassOnlyText(e.what, e.missing) }

// refuse records that the evaluation refused an operation on a value that may only be passed on. The record remains
// even if try() or can() hides the error.
func (m *costBudget) refuse(what, missing string) error {
	if m.refused == nil {
		m.refused = &passOnlyError{what, missing}
	}
	return m.refused
}

// revealedExpr is an operand whose value affects something visible. Its evaluation fails if the value may only be
// passed on.
type revealedExpr struct {
	hclsyntax.Expression
	what string
	// whole considers everything that the value holds. Otherwise only the value itself counts, such as the length of a
	// list.
	whole bool
}

func (e *revealedExpr) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, diags := e.Expression.Value(ctx)
	held := isPassOnly
	if e.whole {
		held = HoldsPassOnly
	}
	if missing, no := held(v); no {
		err := costBudgetOf(ctx).refuse(e.what, missing)
		return cty.DynamicVal, append(diags,
			&hcl.Diagnostic{Severity: hcl.DiagError, Summary: SummaryPassOnly, Detail: err.Error(),
				Subject: e.Range().Ptr()})
	}
	return v, diags
}

// revealedOperand wraps an operand in a revealedExpr. HCL finds traversals within parentheses, but not within a
// revealedExpr.
func revealedOperand(e hclsyntax.Expression, what string, whole bool) hclsyntax.Expression {
	switch e.(type) {
	case nil, *hclsyntax.LiteralValueExpr:
		return e
	}
	return &revealedExpr{Expression: &hclsyntax.ParenthesesExpr{Expression: e, SrcRange: e.Range()}, what: what,
		whole: whole}
}

// embedding maps functions that embed whole arguments in their result and never fail because of a sensitive text. The
// number is the index of the first argument that may be passed on.
var embedding = map[string]int{
	"base64encode": 0, "base64gzip": 0, "base64sha256": 0, "base64sha512": 0, "chomp": 0, "ephemeralasnull": 0,
	"format": 1, "indent": 1,
	"issensitive": 0, "join": 0, "jsonencode": 0, "md5": 0, "sensitive": 0, "sha1": 0, "sha256": 0, "sha512": 0,
	"tostring": 0, "trimspace": 0,
	"urlencode": 0, "yamlencode": 0,
}

// structural lists functions that use the structure of a collection but not its elements, so that the elements may be
// passed on.
var structural = []string{
	"concat", "element", "keys", "length", "lookup", "merge", "reverse", "slice", "tolist", "tomap", templateString,
	"values",
}

// wholeVerbs matches formats that print whole arguments. A verb with a precision would cut out a part.
var wholeVerbs = regexp.MustCompile(`^(?:[^%]|%%|%(?:\[\d+\])?(?:[svq]|#v))*$`)

// printsWholeArguments reports whether a format prints whole arguments only.
func printsWholeArguments(format cty.Value) bool {
	format, _ = format.Unmark()
	return format.Type() == cty.String && format.IsKnown() && !format.IsNull() &&
		wholeVerbs.MatchString(format.AsString())
}

// mayPass refuses a call with arguments that may only be passed on, unless the function just passes them on.
func (m *costBudget) mayPass(name string, args []cty.Value) error {
	name = strings.TrimPrefix(name, corePrefix)
	from, embeds := embedding[name]
	if name == "format" && len(args) > 0 {
		embeds = printsWholeArguments(args[0])
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

// keepPassOnlyMarks adds the marks of all referenced values to the result of try or can: the failure of an argument may
// reveal something of a value that may only be passed on.
func keepPassOnlyMarks(f function.Function) function.Function {
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

// passOnlyMarks returns the pass-only mark of a traversal's value, or of the longest prefix that exists.
func passOnlyMarks(ctx *hcl.EvalContext, t hcl.Traversal) cty.ValueMarks {
	for n := len(t); n > 0; n-- {
		v, diags := t[:n].TraverseAbs(ctx)
		if diags.HasErrors() {
			continue
		}
		held := HoldsPassOnly
		if n < len(t) { // the failing step reveals something of the value itself, but not of its elements
			held = isPassOnly
		}
		if missing, no := held(v); no {
			return cty.NewValueMarks(Sensitive, passOnly(missing))
		}
		return nil
	}
	return nil
}

// keyOf wraps a key expression of an object constructor. A bare name is a literal and is not wrapped.
func keyOf(e *hclsyntax.ObjectConsKeyExpr) hclsyntax.Expression {
	if _, name := e.Wrapped.(*hclsyntax.ScopeTraversalExpr); name && !e.ForceNonLiteral {
		return withBudget(e.Wrapped)
	}
	return revealedOperand(withBudget(e.Wrapped), "A key", true)
}
