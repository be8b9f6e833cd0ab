package planapi

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

// StackReadiness returns the condition Ready of a stack. A status that is older than the spec does not count.
func StackReadiness(s *v1alpha1.Stack) (status, reason, message string) {
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || s.Status.ObservedGeneration != s.Generation {
		return string(metav1.ConditionFalse), v1alpha1.ReasonSettling, "The server has not seen the newest spec of the stack yet."
	}
	return string(ready.Status), ready.Reason, diff.Clean(ready.Message, false)
}

// Stacks returns the stacks of a namespace.
func Stacks(ctx context.Context, s *session.Session, namespace string) ([]*v1alpha1.Stack, error) {
	list := &v1alpha1.StackList{}
	if err := s.Hykube.Get().Namespace(namespace).Resource(StacksResource).Do(ctx).Into(list); err != nil {
		return nil, fmt.Errorf("list stacks: %w", s.Explain(err))
	}
	out := make([]*v1alpha1.Stack, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}
