package access

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Labels by which Kubernetes' roles view, edit and admin take up the rules of other roles.
const (
	aggregateToView  = "rbac.authorization.k8s.io/aggregate-to-view"
	aggregateToEdit  = "rbac.authorization.k8s.io/aggregate-to-edit"
	aggregateToAdmin = "rbac.authorization.k8s.io/aggregate-to-admin"
)

// VerbApprove lets somebody approve or discard plans; VerbUse lets somebody's plans and queries use a ProviderConfig.
const (
	VerbApprove = "approve"
	VerbUse     = "use"
)

var (
	readVerbs  = []string{"get", "list", "watch"}
	writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}
	// decideVerbs are what kubectl needs to patch a subresource, beside the update of the plugin.
	decideVerbs = []string{"get", "update", "patch"}
)

// kubernetesRoles are those of Kubernetes' own bootstrap roles that mean something here.
var kubernetesRoles = []string{
	"cluster-admin", "admin", "edit", "view",
	"system:discovery", "system:basic-user", "system:public-info-viewer", "system:monitoring",
}

// ClusterRoles returns the roles that every server has.
func ClusterRoles() []rbacv1.ClusterRole {
	roles := slices.DeleteFunc(bootstrappolicy.ClusterRoles(), func(r rbacv1.ClusterRole) bool { return !slices.Contains(kubernetesRoles, r.Name) })
	group := []string{v1alpha1.GroupName}
	return append(roles,
		role("hykube:aggregate-to-view", aggregateToView,
			rule([]string{""}, []string{"configmaps", "events", "namespaces"}, readVerbs),
			rule([]string{"events.k8s.io"}, []string{"events"}, readVerbs),
			rule(group, []string{"providerconfigs", "providerconfigs/status", "plans", "plans/status", "plans/changes", "planrecords"}, readVerbs),
			// An evaluation shows its author nothing that they may not read.
			rule(group, []string{"evaluations"}, []string{"create"}),
		),
		role("hykube:aggregate-to-edit", aggregateToEdit,
			rule([]string{""}, []string{"configmaps"}, writeVerbs),
			rule([]string{""}, []string{"secrets"}, slices.Concat(readVerbs, writeVerbs)),
			rule(group, []string{"providerconfigs"}, slices.Concat(writeVerbs, []string{VerbUse})),
			rule(group, []string{"providerconfigs/undelete"}, []string{"create"}),
			rule([]string{""}, []string{"secrets/undelete", "configmaps/undelete"}, []string{"create"}),
			rule(group, []string{"plans"}, writeVerbs),
			rule(group, []string{"plans/cancel"}, []string{"update"}),
			// A query is asked in the name of a ProviderConfig, so it needs the verb "use" on that, too.
			rule(group, []string{"queries"}, []string{"create"}),
		),
		role("hykube:aggregate-to-admin", aggregateToAdmin,
			rule(group, []string{"plans"}, []string{VerbApprove}),
			rule(group, []string{"plans/approval"}, decideVerbs),
			rule([]string{"rbac.authorization.k8s.io"}, []string{"roles", "rolebindings"}, slices.Concat(readVerbs, writeVerbs)),
			rule([]string{"authorization.k8s.io"}, []string{"localsubjectaccessreviews"}, []string{"create"}),
		),
		role("hykube:plan-approver", "",
			rule(group, []string{"plans", "plans/status", "plans/changes", "planrecords"}, readVerbs),
			rule(group, []string{"plans"}, []string{VerbApprove}),
			rule(group, []string{"plans/approval"}, decideVerbs),
		),
		// Neither edit nor admin has this: who approves plans must not remove the record of it.
		role("hykube:plan-record-deleter", "", rule(group, []string{"planrecords"}, slices.Concat(readVerbs, []string{"delete", "deletecollection"}))),
		role("hykube:provider-viewer", "",
			rule(group, []string{"providers"}, readVerbs),
			// A validation reads the providers' schemas, which the OpenAPI documents show to every user, and nothing else.
			rule(group, []string{"validations"}, []string{"create"}),
			rule([]string{"apiregistration.k8s.io"}, []string{"apiservices"}, readVerbs),
		),
		role("hykube:temporal", "", rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"/temporal", "/temporal/*"}}),
	)
}

// ProviderRoles returns the roles that let view, edit and admin reach a provider's kinds. They name every resource, since
// "*" would let every viewer read the subresource "state", where secrets are.
func ProviderRoles(provider string, resources []string) []rbacv1.ClusterRole {
	group := []string{v1alpha1.ProviderGroup(provider)}
	status := make([]string, len(resources))
	for i, r := range resources {
		status[i] = r + "/status"
	}
	prefix := "hykube:provider:" + provider + ":"
	return []rbacv1.ClusterRole{
		role(prefix+"view", aggregateToView, rule(group, slices.Concat(resources, status), readVerbs)),
		role(prefix+"edit", aggregateToEdit,
			rule(group, resources, writeVerbs),
			rule(group, []string{"*/taint"}, []string{"create", "delete"}),
			rule(group, []string{"*/undelete"}, []string{"create"}),
		),
		role(prefix+"admin", aggregateToAdmin, rule(group, []string{"*/state"}, []string{"get"})),
	}
}

// ClusterRoleBindings returns the bindings that every server has.
func ClusterRoleBindings() []rbacv1.ClusterRoleBinding {
	bindings := slices.DeleteFunc(bootstrappolicy.ClusterRoleBindings(), func(b rbacv1.ClusterRoleBinding) bool {
		return !slices.Contains(kubernetesRoles, b.RoleRef.Name)
	})
	// Which providers there are is no secret: it says what can be written at all.
	return append(bindings, rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "hykube:provider-viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hykube:provider-viewer"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
	})
}

// EnsureRoles creates roles and bindings, and adds to existing ones what they lack. Like Kubernetes, it leaves alone those
// annotated rbac.authorization.kubernetes.io/autoupdate=false.
func EnsureRoles(ctx context.Context, client kubernetes.Interface, roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding) error {
	var errs []error
	for _, r := range roles {
		opts := reconciliation.ReconcileRoleOptions{
			Role:    reconciliation.ClusterRoleRuleOwner{ClusterRole: &r},
			Client:  reconciliation.ClusterRoleModifier{Client: client.RbacV1().ClusterRoles()},
			Confirm: true,
		}
		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { _, err := opts.Run(); return err }); err != nil {
			errs = append(errs, fmt.Errorf("ensure cluster role %q: %w", r.Name, err))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for _, b := range bindings {
		opts := reconciliation.ReconcileRoleBindingOptions{
			RoleBinding: reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &b},
			Client:      reconciliation.ClusterRoleBindingClientAdapter{Client: client.RbacV1().ClusterRoleBindings()},
			Confirm:     true,
		}
		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { _, err := opts.Run(); return err }); err != nil {
			errs = append(errs, fmt.Errorf("ensure cluster role binding %q: %w", b.Name, err))
		}
	}
	return errors.Join(errs...)
}

func role(name, label string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
	r := rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if label != "" {
		r.Labels = map[string]string{label: "true"}
	}
	return r
}

func rule(groups, resources, verbs []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: verbs}
}
