// Package policy evaluates the rules of PlanPolicies and ClusterPlanPolicies for a plan. It compiles the rules' CEL
// expressions and bounds their cost. Its verdict says if the plan is denied, which approvals it needs, and if it may be
// applied without an approval. The package reads no objects: the caller supplies the policies and the plan.
package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	maxRules      = 50
	maxExpression = 8 << 10
	maxMessage    = 4 << 10
	maxApprovals  = 20
	// maxUndecided is the maximum number of addresses of an undecided rule.
	maxUndecided = 5
)

// Set holds the compiled rules for the plans of one namespace.
type Set struct{ rules []rule }

// rule is a compiled rule.
type rule struct {
	v1alpha1.PlanPolicyRule
	// path is KIND/POLICY/RULE.
	path string
	when cel.Program
	// message is nil for a rule without messageExpression.
	message cel.Program
	// lapsed is why the rule, with the effect AllowAutomatic, allows nothing; "" if it works.
	lapsed string
	// author is the user who wrote a policy with the effect AllowAutomatic; "" for other rules, and if nobody knows.
	author string
	// broken is the compile error of the rule. A broken rule denies every plan. The server rejects policies with broken
	// rules, but an upgrade can break a stored rule.
	broken error
}

// NewSet compiles the policies of a namespace, and the cluster policies whose selector matches the namespace's labels.
func NewSet(policies []v1alpha1.PlanPolicy, cluster []v1alpha1.ClusterPlanPolicy, namespace map[string]string) *Set {
	s := &Set{}
	for _, p := range cluster {
		selected := p.Spec.NamespaceSelector == nil
		if !selected {
			selector, err := metav1.LabelSelectorAsSelector(p.Spec.NamespaceSelector)
			// an invalid selector selects all namespaces
			selected = err != nil || selector.Matches(labels.Set(namespace))
		}
		if selected {
			s.add("ClusterPlanPolicy/"+p.Name, p.Spec.PlanPolicySpec, p.Status.Author)
		}
	}
	for _, p := range policies {
		s.add("PlanPolicy/"+p.Name, p.Spec, p.Status.Author)
	}
	return s
}

// Empty reports whether the set has no rules.
func (s *Set) Empty() bool { return len(s.rules) == 0 }

func (s *Set) add(name string, spec v1alpha1.PlanPolicySpec, author *v1alpha1.Identity) {
	for _, r := range spec.Rules {
		c := rule{PlanPolicyRule: r, path: name + "/" + r.Name}
		if c.when, c.broken = compile(r.When, cel.BoolType); c.broken == nil && r.MessageExpression != "" {
			c.message, c.broken = compile(r.MessageExpression, cel.StringType)
		}
		if author != nil && r.Effect == v1alpha1.PolicyAllowAutomatic {
			c.author = author.String()
		}
		s.rules = append(s.rules, c)
	}
}

// Lapse makes the rules AllowAutomatic of a policy, such as "PlanPolicy/automatic", allow nothing. The reason is about
// the policy.
func (s *Set) Lapse(policy, why string) {
	for i := range s.rules {
		if r := &s.rules[i]; r.Effect == v1alpha1.PolicyAllowAutomatic && strings.HasPrefix(r.path, policy+"/") {
			r.lapsed = why
		}
	}
}

// lapsedRules returns why rules AllowAutomatic allow nothing.
func (s *Set) lapsedRules() []string {
	var out []string
	for _, r := range s.rules {
		if r.lapsed != "" {
			out = append(out, fmt.Sprintf("%s allows nothing: %s", r.path, r.lapsed))
		}
	}
	return out
}

// Validate validates the rules of a policy.
func Validate(spec v1alpha1.PlanPolicySpec, path *field.Path) field.ErrorList {
	path = path.Child("rules")
	switch {
	case len(spec.Rules) == 0:
		return field.ErrorList{field.Required(path, "a policy needs at least one rule")}
	case len(spec.Rules) > maxRules:
		return field.ErrorList{field.TooMany(path, len(spec.Rules), maxRules)}
	}
	var errs field.ErrorList
	names := map[string]bool{}
	for i, r := range spec.Rules {
		at := path.Index(i)
		if names[r.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), r.Name))
		}
		names[r.Name] = true
		for _, msg := range validation.IsDNS1123Label(r.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), r.Name, msg))
		}
		errs = append(errs, validateExpression(r.When, at.Child("when"), cel.BoolType)...)
		if r.MessageExpression != "" {
			errs = append(errs, validateExpression(r.MessageExpression, at.Child("messageExpression"),
				cel.StringType)...)
		}
		if len(r.Message) > maxMessage {
			errs = append(errs, field.TooLong(at.Child("message"), "", maxMessage))
		}
		errs = append(errs, validateEffect(r, at)...)
	}
	return errs
}

