package access

import (
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
)

// NewAuthorizer returns Kubernetes' RBAC authorizer with the roles in the informers. The group system:masters has all
// rights, even before any role exists.
func NewAuthorizer(factory informers.SharedInformerFactory) (authorizer.Authorizer, authorizer.RuleResolver) {
	roles := factory.Rbac().V1()
	rbacAuthorizer := rbac.New(
		&rbac.RoleGetter{Lister: roles.Roles().Lister()},
		&rbac.RoleBindingLister{Lister: roles.RoleBindings().Lister()},
		&rbac.ClusterRoleGetter{Lister: roles.ClusterRoles().Lister()},
		&rbac.ClusterRoleBindingLister{Lister: roles.ClusterRoleBindings().Lister()},
	)
	return union.New(authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), rbacAuthorizer), rbacAuthorizer
}
