package lang

import (
	"github.com/hykube/hykube/internal/diag"

	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Limits on one evaluation of a spec. A few lines of nested for expressions could otherwise occupy a server for years
// and fill its memory. So each step is charged for its inputs and its result: one unit per value, and one per
// bytesPerUnit of text.
const (
	maxWork      = 1 << 20
	bytesPerUnit = 16
	// maxText is the length of the longest string that a step may produce, in bytes.
	maxText = 4 << 20
)

// errOverBudget is the error for an evaluation that exceeds its cost budget.
var errOverBudget = errors.New(
	"the expressions of the spec exceed the evaluation limit; use fewer or smaller loops, or keep the result in a ConfigMap")

// errRequestOverBudget is the error for a request whose evaluations together exceed its budget.
var errRequestOverBudget = errors.New(
	"the expressions of this request together exceed the evaluation limit; use fewer or smaller loops, or send fewer objects at once")

// costBudget counts the remaining work units of one evaluation.
type costBudget struct {
	left int
	// request is the budget of the request that the evaluation belongs to. Its end ends the evaluation as an exceeded
	// budget does.
	request *Budget
	// free frees the evaluation's slot; nil if it has none. See costlyWork.
	free func()
	// exceeded is the error after the budget was exceeded; nil before. It stays, so that try() cannot hide the excess.
	exceeded error
	// functions are the provider-defined functions, for templates that templatestring() parses during the evaluation.
	functions Functions
	// context is the context of the evaluation. field is the path of the field under evaluation. drawn counts the calls
	// of impure functions by field.
	context EvaluationContext
	field   string
	drawn   map[string]int
	// namespace is the object's own namespace, for messages; empty if it is not known. module is the path of its
	// module.
	namespace string
	module    string
	// refused is the refusal of an operation on a sensitive value by the expression under evaluation; nil without one.
	refused *passOnlyError
}

// costBudgetVariable is the name of the cost budget in the evaluation context. The blanks keep expressions from
// referring to it.
const costBudgetVariable = " cost budget of this evaluation "

var costBudgetType = cty.Capsule("cost budget", reflect.TypeFor[costBudget]())

func costBudgetOf(ctx *hcl.EvalContext) *costBudget {
	for ; ctx != nil; ctx = ctx.Parent() {
		if v, ok := ctx.Variables[costBudgetVariable]; ok {
			return v.EncapsulatedValue().(*costBudget)
		}
	}
	return &costBudget{left: maxWork}
}

func (m *costBudget) spend(n int) error {
	switch {
	case m.exceeded != nil:
	case m.request.ended(), n > m.left, n < 0:
		m.exceeded = errOverBudget
	case !m.request.take(n):
		m.exceeded = errRequestOverBudget
	}
	if m.exceeded != nil {
		return m.exceeded
	}
	m.left -= n
	if m.free == nil && m.left < maxWork-costlyWork {
		m.free = m.request.wait()
	}
	return nil
}

// end frees the slot of the evaluation.
func (m *costBudget) end() {
	if m.free != nil {
		m.free()
	}
}

// spendValue charges the budget for a value and everything within it.
func (m *costBudget) spendValue(v cty.Value) error {
	n, ok := size(v, m.left)
	if !ok {
		n = -1
	}
	return m.spend(n)
}

// size returns the work units of a value. It returns false, and stops counting, if they exceed the limit. Values can
// share their parts, so a value that is small in memory may be huge to walk.
func size(v cty.Value, limit int) (int, bool) {
	v, _ = v.Unmark()
	n := 1
	switch ty := v.Type(); {
	case !v.IsKnown() || v.IsNull():
		// An unknown value costs as much as its type.
		return typeSize(ty, limit)
	case ty == cty.String:
		if s := v.AsString(); len(s) > maxText {
			return 0, false
		} else {
			n += len(s) / bytesPerUnit
		}
	case ty.IsCollectionType() && v.LengthInt() == 0:
		return typeSize(ty, limit)
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next() && n <= limit; {
			k, e := it.Element()
			m, ok := size(e, limit-n)
			if !ok {
				return 0, false
			}
			n += m
			if k.Type() == cty.String {
				if k, _ := k.Unmark(); k.IsKnown() {
					n += len(k.AsString()) / bytesPerUnit
				}
			}
		}
	}
	return n, n <= limit
}

func typeSize(ty cty.Type, limit int) (int, bool) {
	n := 1
	add := func(t cty.Type) bool {
		m, ok := typeSize(t, limit-n)
		n += m
		return ok && n <= limit
	}
	switch {
	case ty.IsCollectionType():
		return n, add(ty.ElementType())
	case ty.IsTupleType():
		for _, t := range ty.TupleElementTypes() {
			if !add(t) {
				return n, false
			}
		}
	case ty.IsObjectType():
		for _, t := range ty.AttributeTypes() {
			if !add(t) {
				return n, false
			}
		}
	}
	return n, n <= limit
}

// hugeNumber reports whether a value is a number that is infinite or out of range.
func hugeNumber(v cty.Value) bool {
	v, _ = v.Unmark()
	if v.Type() != cty.Number || !v.IsKnown() || v.IsNull() {
		return false
	}
	f := v.AsBigFloat()
	return f.IsInf() || f.MantExp(nil) > diag.MaxExponent || f.MantExp(nil) < -diag.MaxExponent
}

// function returns the function with its arguments and result charged to the budget.
func (m *costBudget) function(name string, f function.Function) function.Function {
	if name == templateString || name == corePrefix+templateString {
		return templateStringFunc(m)
	}
	if strings.TrimPrefix(name, corePrefix) == TemplateFile {
		return templateFileFunc(m, f)
	}
	f = m.bindImpure(name, f)
	params, rest := acceptAll(f.Params()), f.VarParam()
	// Convert arguments to collections here instead of in the caller: see convertCollection.
	want := parameterTypes(name, f)
	if rest != nil {
		if customdecode.CustomExpressionDecoderForType(rest.Type) != nil {
			return keepPassOnlyMarks(f) // try and can: the expressions in their arguments are charged themselves
		}
		rest = &acceptAll([]function.Parameter{*rest})[0]
	}
	for _, p := range params {
		if customdecode.CustomExpressionDecoderForType(p.Type) != nil {
			return keepPassOnlyMarks(f)
		}
	}
	return function.New(&function.Spec{
		// The wrapped function handles unknown, null and marked arguments.
		Params: params, VarParam: rest,
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := m.mayPass(name, args); err != nil {
				return cty.NilType, err
			}
			args, err := convertCollections(args, want)
			if err != nil {
				return cty.NilType, err
			}
			// Some functions compute their whole result in order to determine its type, so charge for the arguments
			// here.
			if err := m.charge(name, args); err != nil {
				return cty.NilType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			args, err := convertCollections(args, want)
			if err != nil {
				return cty.DynamicVal, err
			}
			v, err := f.Call(args)
			if err != nil {
				return v, err
			}
			if hugeNumber(v) {
				return cty.DynamicVal, errors.New("the result is out of range")
			}
			return v, m.spendValue(v)
		},
	})
}

// charge charges the arguments of a function to the budget, and the cost that the function has beyond them.
func (m *costBudget) charge(name string, args []cty.Value) error {
	// lookup and length take one step into their argument. They cost as little as an index and are called as often.
	shallow := slices.Contains([]string{"lookup", "length"}, strings.TrimPrefix(name, corePrefix))
	for i, a := range args {
		pay := m.spendValue
		if shallow {
			pay = func(cty.Value) error { return m.spend(1) }
		}
		if err := pay(a); err != nil {
			return err
		}
		if hugeNumber(a) {
			return function.NewArgErrorf(i, "the number is out of range")
		}
	}
	cost := costs[strings.TrimPrefix(name, corePrefix)]
	if cost == nil || hasUnknown(args) {
		return nil
	}
	n, err := cost(unmarkAll(args), m.left)
	if err != nil {
		return err
	}
	return m.spend(n)
}

// parameterTypes returns a function that gives the type to which argument i is converted. It gives NilType if the
// caller has already converted the argument.
func parameterTypes(name string, f function.Function) func(i int) cty.Type {
	types := make([]cty.Type, 0, len(f.Params()))
	for _, p := range f.Params() {
		types = append(types, p.Type)
	}
	switch strings.TrimPrefix(name, corePrefix) {
	case "tolist":
		types[0] = cty.List(cty.DynamicPseudoType)
	case "toset":
		types[0] = cty.Set(cty.DynamicPseudoType)
	case "tomap":
		types[0] = cty.Map(cty.DynamicPseudoType)
	}
	return func(i int) cty.Type {
		ty := cty.DynamicPseudoType
		if i < len(types) {
			ty = types[i]
		} else if rest := f.VarParam(); rest != nil {
			ty = rest.Type
		}
		if !ty.IsCollectionType() {
			return cty.NilType
		}
		return ty
	}
}

func convertCollections(args []cty.Value, want func(int) cty.Type) ([]cty.Value, error) {
	out := args
	for i, a := range args {
		ty := want(i)
		if ty == cty.NilType || a.IsNull() && a.Type() == cty.DynamicPseudoType {
			continue
		}
		v, err := convertCollection(a, ty)
		if err != nil {
			return nil, function.NewArgError(i, err)
		}
		if &out[0] == &args[0] {
			out = slices.Clone(args)
		}
		out[i] = v
	}
	return out, nil
}

// acceptAll returns copies of the parameters that accept every value.
func acceptAll(params []function.Parameter) []function.Parameter {
	out := make([]function.Parameter, len(params))
	for i, p := range params {
		if p.Type.IsCollectionType() {
			p.Type = cty.DynamicPseudoType
		}
		p.AllowNull, p.AllowUnknown, p.AllowDynamicType, p.AllowMarked = true, true, true, true
		out[i] = p
	}
	return out
}

// hasUnknown reports whether an argument is null or unknown. The function is then not run.
func hasUnknown(args []cty.Value) bool {
	for _, a := range args {
		if !a.IsKnown() || a.IsNull() {
			return true
		}
	}
	return false
}

func unmarkAll(args []cty.Value) []cty.Value {
	out := make([]cty.Value, len(args))
	for i, a := range args {
		out[i], _ = a.UnmarkDeep()
	}
	return out
}

// budgetedExpr charges the cost budget for the result of an expression: for the whole result or, with step, for one
// unit.
type budgetedExpr struct {
	hclsyntax.Expression
	step bool
	// part is true for a part of a template, which must be convertible to a string.
	part bool
}

func (e *budgetedExpr) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	m := costBudgetOf(ctx)
	if m.exceeded != nil {
		return cty.DynamicVal, e.overBudget(m.exceeded)
	}
	v, diags := e.Expression.Value(ctx)
	if e.part && !diags.HasErrors() {
		// The template checks the type only once the value is known, which may be too late.
		if raw, _ := v.Unmark(); !raw.IsKnown() && raw.Type() != cty.DynamicPseudoType &&
			!raw.Type().IsPrimitiveType() {
			return cty.DynamicVal, append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Invalid template interpolation value", Subject: e.Range().Ptr(),
				Detail: "Cannot include the given value in a string template: string required, but it is " +
					article(raw.Type().FriendlyName()) + ".",
			})
		}
	}
	var err error
	if e.step {
		err = m.spend(1)
	} else {
		err = m.spendValue(v)
	}
	if err != nil {
		return cty.DynamicVal, e.overBudget(err)
	}
	if hugeNumber(v) {
		return cty.DynamicVal, append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Invalid number",
			Detail: "The result of the expression is infinite or out of range.", Subject: e.Range().Ptr(),
		})
	}
	return v, diags
}

