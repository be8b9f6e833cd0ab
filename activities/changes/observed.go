package changes

import (
	"context"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"
)

// This file keeps plans from changing the resources of a Module with the mode Observe. That is a rule like those of
// policies, which denies the plan. Each step checks it again.

// observed finds the Modules with the mode Observe that the changes of a plan change.
type observed struct {
	namespace string
	modules   []index.Observed
	found     map[string]bool
}

func observedIn(ctx context.Context, src *scope.Sources, namespace string) (*observed, error) {
	o := &observed{namespace: namespace, found: map[string]bool{}}
	if src.Index == nil {
		return o, nil
	}
	var err error
	if o.modules, err = src.Index.ObservedModules(ctx, namespace); err != nil {
		return nil, fmt.Errorf("read the Modules of namespace %q: %w", namespace, err)
	}
	return o, nil
}

// empty reports whether no Module has the mode Observe.
func (o *observed) empty() bool { return len(o.modules) == 0 }

// add notes what a change changes.
func (o *observed) add(c *ledger.Change) {
	refs := []v1alpha1.ObjectReference{c.Object}
	if c.Preconditions.From != nil {
		refs = append(refs, *c.Preconditions.From)
	}
	for _, ref := range refs {
		at := slices.IndexFunc(o.modules, func(m index.Observed) bool { return m.Name == ref.Set })
		if at >= 0 && v1alpha1.InModule(ref.Name) && !onlyNotes(c, o.modules[at].Deleting) {
			o.found[ref.Set] = true
		}
	}
}

// onlyNotes reports whether a change of a resource in a Module with the mode Observe only records what a provider has
// read, or forgets a resource because the Module is deleted.
func onlyNotes(c *ledger.Change, deleted bool) bool {
	switch c.Action {
	case v1alpha1.ActionRead:
		return true
	case v1alpha1.ActionNoOp:
		return c.Importing == nil && c.PreviousAddress == "" && c.Preconditions.From == nil
	case v1alpha1.ActionForget:
		return deleted
	}
	return false
}

// denials returns a rule that holds for each Module that the plan changes.
func (o *observed) denials() (out []v1alpha1.PlanPolicyResult) {
	for _, m := range o.modules {
		if o.found[m.Name] {
			out = append(out, v1alpha1.PlanPolicyResult{Rule: "Module/" + m.Name, Effect: v1alpha1.PolicyDeny,
				Message: observedText(o.namespace, m.Name)})
		}
	}
	return out
}

func observedText(namespace, module string) string {
	return fmt.Sprintf(`Its spec.mode is Observe, so no plan changes its resources. To let plans change them: `+
		`kubectl patch module %s -n %s --type=merge -p '{"spec":{"mode":"Manage"}}'`, module, namespace)
}

// CheckObserved returns a *StaleError if a change is about a Module with the mode Observe, and does more than to read.
func CheckObserved(ctx context.Context, src *scope.Sources, c *ledger.Change) error {
	if !v1alpha1.InModule(c.Object.Name) && (c.Preconditions.From == nil ||
		!v1alpha1.InModule(c.Preconditions.From.Name)) {
		return nil
	}
	o, err := observedIn(ctx, src, c.Object.Namespace)
	if err != nil {
		return err
	}
	o.add(c)
	for _, denial := range o.denials() {
		return Stale(v1alpha1.StalePolicyDenied, "%s: %s", denial.Rule, denial.Message)
	}
	return nil
}
