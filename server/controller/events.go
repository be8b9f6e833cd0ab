package controller

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/events"
)

// recordEvents records the transitions of the objects of an informer. conditions returns the conditions of an object,
// or ok = false for an object without events. Transitions from before the start of the server are not known.
func recordEvents[T metav1.Object](inf cache.SharedIndexInformer, kind string, to *events.Recorder,
	conditions func(T) (c []metav1.Condition, ok bool)) {
	// AddEventHandler fails only on a stopped informer.
	_, _ = inf.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, now any) {
		a, isA := before.(T)
		b, isB := now.(T)
		if !isA || !isB || a.GetUID() != b.GetUID() {
			return
		}
		old, _ := conditions(a)
		current, ok := conditions(b)
		if !ok {
			return
		}
		for _, e := range events.Of(old, current) {
			to.Record(corev1.ObjectReference{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind,
				Namespace: b.GetNamespace(), Name: b.GetName(), UID: b.GetUID()}, e)
		}
	}})
}

// recordAll records the transitions of Providers, Plans, Stacks and Notifications. Speculative plans have no events,
// because the command that made one shows its result.
func recordAll(to *events.Recorder, providers *Providers, plans *Plans, stacks *Stacks, notifications *Notifications) {
	recordEvents(providers.informer, "Provider", to,
		func(p *v1alpha1.Provider) ([]metav1.Condition, bool) { return p.Status.Conditions, true })
	recordEvents(plans.informer, "Plan", to,
		func(p *v1alpha1.Plan) ([]metav1.Condition, bool) { return p.Status.Conditions, !p.Spec.Speculative })
	recordEvents(stacks.informer, "Stack", to,
		func(s *v1alpha1.Stack) ([]metav1.Condition, bool) { return s.Status.Conditions, true })
	recordEvents(notifications.informer, "Notification", to,
		func(n *v1alpha1.Notification) ([]metav1.Condition, bool) { return n.Status.Conditions, true })
}
