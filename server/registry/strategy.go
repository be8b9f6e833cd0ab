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
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/server/kinds"
)

const groupName = v1alpha1.GroupName

// object is the common interface of all kinds.
type object interface {
	runtime.Object
	metav1.Object
}

// deepCopier is an object with DeepCopyInto.
type deepCopier[T any] interface {
	object
	DeepCopyInto(T)
}

// kindStrategy is the strategy of a kind with objects T and status S. Its functions handle the concrete types.
type kindStrategy[T deepCopier[T], S any] struct {
	runtime.ObjectTyper
	names.NameGenerator
	namespaced bool
	// begin sets the status of a new object. When it is called, status and generation still have the client's values.
	begin func(ctx context.Context, obj T)
	// spec and status return the parts of an object, and conditions the conditions of a status.
	spec       func(obj T) any
	status     func(obj T) *S
	conditions func(status *S) *[]metav1.Condition
	validate   func(obj T) field.ErrorList
	// prepareUpdate changes a new version before it is validated; nil does nothing.
	prepareUpdate func(ctx context.Context, obj, old T)
	// validateUpdate validates immutable fields; nil if there are none.
	validateUpdate func(obj, old T) field.ErrorList
	// validateAgainst validates the parts of an object that depend on other objects. old is nil for a new object. A nil
	// function accepts all.
	validateAgainst func(ctx context.Context, obj, old T) field.ErrorList
	// warn returns warnings about a new object or a changed spec; nil for none.
	warn func(ctx context.Context, obj T) []string
	// warnUpdate returns warnings about a change of the spec; nil for none.
	warnUpdate func(ctx context.Context, obj, old T) []string
	// keepOwn restores the fields that only the server writes in a client's status. A nil function keeps the client's
	// status.
	keepOwn func(status, old *S)
	// mayWriteStatus returns errors for a status that its author may not write. A nil function permits all.
	mayWriteStatus func(ctx context.Context, obj, old T) field.ErrorList
}

func (s kindStrategy[T, S]) NamespaceScoped() bool { return s.namespaced }

func (s kindStrategy[T, S]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	o := obj.(T)
	s.begin(ctx, o)
	o.SetGeneration(1)
}

func (s kindStrategy[T, S]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	o, before := obj.(T), old.(T)
	*s.status(o) = *s.status(before)
	if s.prepareUpdate != nil {
		s.prepareUpdate(ctx, o, before)
	}
	if !sameSpec(s.spec(o), s.spec(before)) {
		o.SetGeneration(before.GetGeneration() + 1)
	}
}

func (s kindStrategy[T, S]) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	var none T
	return append(s.validate(obj.(T)), s.against(ctx, obj.(T), none)...)
}

func (s kindStrategy[T, S]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := s.validate(obj.(T))
	if s.validateUpdate != nil {
		errs = append(errs, s.validateUpdate(obj.(T), old.(T))...)
	}
	return append(errs, s.against(ctx, obj.(T), old.(T))...)
}

func (s kindStrategy[T, S]) against(ctx context.Context, obj, old T) field.ErrorList {
	if s.validateAgainst == nil {
		return nil
	}
	return s.validateAgainst(ctx, obj, old)
}

func (s kindStrategy[T, S]) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	if s.warn == nil {
		return nil
	}
	return s.warn(ctx, obj.(T))
}

func (s kindStrategy[T, S]) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	var out []string
	kind := ""
	switch obj.(type) {
	case *v1alpha1.ResourceSet:
		kind = "resourceset"
	case *v1alpha1.Module:
		kind = "module"
	}
	if kind != "" && obj.(T).GetDeletionTimestamp() != nil && !byServer(ctx) {
		out = append(out, kinds.WarningStaysDeleted(kind, obj.(T)))
	}
	if sameSpec(s.spec(obj.(T)), s.spec(old.(T))) {
		return out
	}
	if s.warn != nil {
		out = append(out, s.warn(ctx, obj.(T))...)
	}
	if s.warnUpdate != nil {
		out = append(out, s.warnUpdate(ctx, obj.(T), old.(T))...)
	}
	return out
}
func (kindStrategy[T, S]) AllowCreateOnUpdate() bool      { return false }
func (kindStrategy[T, S]) AllowUnconditionalUpdate() bool { return true }
func (kindStrategy[T, S]) Canonicalize(runtime.Object)    {}

func (kindStrategy[T, S]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("status")
}

// statusByServer returns an error unless the server itself makes the request. text completes the error: it names the
// kind, and may name what users do instead.
func statusByServer(ctx context.Context, text string) field.ErrorList {
	if byServer(ctx) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("status"), "only the server writes the status of "+text)}
}

// statusStrategy is the strategy of the subresource "status", which changes only the status.
type statusStrategy[T deepCopier[T], S any] struct{ kindStrategy[T, S] }

func (s statusStrategy[T, S]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	o, before := obj.(T), old.(T)
	managed, version, status := o.GetManagedFields(), o.GetResourceVersion(), *s.status(o)
	before.DeepCopyInto(o)
	if s.keepOwn != nil {
		s.keepOwn(&status, s.status(o))
	}
	*s.status(o) = status
	o.SetManagedFields(managed)
	o.SetResourceVersion(version)
}

func (s statusStrategy[T, S]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := metav1validation.ValidateConditions(*s.conditions(s.status(obj.(T))), field.NewPath("status", "conditions"))
	if s.mayWriteStatus != nil {
		errs = append(errs, s.mayWriteStatus(ctx, obj.(T), old.(T))...)
	}
	return errs
}

func (statusStrategy[T, S]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("spec")
}

func resetFields(top string) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie(top)),
	}
}

// attributes returns the labels and fields for selectors.
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

// initialConditions returns the conditions of a new object. Without conditions, kstatus would treat it as ready.
func initialConditions(reason, message string) (conditions []metav1.Condition) {
	condition.Reconciling(&conditions, 1, reason, message)
	return conditions
}
