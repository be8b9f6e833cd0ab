package objects

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
)

// InstancesOf returns the instances of a ResourceSet or a Module, whose resource is given. It reads them in pages.
func InstancesOf(ctx context.Context, s *session.Session, resource, namespace,
	name string) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for cont := ""; ; {
			page := &v1alpha1.ResourceSetInstanceList{}
			err := s.Hykube.Get().Namespace(namespace).Resource(resource).Name(name).SubResource("instances").
				Param("limit", strconv.Itoa(session.ListPage)).Param("continue", cont).Do(ctx).Into(page)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				u := &unstructured.Unstructured{}
				if err := u.UnmarshalJSON(page.Items[i].Raw); !yield(u, err) || err != nil {
					return
				}
			}
			if cont = page.Continue; cont == "" {
				return
			}
		}
	}
}

// EachResource visits the objects of some kinds, as EachObject does, and then the instances of ResourceSets and Modules
// of these kinds. A nil slice means the kinds of all providers.
func EachResource(ctx context.Context, s *session.Session, kinds []session.Kind, namespace, selector string,
	visit func(session.Kind, *unstructured.Unstructured)) (denied []session.Kind, err error) {
	if kinds == nil {
		if kinds, err = s.ResourceKinds(ctx); err != nil {
			return nil, err
		}
	}
	denied, err = EachObject(ctx, s, kinds, namespace, selector, visit)
	if err != nil {
		return denied, err
	}
	wanted, err := labels.Parse(selector)
	if err != nil {
		return denied, err
	}
	err = EachSet(ctx, s, kinds, namespace, func(k session.Kind, set *v1alpha1.ResourceSet) error {
		for u, err := range InstancesOf(ctx, s, session.SetsResource, set.Namespace, set.Name) {
			if apierrors.IsForbidden(err) {
				break // the kind is among the denied ones, too
			}
			if err != nil {
				return fmt.Errorf("list instances of ResourceSet %q: %w", set.Name, s.Explain(err))
			}
			if wanted.Matches(labels.Set(u.GetLabels())) {
				visit(k, u)
			}
		}
		return nil
	})
	if err != nil {
		return denied, err
	}
	return denied, EachInModules(ctx, s, kinds, namespace, func(k session.Kind, u *unstructured.Unstructured) {
		if wanted.Matches(labels.Set(u.GetLabels())) {
			visit(k, u)
		}
	})
}

// EachSet visits the ResourceSets whose template has one of some kinds. A user who may not list sets sees none.
func EachSet(ctx context.Context, s *session.Session, kinds []session.Kind, namespace string,
	visit func(session.Kind, *v1alpha1.ResourceSet) error) error {
	list := &v1alpha1.ResourceSetList{}
	err := s.Hykube.Get().NamespaceIfScoped(namespace,
		namespace != "").Resource(session.SetsResource).Do(ctx).Into(list)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", session.SetsResource, s.Explain(err))
	}
	for i := range list.Items {
		set := &list.Items[i]
		at := session.IndexOfKind(kinds, set.Spec.Template.APIVersion, set.Spec.Template.Kind)
		if at < 0 {
			continue
		}
		if err := visit(kinds[at], set); err != nil {
			return err
		}
	}
	return nil
}

// Modules returns the Modules of a namespace; an empty one means all.
func Modules(ctx context.Context, s *session.Session, namespace string) ([]v1alpha1.Module, error) {
	list := &v1alpha1.ModuleList{}
	if err := s.Hykube.Get().NamespaceIfScoped(namespace,
		namespace != "").Resource(session.ModulesResource).Do(ctx).Into(list); err != nil {
		return nil, fmt.Errorf("list modules: %w", s.Explain(err))
	}
	return list.Items, nil
}

// GetModule returns a Module of the namespace.
func GetModule(ctx context.Context, s *session.Session, name string) (*v1alpha1.Module, error) {
	m := &v1alpha1.Module{}
	if err := s.Hykube.Get().Namespace(s.Namespace).Resource(session.ModulesResource).Name(name).Do(ctx).Into(
		m); err != nil {
		return nil, fmt.Errorf("get module %q: %w", name, s.Explain(err))
	}
	return m, nil
}

// EachInModules visits the resources of Modules with one of some kinds. A user who may not list Modules sees none.
func EachInModules(ctx context.Context, s *session.Session, kinds []session.Kind, namespace string,
	visit func(session.Kind, *unstructured.Unstructured)) error {
	all, err := Modules(ctx, s, namespace)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range all {
		for u, err := range InstancesOf(ctx, s, session.ModulesResource, all[i].Namespace, all[i].Name) {
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) { // the Module was removed meanwhile
				break
			}
			if err != nil {
				return fmt.Errorf("list resources of Module %q: %w", all[i].Name, s.Explain(err))
			}
			if at := session.IndexOfKind(kinds, u.GetAPIVersion(), u.GetKind()); at >= 0 {
				visit(kinds[at], u)
			}
		}
	}
	return nil
}

// EachObject calls visit, never concurrently, for the objects of many kinds in a namespace. It skips kinds that the
// user may not list, and returns them.
func EachObject(ctx context.Context, s *session.Session, kinds []session.Kind, namespace, selector string,
	visit func(session.Kind, *unstructured.Unstructured)) (denied []session.Kind, err error) {
	var mu sync.Mutex
	var failed atomic.Bool // start no further request after an error; running ones may finish
	var group errgroup.Group
	group.SetLimit(session.ListAtOnce)
	for _, k := range kinds {
		group.Go(func() error {
			opts := metav1.ListOptions{Limit: session.ListPage, LabelSelector: selector}
			for more := true; more && !failed.Load(); more = opts.Continue != "" {
				list, err := s.Resource(k.GVR, namespace).List(ctx, opts)
				if opts.Continue = session.RestOf(err); opts.Continue != "" {
					continue
				}
				if err != nil && !apierrors.IsForbidden(err) {
					failed.Store(true)
					return fmt.Errorf("list %s: %w", k.GVR.GroupResource(), s.Explain(err))
				}
				mu.Lock()
				if err != nil {
					denied, list = append(denied, k), &unstructured.UnstructuredList{}
				}
				for i := range list.Items {
					visit(k, &list.Items[i])
				}
				mu.Unlock()
				opts.Continue = list.GetContinue()
			}
			return nil
		})
	}
	err = group.Wait()
	return denied, err
}

// PrintDenied prints which kinds a text omits because the user may not list them.
func PrintDenied(s *session.Session, w io.Writer, denied []session.Kind, what string) {
	if len(denied) == 0 {
		return
	}
	var names []string
	for _, k := range denied {
		names = append(names, k.GVR.GroupResource().String())
	}
	slices.Sort(names)
	names = printer.Cut(names, 5, "%d more")
	where := "namespace " + s.Namespace
	if s.Namespace == "" {
		where = "all namespaces"
	}
	fmt.Fprintf(w, "%s you may not list %s in %s, so they are not %s.\n", s.Style.Yellow("Note:"),
		strings.Join(names, ", "), where, what)
}
