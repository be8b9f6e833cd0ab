package resource

import (
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"

	"github.com/zclconf/go-cty/cty"
)

// The two lists of conditions in a lifecycle.
const (
	Preconditions  = "preconditions"
	Postconditions = "postconditions"
)

// check is a parsed precondition or postcondition.
type check struct {
	field     string
	condition *lang.Expression
	message   *lang.Expression
}

// parseChecks parses the preconditions or postconditions of a resource. Only postconditions may refer to the resource
// itself.
func (r *Resource) parseChecks(which string, options lang.ExpressionOptions) parsed[*check] {
	written := r.Lifecycle.Preconditions
	if which == Postconditions {
		written = r.Lifecycle.Postconditions
		options.Self = r.Schema.Block
	}
	var out parsed[*check]
	for i, w := range written {
		c := &check{field: fmt.Sprintf("lifecycle.%s[%d]", which, i)}
		var ofCondition, ofMessage diag.Diagnostics
		options.Type = cty.Bool
		c.condition, ofCondition = lang.ParseExpression(w.Condition, c.field+".condition", options)
		options.Type = cty.String
		c.message, ofMessage = lang.ParseExpression(w.ErrorMessage, c.field+".errorMessage", options)
		out.list, out.diags = append(out.list, c), slices.Concat(out.diags, ofCondition, ofMessage)
	}
	return out
}

func (r *Resource) checks(which string) *parsed[*check] {
	if which == Postconditions {
		return &r.Parse().postconditions
	}
	return &r.Parse().preconditions
}

// CheckReferences lists the references of a resource's conditions to other objects.
func CheckReferences(r *Resource, which string) []lang.Reference {
	var refs []lang.Reference
	for _, c := range r.checks(which).list {
		refs = append(refs, c.references()...)
	}
	return refs
}

func (c *check) references() []lang.Reference {
	return slices.Concat(c.condition.References(), c.message.References())
}

// Holds evaluates the conditions of a resource. open is true if the result of one is not known yet. The error names all
// conditions that are false.
func Holds(r *Resource, which string, at lang.EvaluationContext, scope func(lang.Address) (cty.Value, bool),
	self cty.Value) (open bool, err error) {
	checks := r.checks(which)
	if err := checks.failure("check"); err != nil {
		return false, err
	}
	diags := slices.Clone(checks.diags)
	for _, c := range checks.list {
		ok, more := c.condition.With(at).Evaluate(scope, self)
		diags = append(diags, more...)
		if diag.HasErrors(more) {
			continue
		}
		ok, _ = ok.UnmarkDeep()
		switch {
		case !ok.IsKnown():
			open = true
		case ok.IsNull() || ok.Type() != cty.Bool:
			diags = append(diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError,
				Summary: "Invalid condition result", Attribute: c.field + ".condition",
				Detail: "The condition must be true or false, such as ${self.size > 10}."})
		case ok.False():
			diags = append(diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: failedCheck[which],
				Attribute: c.field, Detail: c.text(at, scope, self)})
		}
	}
	if diag.HasErrors(diags) {
		return open, &diag.Failure{Kind: diag.Unevaluated, Operation: "check", Diagnostics: diags}
	}
	return open, nil
}

// failedCheck holds Terraform's summary of a false condition.
var failedCheck = map[string]string{
	Preconditions:  "Resource precondition failed",
	Postconditions: "Resource postcondition failed",
}

// text returns the error message of a condition. It does not show sensitive values.
func (c *check) text(at lang.EvaluationContext, scope func(lang.Address) (cty.Value, bool), self cty.Value) string {
	v, diags := c.message.With(at).Evaluate(scope, self)
	switch {
	case diag.HasErrors(diags):
		return "Its error message could not be evaluated: " + diag.Describe(diags)
	case v.ContainsMarked():
		return "The error message refers to sensitive values, so it is not shown."
	case !v.IsKnown() || v.IsNull() || v.Type() != cty.String:
		return "Its error message is not known yet."
	}
	return v.AsString()
}
