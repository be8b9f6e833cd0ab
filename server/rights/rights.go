// Package rights checks the rights of users with the server's authorizer. It must not know kinds or storage.
package rights

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
)

// Access implements store.Access. It uses the authorizer of the server's requests and caches nothing.
type Access struct{ Authorizer authorizer.Authorizer }

// May implements store.Access.
func (a Access) May(ctx context.Context, who v1alpha1.Identity, right store.Right) (bool, error) {
	resource, subresource, _ := strings.Cut(right.Resource, "/")
	decision, _, err := a.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: who.Username, Groups: who.Groups}, Verb: right.Verb, Namespace: right.Namespace,
		APIGroup: right.Group, APIVersion: "*", Resource: resource, Subresource: subresource, Name: right.Name, ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask whether %q may %s: %w", who.Username, right, err)
	}
	return false, nil
}

// Asker returns an Asker for the user of a request.
func (a Access) Asker(who user.Info) *store.Asker {
	return &store.Asker{Access: a, Who: v1alpha1.Identity{Username: who.GetName(), Groups: who.GetGroups()}}
}
