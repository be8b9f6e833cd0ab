package planning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"

	"github.com/zclconf/go-cty/cty"
)

// This file finds the resources that a plan leaves out and that refer to its changes. It also finds why a plan destroys
// a resource that the user did not name.

// maxReferrers is the maximum number of referrers that a change stores.
const maxReferrers = 1000

// referrer returns a Referrer for the resource addr. refs are its references to one other resource.
func referrer(addr lang.Address, refs []lang.Reference) ledger.Referrer {
	r := ledger.Referrer{Address: addr.String()}
	for _, ref := range refs {
		if ref.Attribute == "" {
			return ledger.Referrer{Address: r.Address}
		}
		r.Attributes = append(r.Attributes, ref.Attribute)
	}
	slices.Sort(r.Attributes)
	r.Attributes = slices.Compact(r.Attributes)
	return r
}

// affected returns the referrers of a planned change that refer to a value that the change modifies.
func affected(c *ledger.Change, e *expected) []ledger.Referrer {
	if changes.HasNoSteps(c) || c.Deposed != "" {
		return nil
	}
	differs := map[string]bool{}
	for _, r := range c.Referrers {
		for _, name := range r.Attributes {
			if _, known := differs[name]; !known {
				differs[name] = plan.Differs(attribute(e.prior, name), attribute(e.planned, name))
			}
		}
	}
	whole := plan.Differs(e.prior, e.planned)
	return slices.DeleteFunc(c.Referrers, func(r ledger.Referrer) bool {
		if len(r.Attributes) == 0 {
			return !whole
		}
		return !slices.ContainsFunc(r.Attributes, func(name string) bool { return differs[name] })
	})
}

// attribute returns an attribute of a value. It returns the value itself if the value is null, unknown, or has no such
// attribute.
func attribute(v cty.Value, name string) cty.Value {
	if v == cty.NilVal {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	v, _ = v.Unmark()
	if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return v
	}
	return v.GetAttr(name)
}

// leftOut returns a warning about the resources that a plan leaves out and that refer to its changes.
func leftOut(po *v1alpha1.Plan, referrers []string) v1alpha1.Diagnostic {
	total := len(referrers)
	subject := changes.Counted(total, "resource that the plan leaves out refers",
		"resources that the plan leaves out refer")
	return v1alpha1.Diagnostic{
		Severity: v1alpha1.SeverityWarning, Summary: "Resources that refer to the changes are left out",
		Detail: fmt.Sprintf("%s to what it changes: %s. When this plan is applied, plan them with kubectl hykube plan -n %s, or apply with kubectl hykube apply --all -n %s.",
			subject, listNames(referrers), po.Namespace, po.Namespace),
	}
}

// listNames returns a list of at most three names, and the number of the other names.
func listNames(names []string) string {
	const most = 3
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// destroyedWith returns the address of a resource that a destroy plan destroys and that n depends on; "" if none
// exists.
func (s *survey) destroyedWith(n *node, l links) string {
	if !s.spec.Destroy || n.Mode != v1alpha1.ModeManaged {
		return ""
	}
	for _, addr := range n.requires {
		if _, ok := l.position(addr); ok && addr.Mode == "" {
			return addr.String()
		}
	}
	return ""
}
