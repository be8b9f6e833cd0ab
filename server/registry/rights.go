package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/rights"
)

// requireUser returns the user of the request. action begins the error if the request has none.
func requireUser(ctx context.Context, action string) (v1alpha1.Identity, error) {
	who := requester(ctx)
	if who == nil {
		return v1alpha1.Identity{}, apierrors.NewInternalError(fmt.Errorf("%s: the request has no user", action))
	}
	return *who, nil
}

// requireRights returns a Forbidden error if the user of the request lacks one of the rights. reason ends the error: it
// explains why an object of the resource needs the rights.
func requireRights(ctx context.Context, a authorizer.Authorizer, resource, name string, needed []store.Right,
	reason string) error {
	action := fmt.Sprintf("authorize %s %q", resource, name)
	who, err := requireUser(ctx, action)
	if err != nil {
		return err
	}
	asker := store.Asker{Access: rights.Access{Authorizer: a}, Who: who}
	missing, err := asker.Missing(ctx, needed)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("%s: %w", action, err))
	}
	if len(missing) > 0 {
		return apierrors.NewForbidden(v1alpha1.Resource(resource), name,
			fmt.Errorf("user %q has no right to %s, and %s", who.Username, store.ListRights(missing), reason))
	}
	return nil
}
