package access

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	rbac "k8s.io/kubernetes/pkg/apis/rbac/v1"
)

// TestRoles lists the rights of the roles view, edit and admin, each without those that it inherits.
func TestRoles(t *testing.T) {
	roles := append(ClusterRoles(), ProviderRoles("sim", []string{"sim-networks", "data-sim-images"})...)
	rules := func(labels ...string) (out []rbacv1.PolicyRule) {
		for _, r := range roles {
			for label := range r.Labels {
				if slices.Contains(labels, label) && strings.HasPrefix(r.Name, "hykube:") {
					out = append(out, r.Rules...)
				}
			}
		}
		return out
	}
	view := rules(aggregateToView)
	edit := rules(aggregateToView, aggregateToEdit)
	admin := rules(aggregateToView, aggregateToEdit, aggregateToAdmin)
	for _, test := range []struct {
		verb, group, resource, subresource string
		view, edit, admin                  bool
	}{
		{"get", "sim.hykube.io", "sim-networks", "", true, true, true},
		{"list", "sim.hykube.io", "data-sim-images", "", true, true, true},
		{"create", "sim.hykube.io", "data-sim-images", "", false, true, true},
		{"create", "sim.hykube.io", "sim-networks", "taint", false, true, true},
		{"delete", "sim.hykube.io", "sim-networks", "taint", false, true, true},
		{"create", "sim.hykube.io", "sim-networks", "resolve", false, true, true},
		{"get", "sim.hykube.io", "sim-networks", "state", false, false, true},
		{"update", "sim.hykube.io", "sim-networks", "status", false, false, false},
		{"create", "hykube.io", "queries", "", false, true, true},
		{"create", "hykube.io", "evaluations", "", true, true, true},
		{"use", "hykube.io", "providerconfigs", "", false, true, true},
		{"approve", "hykube.io", "plans", "", false, false, true},
		{"get", "", "configmaps", "", true, true, true},
		{"get", "", "secrets", "", false, true, true},
	} {
		combined := test.resource
		if test.subresource != "" {
			combined += "/" + test.subresource
		}
		for name, role := range map[string]struct {
			rules []rbacv1.PolicyRule
			want  bool
		}{"view": {view, test.view}, "edit": {edit, test.edit}, "admin": {admin, test.admin}} {
			got := slices.ContainsFunc(role.rules, func(r rbacv1.PolicyRule) bool {
				return rbac.VerbMatches(&r, test.verb) && rbac.APIGroupMatches(&r, test.group) &&
					rbac.ResourceMatches(&r, combined, test.subresource)
			})
			if got != role.want {
				t.Errorf("%s may %s %s of %q: %t, want %t", name, test.verb, combined, test.group, got, role.want)
			}
		}
	}
}
