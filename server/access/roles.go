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

// Labels of roles whose rules Kubernetes aggregates into the roles view, edit and admin.
const (
	aggregateToView  = "rbac.authorization.k8s.io/aggregate-to-view"
	aggregateToEdit  = "rbac.authorization.k8s.io/aggregate-to-edit"
	aggregateToAdmin = "rbac.authorization.k8s.io/aggregate-to-admin"
)

// VerbApprove permits approving and discarding plans. VerbUse permits plans and queries of a user to use a
// ProviderConfig. VerbWork permits taking the tasks of workflows.
const (
	VerbApprove = "approve"
	VerbUse     = "use"
	VerbWork    = "work"
)

var (
	readVerbs  = []string{"get", "list", "watch"}
	writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}
	// decideVerbs are the verbs for a decision: kubectl patches the subresource, and the plugin updates it.
	decideVerbs = []string{"get", "update", "patch"}
)

// kubernetesRoles lists Kubernetes' bootstrap roles that apply to this server.
var kubernetesRoles = []string{
	"cluster-admin", "admin", "edit", "view",
	"system:discovery", "system:basic-user", "system:public-info-viewer", "system:monitoring",
}

// ClusterRoles returns the predefined roles.
func ClusterRoles() []rbacv1.ClusterRole {
	roles := slices.DeleteFunc(bootstrappolicy.ClusterRoles(),
		func(r rbacv1.ClusterRole) bool { return !slices.Contains(kubernetesRoles, r.Name) })
	group := []string{v1alpha1.GroupName}
	return append(roles,
		role("hykube:aggregate-to-view", aggregateToView,
			rule([]string{""}, []string{"configmaps", "events", "namespaces", "resourcequotas",
				"resourcequotas/status"}, readVerbs),
			rule([]string{"events.k8s.io"}, []string{"events"}, readVerbs),
			rule(group, []string{"providerconfigs", "providerconfigs/status", "plans", "plans/status", "plans/changes",
				"planrecords", "planpolicies", "resources",
				"resourcesets", "resourcesets/status", "resourcesets/instances", "resourcesets/scale", "modules",
				"modules/status", "modules/instances",
				"stacks", "stacks/status",
				"notifications", "notifications/status"}, readVerbs),
			// An evaluation reads with the rights of its author.
			rule(group, []string{"evaluations"}, []string{"create"}),
		),
		role("hykube:aggregate-to-edit", aggregateToEdit,
			rule([]string{""}, []string{"configmaps"}, writeVerbs),
			rule([]string{""}, []string{"secrets"}, slices.Concat(readVerbs, writeVerbs)),
			rule(group, []string{"providerconfigs"}, slices.Concat(writeVerbs, []string{VerbUse})),
			rule(group, []string{"providerconfigs/undelete", "resourcesets/undelete", "modules/undelete"},
				[]string{"create"}),
			rule([]string{""}, []string{"secrets/undelete", "configmaps/undelete"}, []string{"create"}),
			rule(group, []string{"plans", "resourcesets", "modules", "stacks", "notifications"}, writeVerbs),
			rule(group, []string{"resourcesets/scale"}, []string{"update", "patch"}),
			rule(group, []string{"plans/cancel"}, []string{"update"}),
			rule(group, []string{"stacks/drift", "stacks/cancel", "stacks/takeover"}, []string{"create"}),
			// A query uses a ProviderConfig, so it also needs the verb "use" on that.
			rule(group, []string{"queries"}, []string{"create"}),
		),
		// Workflows of users, which the service of Temporal on this server's port serves. It is a role of its own, so
		// that an administrator can take it out of edit, and give rights on single task queues instead.
		role("hykube:workflows", aggregateToEdit,
			rule(group, []string{"workflows"}, []string{"get", "list", "create", "update", "delete", VerbWork})),
		role("hykube:aggregate-to-admin", aggregateToAdmin,
			rule(group, []string{"plans"}, []string{VerbApprove}),
			rule(group, []string{"plans/approval"}, decideVerbs),
			// Both also need the rights to the objects and to the raw state of their kinds.
			rule(group, []string{"statepushes", "statepulls"}, []string{"create"}),
			rule([]string{"rbac.authorization.k8s.io"}, []string{"roles", "rolebindings"},
				slices.Concat(readVerbs, writeVerbs)),
			rule([]string{"authorization.k8s.io"}, []string{"localsubjectaccessreviews"}, []string{"create"}),
		),
		role("hykube:plan-approver", "",
			rule(group, []string{"plans", "plans/status", "plans/changes", "planrecords", "planpolicies"}, readVerbs),
			rule(group, []string{"plans"}, []string{VerbApprove}),
			rule(group, []string{"plans/approval"}, decideVerbs),
		),
		// Neither edit nor admin has this: a user who approves plans must not remove the record of it.
		role("hykube:plan-record-deleter", "",
			rule(group, []string{"planrecords"}, slices.Concat(readVerbs, []string{"delete", "deletecollection"}))),
		// The roles edit and admin do not include this role, since a policy restricts users who approve plans.
		role("hykube:plan-policy-editor", "",
			rule(group, []string{"planpolicies", "clusterplanpolicies"}, slices.Concat(readVerbs, writeVerbs))),
		role("hykube:provider-viewer", "",
			rule(group, []string{"providers", "clusterplanpolicies"}, readVerbs),
			// A validation reads only the providers' schemas, which every user can read in the OpenAPI documents.
			rule(group, []string{"validations"}, []string{"create"}),
			rule([]string{"apiregistration.k8s.io"}, []string{"apiservices"}, readVerbs),
		),
		role("hykube:temporal", "", rbacv1.PolicyRule{Verbs: []string{"*"},
			NonResourceURLs: []string{"/temporal", "/temporal/*"}}),
	)
}

