package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
)

const modulesResource = "modules"

var moduleKind = kind{v1alpha1.SchemeGroupVersion.WithResource(modulesResource), "Module"}

// modules returns the Modules of a namespace; an empty one means all.
func (s *session) modules(ctx context.Context, namespace string) ([]v1alpha1.Module, error) {
	list := &v1alpha1.ModuleList{}
	if err := s.hykube.Get().NamespaceIfScoped(namespace, namespace != "").Resource(modulesResource).Do(ctx).Into(list); err != nil {
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

// eachInModules visits the resources of Modules with one of some kinds. A user who may not list Modules sees none.
func (s *session) eachInModules(ctx context.Context, kinds []kind, namespace string, visit func(kind, *unstructured.Unstructured)) error {
	all, err := s.modules(ctx, namespace)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range all {
		for u, err := range s.instancesOf(ctx, modulesResource, all[i].Namespace, all[i].Name) {
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) { // the Module was removed meanwhile
				break
			}
			if err != nil {
				return fmt.Errorf("list resources of Module %q: %w", all[i].Name, explain(err, s.server()))
			}
			if at := indexOfKind(kinds, u.GetAPIVersion(), u.GetKind()); at >= 0 {
				visit(kinds[at], u)
			}
		}
	}
	return nil
}

// setModeCommand returns the command that sets the mode of a Module.
func setModeCommand(name, namespace string, mode v1alpha1.ModuleMode) string {
	return fmt.Sprintf(`kubectl patch module %s -n %s --type=merge -p '{"spec":{"mode":"%s"}}'`, name, namespace, mode)
}