func (e *budgetedExpr) overBudget(err error) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Expression too large",
		Detail: diag.Sentence(err.Error()), Subject: e.Range().Ptr()}}
}

// chargeValue charges the value of an expression.
func chargeValue(e hclsyntax.Expression) hclsyntax.Expression { return &budgetedExpr{Expression: e} }

// chargeStep charges one step for each evaluation of a part of a for expression, which may be absent.
func chargeStep(e hclsyntax.Expression) hclsyntax.Expression {
	if e == nil {
		return nil
	}
	return &budgetedExpr{Expression: inParentheses(e), step: true}
}

// chargeOperand charges the value of an operand.
func chargeOperand(e hclsyntax.Expression) hclsyntax.Expression {
	if _, literal := e.(*hclsyntax.LiteralValueExpr); literal {
		return e
	}
	return chargeValue(inParentheses(e))
}

// inParentheses rewrites an expression with withBudget. HCL finds traversals within parentheses, but not within a
// budgetedExpr.
func inParentheses(e hclsyntax.Expression) hclsyntax.Expression {
	return &hclsyntax.ParenthesesExpr{Expression: withBudget(e), SrcRange: e.Range()}
}

// withBudget rewrites an expression so that each step that can multiply values is charged to the cost budget.
func withBudget(e hclsyntax.Expression) hclsyntax.Expression {
	if e == nil {
		return nil
	}
	switch e := e.(type) {
	case *hclsyntax.FunctionCallExpr: // the function charges the budget itself
		for i := range e.Args {
			e.Args[i] = withBudget(e.Args[i])
		}
		if n := len(e.Args); e.ExpandFinal && n > 0 {
			e.Args[n-1] = revealedOperand(e.Args[n-1], "The number of arguments", false)
		}
	case *hclsyntax.ConditionalExpr:
		e.Condition, e.TrueResult, e.FalseResult = revealedOperand(withBudget(e.Condition), "A condition", true),
			chargeOperand(e.TrueResult), chargeOperand(e.FalseResult)
		return chargeValue(e)
	case *hclsyntax.IndexExpr:
		e.Collection, e.Key = withBudget(e.Collection), revealedOperand(withBudget(e.Key), "An index", true)
		return &explainedExpr{e}
	case *hclsyntax.TupleConsExpr:
		for i := range e.Exprs {
			e.Exprs[i] = withBudget(e.Exprs[i])
		}
		return chargeValue(e)
	case *hclsyntax.ObjectConsExpr:
		for i := range e.Items {
			e.Items[i].KeyExpr, e.Items[i].ValueExpr = withBudget(e.Items[i].KeyExpr), withBudget(e.Items[i].ValueExpr)
		}
		return chargeValue(e)
	case *hclsyntax.ObjectConsKeyExpr:
		e.Wrapped = keyOf(e)
	case *hclsyntax.ForExpr:
		e.CollExpr, e.KeyExpr = revealedOperand(withBudget(e.CollExpr), "A for expression", false),
			revealedOperand(chargeStep(e.KeyExpr), "A key", true)
		e.ValExpr, e.CondExpr = chargeStep(e.ValExpr), revealedOperand(chargeStep(e.CondExpr), "A condition", true)
		return chargeValue(e)
	case *hclsyntax.SplatExpr:
		e.Source, e.Each = revealedOperand(chargeOperand(e.Source), "A splat", false), withBudget(e.Each)
		return chargeValue(e)
	case *hclsyntax.BinaryOpExpr:
		e.LHS, e.RHS = revealedOperand(chargeOperand(e.LHS), "An operator", true),
			revealedOperand(chargeOperand(e.RHS), "An operator", true)
		return chargeValue(e)
	case *hclsyntax.UnaryOpExpr:
		e.Val = revealedOperand(withBudget(e.Val), "An operator", true)
	case *hclsyntax.ParenthesesExpr:
		e.Expression = withBudget(e.Expression)
	case *hclsyntax.TemplateExpr:
		for i := range e.Parts {
			e.Parts[i] = chargeOperand(e.Parts[i])
			if m, ok := e.Parts[i].(*budgetedExpr); ok {
				m.part = true
			}
		}
		return chargeValue(e)
	case *hclsyntax.TemplateWrapExpr:
		e.Wrapped = withBudget(e.Wrapped)
	case *hclsyntax.TemplateJoinExpr:
		e.Tuple = withBudget(e.Tuple)
		return chargeValue(e)
	case *hclsyntax.RelativeTraversalExpr:
		e.Source = withBudget(e.Source)
		return &explainedExpr{e}
	}
	return e
}
