package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/suggest"
)

// namespaces is the resource of namespaces.
var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

const (
	// suggestions is the maximum number of other namespaces in a message, and maxSearched that of the namespaces that the
	// command searches for resources.
	suggestions = 3
	maxSearched = 12
	// suggestWithin is the maximum time of that search.
	suggestWithin = 3 * time.Second
)

// namespaceExists reports whether the namespace of the command exists. known is false if the user may not read it.
func (s *session) namespaceExists(ctx context.Context) (exists, known bool) {
	_, err := s.resource(namespaces, "").Get(ctx, s.namespace, metav1.GetOptions{})
	return err == nil, err == nil || apierrors.IsNotFound(err)
}

// hasNoResources reports whether a plan's namespace has no resources.
func hasNoResources(p *v1alpha1.Plan) bool {
	s := p.Status.Summary
	return nothingToDo(p) && s != nil && s.Resources == 0 && s.NoOp == 0 && s.NotRead == 0
}

// noResources returns the message that a namespace has no resources. It names other namespaces with resources that the
// user may list.
func (s *session) noResources(ctx context.Context, namespace string) string {
	text := fmt.Sprintf("Namespace %q has no resources", namespace)
	var flags []string
	for _, other := range s.namespacesInUse(ctx, namespace) {
		flags = append(flags, "-n "+other)
	}
	if len(flags) == 0 {
		return text + "."
	}
	return text + "; did you mean " + strings.Join(flags, ", ") + "?"
}

// namespacesInUse returns other namespaces with resources, as far as a short search finds them. It ignores errors,
// because the result is only a suggestion.
func (s *session) namespacesInUse(ctx context.Context, but string) []string {
	began := time.Now()
	kinds, err := s.resourceKinds(ctx)
	if err != nil {
		return nil
	}
	list, err := s.resource(namespaces, "").List(ctx, metav1.ListOptions{Limit: listPage})
	if err != nil {
		return nil
	}
	kinds = append(kinds, kind{gvr: v1alpha1.SchemeGroupVersion.WithResource(setsResource)}) // their instances are no objects
	planned := map[string]int{}
	if plans, err := s.listPlans(ctx, ""); err == nil {
		for i := range plans {
			planned[plans[i].Namespace]++
		}
	}
	var names []string
	for i := range list.Items {
		if name := list.Items[i].GetName(); name != but {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return planned[b] - planned[a] })
	var found []string
	for _, name := range names[:min(len(names), maxSearched)] {
		if len(found) < suggestions && time.Since(began) < suggestWithin && s.holdsResources(ctx, kinds, name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// holdsResources reports whether a namespace has an object that the user may list. It starts no further request after
// it has found one. It cancels no running request, because that would cause error logs on both sides.
func (s *session) holdsResources(ctx context.Context, kinds []kind, namespace string) bool {
	var found atomic.Bool
	var wg sync.WaitGroup
	slots := make(chan struct{}, listAtOnce)
	for _, k := range kinds {
		slots <- struct{}{}
		if found.Load() || ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			list, err := s.resource(k.gvr, namespace).List(ctx, metav1.ListOptions{Limit: 1})
			if err == nil && len(list.Items) > 0 {
				found.Store(true)
			}
		})
	}
	wg.Wait()
	return found.Load()
}

// noSuchNamespace returns an error with the most similar name if a namespace does not exist. It returns nil if it
// exists or cannot be read.
func (s *session) noSuchNamespace(ctx context.Context, name string) error {
	namespaces := s.resource(namespaces, "")
	if _, err := namespaces.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return nil
	}
	text := fmt.Sprintf("namespace %q not found", name)
	var names []string
	if list, err := namespaces.List(ctx, metav1.ListOptions{Limit: listPage}); err == nil {
		for i := range list.Items {
			names = append(names, list.Items[i].GetName())
		}
	}
	if near := suggest.Nearest(name, names); near != "" {
		text += fmt.Sprintf(": did you mean -n %s?", near)
	}
	return errors.New(text)
}
