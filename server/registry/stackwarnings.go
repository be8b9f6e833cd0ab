package registry

import (
	"context"
	"fmt"
	"slices"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/stack"
	"github.com/hykube/hykube/internal/suggest"
)

// warnStack returns warnings about values that are valid, because users may create objects in any order, but often
// typing errors: a selector that selects nothing, a stack in dependsOn that does not exist, and outputs of unknown
// types and attributes.
func (c Config) warnStack(ctx context.Context, stored *genericregistry.Store, s *v1alpha1.Stack) []string {
	out := c.warnSelector(ctx, s)
	// The validation before has reported an error of the list.
	if list, err := stored.List(ctx, &metainternalversion.ListOptions{}); err == nil {
		out = append(out, warnDependencies(s, list.(*v1alpha1.StackList).Items)...)
	}
	return append(out, c.Kinds.ReferenceWarnings(s.Namespace, outputReferences(s))...)
}

func (c Config) warnSelector(ctx context.Context, s *v1alpha1.Stack) []string {
	if s.Spec.Selector == nil {
		return nil
	}
	found, err := c.Backend.SelectsAny(ctx, s.Namespace, stack.Selects(s, nil))
	if err != nil || found { // the controller reports an error in the status
		return nil
	}
	return []string{fmt.Sprintf("spec.selector: no resource of the namespace %q has the labels %s yet; until one has, the stack is Ready and does nothing",
		s.Namespace, metav1.FormatLabelSelector(s.Spec.Selector))}
}

// warnDependencies warns about stacks in spec.dependsOn that do not exist. all lists the stacks of the namespace.
func warnDependencies(s *v1alpha1.Stack, all []v1alpha1.Stack) (out []string) {
	var names []string
	for i := range all {
		if all[i].Name != s.Name {
			names = append(names, all[i].Name)
		}
	}
	for i, name := range s.Spec.DependsOn {
		if slices.Contains(names, name) {
			continue
		}
		hint := ""
		if near := suggest.Nearest(name, names); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		out = append(out, fmt.Sprintf(
			"spec.dependsOn[%d]: there is no stack %q in the namespace %q yet, and this stack makes no plan without it%s", i, name, s.Namespace, hint))
	}
	return out
}
