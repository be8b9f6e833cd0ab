package status

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/session"
)

// addModules adds the Modules with the mode Observe. It omits them for a user who may not list Modules.
func (c *census) addModules(ctx context.Context, s *session.Session) error {
	all, err := objects.Modules(ctx, s, c.namespace)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	for i := range all {
		if all[i].Spec.Mode == v1alpha1.ModuleObserve {
			c.observed = append(c.observed, "module/"+all[i].Name)
		}
	}
	return err
}
