package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hykube/hykube/api/v1alpha1"
)

const modulesResource = "modules"

// modules returns the Modules of a namespace.
func (s *session) modules(ctx context.Context, namespace string) ([]v1alpha1.Module, error) {
	list := &v1alpha1.ModuleList{}
	if err := s.hykube.Get().Namespace(namespace).Resource(modulesResource).Do(ctx).Into(list); err != nil {
		return nil, fmt.Errorf("list modules: %w", explain(err, s.server()))
	}
	return list.Items, nil
}

// addModules adds the Modules with the mode Observe. It omits them for a user who may not list Modules.
func (c *census) addModules(ctx context.Context, s *session) error {
	all, err := s.modules(ctx, c.namespace)
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

// getModule returns a Module of the namespace.
func (s *session) getModule(ctx context.Context, name string) (*v1alpha1.Module, error) {
	m := &v1alpha1.Module{}
	if err := s.hykube.Get().Namespace(s.namespace).Resource(modulesResource).Name(name).Do(ctx).Into(m); err != nil {
		return nil, fmt.Errorf("get module %q: %w", name, explain(err, s.server()))
	}
	return m, nil
}
