package resource

import (
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"

	"github.com/zclconf/go-cty/cty"
)

// Which of the conditions of a lifecycle are meant.
const (
	Preconditions  = "preconditions"
	Postconditions = "postconditions"
)

// parsedCheck is a pre- or postcondition, parsed.
type parsedCheck struct {
	field     string
	condition *lang.Expression
	message   *lang.Expression
}

// ChecksOf parses the conditions of a resource. The postconditions alone may speak of the resource itself.
func ChecksOf(r *Resource, which string, options lang.ExpressionOptions) ([]parsedCheck, diag.Diagnostics) {
	written := r.Lifecycle.Preconditions
	if which == Postconditions {
		written = r.Lifecycle.Postconditions
	}
	options.Namespace = r.Ref.Namespace
	if which == Postconditions {
		options.Self = r.Schema.Block
	}
	var out []parsedCheck
	var diags diag.Diagnostics
	for i, w := range written {
		c := parsedCheck{field: fmt.Sprintf("lifecycle.%s[%d]", which, i)}
		var more diag.Diagnostics
		options.Type = cty.Bool
		c.condition, more = lang.ParseExpression(w.Condition, c.field+".condition", options)
		diags = append(diags, more...)
		options.Type = cty.String
		c.message, more = lang.ParseExpression(w.ErrorMessage, c.field+".errorMessage", options)
		diags = append(diags, more...)
		out = append(out, c)
	}
	return out, diags
}

// References lists what conditions refer to.
func References(checks []parsedCheck) []lang.Reference {
	var refs []lang.Reference
	for _, c := range checks {
		refs = append(append(refs, c.condition.References()...), c.message.References()...)
	}
	return refs
}

// Holds evaluates the conditions of a resource. open is true when some cannot be told yet. The error names all that do
// not hold.
func Holds(r *Resource, which string, options lang.ExpressionOptions, scope func(lang.Address) (cty.Value, bool), self cty.Value) (open bool, err error) {
	checks, diags := ChecksOf(r, which, options)
	for _, c := range checks {
		if diag.HasErrors(diags) {
			break
		}
		ok, more := c.condition.Evaluate(scope, self)
		diags = append(diags, more...)
		if diag.HasErrors(more) {
			continue
		}
		ok, _ = ok.UnmarkDeep()
		switch {
		case !ok.IsKnown():
			open = true
		case ok.IsNull() || ok.Type() != cty.Bool:
			diags = append(diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "Invalid condition result", Attribute: c.field + ".condition",
				Detail: "The condition must be true or false, such as ${self.size > 10}."})
		case ok.False():
			diags = append(diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: failedCheck[which], Attribute: c.field, Detail: c.text(scope, self)})
		}
	}
	if diag.HasErrors(diags) {
		return open, &diag.Failure{Operation: "check", Diagnostics: diags}
	}
	return open, nil
}

// failedCheck is what Terraform calls a condition that does not hold.
var failedCheck = map[string]string{
	Preconditions:  "Resource precondition failed",
	Postconditions: "Resource postcondition failed",
}

// text is the error message of a condition, without what must not be shown.
func (c *parsedCheck) text(scope func(lang.Address) (cty.Value, bool), self cty.Value) string {
	v, diags := c.message.Evaluate(scope, self)
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
