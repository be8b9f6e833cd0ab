package registry

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/hykube/hykube/api/v1alpha1"
)

const groupName = v1alpha1.GroupName

// object is what the three kinds have in common.
type object interface {
	runtime.Object
	metav1.Object
}

// strategy decides what the store does with objects of a kind.
type strategy interface {
	rest.RESTCreateUpdateStrategy
	rest.RESTDeleteStrategy
	rest.ResetFieldsStrategy
}

// kindStrategy is the strategy of one kind, put together from funcs that know its type.
type kindStrategy[T object] struct {
	runtime.ObjectTyper
	names.NameGenerator
	namespaced bool
	// begin sets the status that an object has at its creation. Status and generation are still those that the client sent.
	begin func(ctx context.Context, obj T)
	// keepStatus copies the status of the old object into the new one; sameSpec tells whether their specs agree.
	keepStatus func(obj, old T)
	sameSpec   func(obj, old T) bool
	validate   func(obj T) field.ErrorList
	// validateUpdate checks what must not change.
	validateUpdate func(obj, old T) field.ErrorList
	// warn is asked for warnings about a new object; nil has none.
	warn func(obj T) []string
}

func (s kindStrategy[T]) NamespaceScoped() bool { return s.namespaced }

func (s kindStrategy[T]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	o := obj.(T)
	s.begin(ctx, o)
	o.SetGeneration(1)
}

func (s kindStrategy[T]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	o, before := obj.(T), old.(T)
	s.keepStatus(o, before)
	if !s.sameSpec(o, before) {
		o.SetGeneration(before.GetGeneration() + 1)
	}
}

func (s kindStrategy[T]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return s.validate(obj.(T))
}

func (s kindStrategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return append(s.validate(obj.(T)), s.validateUpdate(obj.(T), old.(T))...)
}

func (s kindStrategy[T]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	if s.warn == nil {
		return nil
	}
	return s.warn(obj.(T))
}

func (kindStrategy[T]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
func (kindStrategy[T]) AllowCreateOnUpdate() bool      { return false }
func (kindStrategy[T]) AllowUnconditionalUpdate() bool { return true }
func (kindStrategy[T]) Canonicalize(runtime.Object)    {}

func (kindStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("status")
}

// statusStrategy is the strategy of the subresource "status": it changes the status and nothing else.
type statusStrategy[T object] struct {
	kindStrategy[T]
	// keepAllButStatus makes obj the old object with its own status, less what others own in it.
	keepAllButStatus func(obj, old T)
	conditions       func(obj T) []metav1.Condition
	// mayWrite refuses a status that its author may not write. A nil function refuses nothing.
	mayWrite func(ctx context.Context, obj, old T) field.ErrorList
}

func (s statusStrategy[T]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	o, before := obj.(T), old.(T)
	managed, version := o.GetManagedFields(), o.GetResourceVersion()
	s.keepAllButStatus(o, before)
	o.SetManagedFields(managed)
	o.SetResourceVersion(version)
}

func (s statusStrategy[T]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := metav1validation.ValidateConditions(s.conditions(obj.(T)), field.NewPath("status", "conditions"))
	if s.mayWrite != nil {
		errs = append(errs, s.mayWrite(ctx, obj.(T), old.(T))...)
	}
	return errs
}

func (statusStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("spec")
}

func resetFields(top string) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie(top)),
	}
}

func storeOptions(c Config) *generic.StoreOptions {
	return &generic.StoreOptions{RESTOptions: c.RESTOptions, AttrFunc: attributes}
}

// attributes are what selectors select by.
func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	o, ok := obj.(object)
	if !ok {
		return nil, nil, fmt.Errorf("select by attributes: unexpected type %T", obj)
	}
	set := fields.Set{"metadata.name": o.GetName()}
	if o.GetNamespace() != "" {
		set["metadata.namespace"] = o.GetNamespace()
	}
	return o.GetLabels(), set, nil
}

func sameSpec[S any](obj, old S) bool { return equality.Semantic.DeepEqual(obj, old) }