func validateEffect(r v1alpha1.PlanPolicyRule, at *field.Path) field.ErrorList {
	effects := []v1alpha1.PlanPolicyEffect{v1alpha1.PolicyDeny, v1alpha1.PolicyWarn, v1alpha1.PolicyRequireApprovals,
		v1alpha1.PolicyAllowAutomatic}
	var errs field.ErrorList
	if !slices.Contains(effects, r.Effect) {
		errs = append(errs, field.NotSupported(at.Child("effect"), r.Effect, effects))
	}
	a := r.Approvals
	switch {
	case a == nil && r.Effect == v1alpha1.PolicyRequireApprovals:
		return append(errs, field.Required(at.Child("approvals"),
			"write the number of users who must approve, such as {count: 2}"))
	case a == nil:
		return errs
	case r.Effect != v1alpha1.PolicyRequireApprovals:
		return append(errs, field.Forbidden(at.Child("approvals"),
			fmt.Sprintf("is only for the effect %s", v1alpha1.PolicyRequireApprovals)))
	}
	if a.Count < 0 || a.Count > maxApprovals {
		errs = append(errs, field.Invalid(at.Child("approvals", "count"), a.Count,
			fmt.Sprintf("must be between 1 and %d", maxApprovals)))
	}
	for i, g := range a.Groups {
		if g == "" {
			errs = append(errs, field.Required(at.Child("approvals", "groups").Index(i), "name of a group"))
		}
	}
	return errs
}

func validateExpression(text string, at *field.Path, want *cel.Type) field.ErrorList {
	switch {
	case text == "":
		return field.ErrorList{field.Required(at, "a CEL expression, such as counts.delete > 0")}
	case len(text) > maxExpression:
		return field.ErrorList{field.TooLong(at, "", maxExpression)}
	}
	if _, err := compile(text, want); err != nil {
		return field.ErrorList{field.Invalid(at, text, err.Error())}
	}
	// This check applies only to new expressions, because an upgrade must not break stored rules.
	if parsed, issues := environment().Compile(text); issues.Err() == nil {
		if err := checkFields(parsed.NativeRep().Expr()); err != nil {
			return field.ErrorList{field.Invalid(at, text, err.Error())}
		}
	}
	return nil
}

// AllowsAutomatic reports whether a policy has a rule with the effect AllowAutomatic.
func AllowsAutomatic(spec v1alpha1.PlanPolicySpec) bool {
	return slices.ContainsFunc(spec.Rules,
		func(r v1alpha1.PlanPolicyRule) bool { return r.Effect == v1alpha1.PolicyAllowAutomatic })
}

// HasAutomatic reports whether a rule of the set has the effect AllowAutomatic. Then the server applies a plan
// automatically only if such a rule holds.
func (s *Set) HasAutomatic() bool {
	return slices.ContainsFunc(s.rules, func(r rule) bool { return r.Effect == v1alpha1.PolicyAllowAutomatic })
}

// UsesEarlier reports whether an expression of the set may use the variable earlier. If not, the caller need not read
// the records of earlier plans.
func (s *Set) UsesEarlier() bool { return s.uses("earlier") }

// UsesPlan reports whether an expression of the set may use the variable plan. If not, the caller need not add values.
func (s *Set) UsesPlan() bool { return s.uses("plan") }

func (s *Set) uses(variable string) bool {
	return slices.ContainsFunc(s.rules, func(r rule) bool { return mentions(r.PlanPolicyRule, variable) })
}

// UsesLabels reports whether policies may use the labels of the namespace. If not, the caller need not read it.
func UsesLabels(policies []v1alpha1.PlanPolicy, cluster []v1alpha1.ClusterPlanPolicy) bool {
	uses := func(spec v1alpha1.PlanPolicySpec) bool {
		return slices.ContainsFunc(spec.Rules, func(r v1alpha1.PlanPolicyRule) bool {
			return mentions(r, "namespaceObject")
		})
	}
	return slices.ContainsFunc(policies, func(p v1alpha1.PlanPolicy) bool { return uses(p.Spec) }) ||
		slices.ContainsFunc(cluster, func(p v1alpha1.ClusterPlanPolicy) bool {
			return p.Spec.NamespaceSelector != nil || uses(p.Spec.PlanPolicySpec)
		})
}

// mentions reports whether an expression of a rule may use a variable.
func mentions(r v1alpha1.PlanPolicyRule, variable string) bool {
	return strings.Contains(r.When+r.MessageExpression, variable)
}

// count returns the number of users who must approve.
func count(a *v1alpha1.RequiredApprovals) int { return int(cmp.Or(a.Count, 1)) }
