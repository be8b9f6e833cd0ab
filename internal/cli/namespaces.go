package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	// suggestions bounds how many other namespaces a message names, and lookedInto how many are looked into for that.
	suggestions = 3
	lookedInto  = 12
	// suggestWithin bounds how long that takes.
	suggestWithin = 3 * time.Second
)

// holdsNothing is true for a plan of a namespace without resources.
func holdsNothing(p *v1alpha1.Plan) bool {
	s := p.Status.Summary
	return nothingToDo(p) && s != nil && s.Resources == 0 && s.NoOp == 0 && s.NotRead == 0
}

// noResources says that a namespace holds no resources, and which others that the user may list hold some.
func (s *session) noResources(ctx context.Context, namespace string) string {
	text := fmt.Sprintf("Namespace %q holds no resources", namespace)
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
	ctx, cancel := context.WithTimeout(ctx, suggestWithin)
	defer cancel()
	kinds, err := s.resourceKinds(ctx)
	if err != nil {
		return nil
	}
	namespaces, err := s.resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "").List(ctx, metav1.ListOptions{Limit: listPage})
	if err != nil {
		return nil
	}
	planned := map[string]bool{}
	if plans, err := s.listPlans(ctx, ""); err == nil {
		for i := range plans {
			planned[plans[i].Namespace] = true
		}
	}
	var names []string
	for i := range namespaces.Items {
		if name := namespaces.Items[i].GetName(); name != but {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return b2i(planned[b]) - b2i(planned[a]) })
	var found []string
	for _, name := range names[:min(len(names), lookedInto)] {
		if len(found) < suggestions && ctx.Err() == nil && s.holdsResources(ctx, kinds, name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// holdsResources says whether a namespace holds an object that the user may list.
func (s *session) holdsResources(ctx context.Context, kinds []kind, namespace string) (found bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The first object ends it, with an error that says no more than that.
	_, _ = s.eachObject(ctx, kinds, namespace, "", func(kind, *unstructured.Unstructured) {
		found = true
		cancel()
	})
	return found
}