// ProviderRoles returns the roles that add a provider's kinds to view, edit and admin. They name every resource,
// because "*" would let every viewer read the subresource "state", which contains secrets.
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
			rule(group, []string{"*/resolve", "*/undelete"}, []string{"create"}),
		),
		role(prefix+"admin", aggregateToAdmin, rule(group, []string{"*/state"}, []string{"get"})),
	}
}

// ClusterRoleBindings returns the predefined bindings.
func ClusterRoleBindings() []rbacv1.ClusterRoleBinding {
	bindings := slices.DeleteFunc(bootstrappolicy.ClusterRoleBindings(), func(b rbacv1.ClusterRoleBinding) bool {
		return !slices.Contains(kubernetesRoles, b.RoleRef.Name)
	})
	// The list of providers is not secret: it shows the available kinds.
	return append(bindings, rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "hykube:provider-viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hykube:provider-viewer"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind,
			Name: "system:authenticated"}},
	})
}

// EnsureRoles creates the roles and bindings, and adds missing rules to existing ones. Like Kubernetes, it skips those
// with the annotation rbac.authorization.kubernetes.io/autoupdate=false.
func EnsureRoles(ctx context.Context, client kubernetes.Interface, roles []rbacv1.ClusterRole,
	bindings []rbacv1.ClusterRoleBinding) error {
	var errs []error
	for _, r := range roles {
		opts := reconciliation.ReconcileRoleOptions{
			Role:    reconciliation.ClusterRoleRuleOwner{ClusterRole: &r},
			Client:  reconciliation.ClusterRoleModifier{Client: client.RbacV1().ClusterRoles()},
			Confirm: true,
		}
		if err := retry.RetryOnConflict(retry.DefaultBackoff,
			func() error { _, err := opts.Run(); return err }); err != nil {
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
		if err := retry.RetryOnConflict(retry.DefaultBackoff,
			func() error { _, err := opts.Run(); return err }); err != nil {
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
