// Package namespace finds namespaces with resources for hints, and has the verb thaw.
package namespace

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

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/suggest"
)

const (
	// suggestions is the maximum number of other namespaces in a message, and maxSearched that of the namespaces that
	// the command searches for resources.
	suggestions = 3
	maxSearched = 12
	// suggestWithin is the maximum time of that search.
	suggestWithin = 3 * time.Second
)

// Exists reports whether the namespace of the command exists. known is false if the user may not read it.
func Exists(ctx context.Context, s *session.Session) (exists, known bool) {
	_, err := s.Resource(session.Namespaces, "").Get(ctx, s.Namespace, metav1.GetOptions{})
	return err == nil, err == nil || apierrors.IsNotFound(err)
}

// NoResources returns the message that a namespace has no resources. It names other namespaces with resources that the
// user may list.
func NoResources(ctx context.Context, s *session.Session, namespace string) string {
	text := fmt.Sprintf("Namespace %q has no resources", namespace)
	var flags []string
	for _, other := range namespacesInUse(ctx, s, namespace) {
		flags = append(flags, "-n "+other)
	}
	if len(flags) == 0 {
		return text + "."
	}
	return text + "; did you mean " + strings.Join(flags, ", ") + "?"
}

// namespacesInUse returns other namespaces with resources, as far as a short search finds them. It ignores errors,
// because the result is only a suggestion.
func namespacesInUse(ctx context.Context, s *session.Session, but string) []string {
	began := time.Now()
	kinds, err := s.ResourceKinds(ctx)
	if err != nil {
		return nil
	}
	list, err := s.Resource(session.Namespaces, "").List(ctx, metav1.ListOptions{Limit: session.ListPage})
	if err != nil {
		return nil
	}
	// their instances are no objects
	kinds = append(kinds, session.Kind{GVR: v1alpha1.SchemeGroupVersion.WithResource(session.SetsResource)})
	planned := map[string]int{}
	if plans, err := planapi.List(ctx, s, ""); err == nil {
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
		if len(found) < suggestions && time.Since(began) < suggestWithin && holdsResources(ctx, s, kinds, name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// holdsResources reports whether a namespace has an object that the user may list. It starts no further request after
// it has found one. It cancels no running request, because that would cause error logs on both sides.
func holdsResources(ctx context.Context, s *session.Session, kinds []session.Kind, namespace string) bool {
	var found atomic.Bool
	var wg sync.WaitGroup
	slots := make(chan struct{}, session.ListAtOnce)
	for _, k := range kinds {
		slots <- struct{}{}
		if found.Load() || ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			list, err := s.Resource(k.GVR, namespace).List(ctx, metav1.ListOptions{Limit: 1})
			if err == nil && len(list.Items) > 0 {
				found.Store(true)
			}
		})
	}
	wg.Wait()
	return found.Load()
}

// NotFound returns an error with the most similar name if a namespace does not exist. It returns nil if it
// exists or cannot be read.
func NotFound(ctx context.Context, s *session.Session, name string) error {
	namespaces := s.Resource(session.Namespaces, "")
	if _, err := namespaces.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return nil
	}
	text := fmt.Sprintf("namespace %q not found", name)
	var names []string
	if list, err := namespaces.List(ctx, metav1.ListOptions{Limit: session.ListPage}); err == nil {
		for i := range list.Items {
			names = append(names, list.Items[i].GetName())
		}
	}
	if near := suggest.Nearest(name, names); near != "" {
		text += fmt.Sprintf(": did you mean -n %s?", near)
	}
	return errors.New(text)
}
