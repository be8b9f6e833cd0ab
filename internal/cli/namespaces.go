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
	// suggestions bounds how many other namespaces a message names, and lookedInto how many are looked into for that.
	suggestions = 3
	lookedInto  = 12
	// suggestWithin is how long further namespaces are looked into.
	suggestWithin = 3 * time.Second
)

// namespaceExists says whether the namespace of the command exists; known is false when the user may not ask.
func (s *session) namespaceExists(ctx context.Context) (exists, known bool) {
	_, err := s.resource(namespaces, "").Get(ctx, s.namespace, metav1.GetOptions{})
	return err == nil, err == nil || apierrors.IsNotFound(err)
}

// holdsNothing is true for a plan of a namespace without resources.
func holdsNothing(p *v1alpha1.Plan) bool {
	s := p.Status.Summary
	return nothingToDo(p) && s != nil && s.Resources == 0 && s.NoOp == 0 && s.NotRead == 0
}

// noResources says that a namespace has no resources, and which others that the user may list hold some.
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

// namespacesInUse names other namespaces that hold resources, as far as that is found out soon. Errors only make it shorter: it is
// a suggestion.
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
	for _, name := range names[:min(len(names), lookedInto)] {
		if len(found) < suggestions && time.Since(began) < suggestWithin && s.holdsResources(ctx, kinds, name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// holdsResources says whether a namespace holds an object that the user may list. No read is cut off: a read that is cancelled is an
// error in the logs of both sides. No further one begins once an object was found.
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

// noSuchNamespace is the error of a namespace that does not exist, with the nearest name that does; nil when it does or nobody tells.
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
