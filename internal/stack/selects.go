// Package stack has the code about Stacks that the server and the plugin share: the selection of objects, and the
// columns of tables. It imports only the API types and apimachinery.
package stack

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Selects returns the predicate of a stack: does it select an object with these labels? all lists the stacks of the
// namespace, because a stack without a selector has all objects that no other stack selects.
func Selects(s *v1alpha1.Stack, all []*v1alpha1.Stack) func(labels.Set) bool {
	if s.Spec.Selector != nil {
		selector := selectorOf(s)
		return func(set labels.Set) bool { return selector.Matches(set) }
	}
	var others []labels.Selector
	for _, other := range all {
		if other.Spec.Selector != nil {
			others = append(others, selectorOf(other))
		}
	}
	return func(set labels.Set) bool {
		return !slices.ContainsFunc(others, func(o labels.Selector) bool { return o.Matches(set) })
	}
}

// selectorOf returns the selector of a stack that has one.
func selectorOf(s *v1alpha1.Stack) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	if err != nil {
		return labels.Nothing() // the server accepts valid ones only
	}
	return selector
}
