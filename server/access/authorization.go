package access

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/hykube/hykube/server/rights"
)

// NewAuthorizer returns Kubernetes' RBAC authorizer with the roles in the informers. The group system:masters has all
// rights, even before any role exists. narrow applies to users whom the token file named, because a plan keeps the
// groups of its users for weeks.
func NewAuthorizer(factory informers.SharedInformerFactory,
	narrow Narrow) (authorizer.Authorizer, authorizer.RuleResolver) {
	roles := factory.Rbac().V1()
	rbacAuthorizer := rbac.New(
		&rbac.RoleGetter{Lister: roles.Roles().Lister()},
		&rbac.RoleBindingLister{Lister: roles.RoleBindings().Lister()},
		&rbac.ClusterRoleGetter{Lister: roles.ClusterRoles().Lister()},
		&rbac.ClusterRoleBindingLister{Lister: roles.ClusterRoleBindings().Lister()},
	)
	all := union.New(authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), rbacAuthorizer)
	return narrowing{all, narrow}, rbacAuthorizer
}

// workerGroup begins the group of a user in the requests that the user's worker makes for the starter of a workflow. No
// other request has it, because no user gets such a group from a certificate, a token or an issuer. So a role that is
// bound to this group, and not to the user, gives no right to code that leaves the starter out.
const workerGroup = "hykube:worker:"

// narrowing is an authorizer of users, of whom it narrows those that the token file named. A request through a workflow
// needs the right of each user who took part in it.
type narrowing struct {
	authorizer.Authorizer
	narrow Narrow
}

// Authorize implements authorizer.Authorizer.
func (a narrowing) Authorize(ctx context.Context,
	attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	who := attributes.GetUser()
	if who == nil {
		return authorizer.DecisionDeny, "the request has no user", nil
	}
	if why := who.GetExtra()[refusedKey]; len(why) > 0 {
		return authorizer.DecisionDeny, why[0], nil
	}
	through := rights.ThroughOf(who)
	if len(through) > 0 && attributes.GetAPIGroup() == rbacv1.GroupName && !attributes.IsReadOnly() {
		return authorizer.DecisionDeny,
			"a workflow writes roles and bindings only for the user of its worker, because a role may give only what its author has", nil
	}
	for _, worker := range through {
		decision, reason, err := a.one(ctx, attributes, worker, workerGroup+worker.GetName())
		if decision != authorizer.DecisionAllow {
			return authorizer.DecisionDeny,
				fmt.Sprintf("the user %q, who took part in the workflow, lacks this right. %s", worker.GetName(),
					reason), err
		}
	}
	return a.one(ctx, attributes, who)
}

// one decides about one of the users of a request, who also is in further groups.
func (a narrowing) one(ctx context.Context, attributes authorizer.Attributes, who user.Info,
	further ...string) (authorizer.Decision, string, error) {
	if rights.IsNamedByTokenFile(who) {
		now, ok := a.narrow(who)
		if !ok {
			return authorizer.DecisionDeny, "the token file does not name the user any more", nil
		}
		who = now
	}
	if len(further) > 0 {
		who = &user.DefaultInfo{Name: who.GetName(), UID: who.GetUID(), Groups: slices.Concat(who.GetGroups(), further),
			Extra: who.GetExtra()}
	}
	return a.Authorizer.Authorize(ctx, narrowed{attributes, who})
}

// narrowed is a request of a narrowed user.
type narrowed struct {
	authorizer.Attributes
	who user.Info
}

// GetUser implements authorizer.Attributes.
func (n narrowed) GetUser() user.Info { return n.who }
