package registry

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/hykube/hykube/api/v1alpha1"
)

// scaleSubresource is the subresource for the count of a ResourceSet.
const scaleSubresource = "scale"

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// scaleREST serves the subresource "scale" of ResourceSets with spec.count, as for Kubernetes' own workloads. A write
// of it is a write of the set: the same rights on the kind of the template, the same checks, and the same contributors.
type scaleREST struct {
	subresource
	sets *resourceREST
}

var (
	_ rest.Patcher                  = scaleREST{}
	_ rest.GroupVersionKindProvider = scaleREST{}
)

func newScale(sets *resourceREST) rest.Storage {
	return scaleREST{subresource{func() runtime.Object { return new(autoscalingv1.Scale) }}, sets}
}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (scaleREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return scaleKind }

// Get implements rest.Getter.
func (r scaleREST) Get(ctx context.Context, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.sets.Get(ctx, name, opts)
	if err != nil {
		return nil, err
	}
	return scaleOf(obj)
}

// Update implements rest.Updater.
func (r scaleREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, _ bool, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	validate := func(ctx context.Context, obj, old runtime.Object) error {
		scale, err := scaleOf(obj)
		if err != nil {
			return err
		}
		before, err := scaleOf(old)
		if err != nil {
			return err
		}
		return update(ctx, scale, before)
	}
	obj, _, err := r.sets.Update(ctx, name, scaledSet{info}, nil, validate, false, opts)
	if err != nil {
		return nil, false, err
	}
	scale, err := scaleOf(obj)
	return scale, false, err
}

// scaleOf returns the Scale of a set, and an error for a set without spec.count.
func scaleOf(obj runtime.Object) (*autoscalingv1.Scale, error) {
	s := obj.(*v1alpha1.ResourceSet)
	if s.Spec.Count == nil {
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("the ResourceSet %q cannot be scaled: its instances are the keys of spec.forEach or of a ConfigMap; add or remove keys instead", s.Name))
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Name, Namespace: s.Namespace, UID: s.UID, ResourceVersion: s.ResourceVersion,
			CreationTimestamp: s.CreationTimestamp,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: *s.Spec.Count},
		Status: autoscalingv1.ScaleStatus{Replicas: s.Status.Ready},
	}, nil
}

// scaledSet makes an update of a Scale one of the set.
type scaledSet struct{ rest.UpdatedObjectInfo }

// UpdatedObject returns the set with the count of the updated Scale.
func (i scaledSet) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	set := old.DeepCopyObject().(*v1alpha1.ResourceSet)
	scale, err := scaleOf(set)
	if err != nil {
		return nil, err
	}
	fields := managedfields.NewScaleHandler(set.ManagedFields, v1alpha1.SchemeGroupVersion,
		managedfields.ResourcePathMappings{
			v1alpha1.SchemeGroupVersion.String(): fieldpath.MakePathOrDie("spec", "count"),
		})
	if scale.ManagedFields, err = fields.ToSubresource(); err != nil {
		return nil, err
	}
	obj, err := i.UpdatedObjectInfo.UpdatedObject(ctx, scale)
	if err != nil {
		return nil, err
	}
	sent, ok := obj.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a Scale, not a %T", obj))
	}
	set.Spec.Count = &sent.Spec.Replicas
	if sent.ResourceVersion != "" {
		set.ResourceVersion = sent.ResourceVersion
	}
	if sent.UID != "" {
		set.UID = sent.UID
	}
	set.ManagedFields, err = fields.ToParent(sent.ManagedFields)
	return set, err
}
