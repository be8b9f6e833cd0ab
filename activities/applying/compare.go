package applying

import (
	"slices"
	"strings"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/scope"

	"github.com/zclconf/go-cty/cty"
)

// This file compares the resource that a step reads with the approved one. Its ID may meanwhile be that of another
// resource.

// comparison says which attributes of the resource must be the approved ones.
type comparison int

const (
	// allAttributes is the comparison for a step before which the plan changed nothing else.
	allAttributes comparison = iota
	// argumentsAlone is the comparison for a step after others, or after an earlier attempt. Those change what a
	// provider computes, such as the rules in a group whose rules the plan has destroyed.
	argumentsAlone
)

// differences lists the attributes in which a resource is not the approved one. It ignores the unsettled ones, which
// planning already found changed: they may change by themselves.
func (c comparison) differences(block *schema.Block, approved, found instance.State, unsettled []string) []string {
	names := slices.DeleteFunc(plan.Drifted(approved.Value, found.Value), func(name string) bool {
		return slices.Contains(unsettled, name) || c == argumentsAlone && !isArgument(block, name)
	})
	if known(approved.Identity) && known(found.Identity) && !approved.Identity.RawEquals(found.Identity) {
		names = append(names, "its identity")
	}
	return names
}

func known(identity cty.Value) bool { return identity != cty.NilVal && !identity.IsNull() }

// isArgument reports whether users alone set an attribute, or whether it is the ID. A nested block may have attributes
// that the provider computes.
func isArgument(block *schema.Block, name string) bool {
	return name == "id" || slices.ContainsFunc(block.Attributes,
		func(a *schema.Attribute) bool { return a.Name == name && !a.Computed })
}

// notApproved returns the *StaleError for a resource that differs from the approved one in some attributes. elsewhere
// is true if the provider may reach another account than during planning.
func notApproved(l *scope.Lease, names []string, elsewhere bool) error {
	which := strings.Join(names, ", ")
	if elsewhere {
		return changes.Stale(v1alpha1.StaleProviderConfigChanged,
			"the arguments of the ProviderConfig %q changed after the plan was made, and with the new ones the resource is not the approved one: %s", l.ConfigName(), which)
	}
	return changes.Stale(v1alpha1.StaleStateChanged,
		"the resource is not the approved one: since the plan read it, or without a refresh since its state was recorded, these changed: %s", which)
}
