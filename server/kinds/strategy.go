package kinds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

// strategy creates, updates and deletes the objects of one kind.
type strategy struct {
	typer
	names.NameGenerator
	kind *served
	// warns is true if the schema has deprecated parts. Otherwise the warnings need not parse the spec.
	warns bool
}

var (
	_ rest.RESTCreateStrategy         = strategy{}
	_ rest.RESTUpdateStrategy         = strategy{}
	_ rest.RESTGracefulDeleteStrategy = strategy{}
	_ rest.ResetFieldsStrategy        = strategy{}
)

func (strategy) NamespaceScoped() bool          { return true }
func (strategy) AllowCreateOnUpdate() bool      { return false }
func (strategy) AllowUnconditionalUpdate() bool { return false }
func (strategy) Canonicalize(runtime.Object)    {}

func (s strategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	u := obj.(*unstructured.Unstructured)
	return append(s.warnings(ctx, u), s.kind.warnUnknown(ctx, u)...)
}

func (s strategy) warnings(ctx context.Context, u *unstructured.Unstructured) []string {
	spec, _ := u.Object["spec"].(map[string]any)
	warnings := scalarWarnings(spec, s.kind.Schema.Block)
	if s.warns {
		for _, d := range s.kind.warnings(ctx, u) {
			warnings = append(warnings, d.Attribute+": "+d.Detail)
		}
	}
	return warnings
}

func (s strategy) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	n, o := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	var out []string
	if n.GetDeletionTimestamp() != nil && !byServer(ctx) {
		out = append(out, WarningStaysDeleted(s.kind.GVK.Kind, n))
	}
	switch {
	case changed(n, o, "spec"):
		return append(out, s.WarningsOnCreate(ctx, n)...)
	case changed(n, o, "lifecycle"):
		return append(out, s.kind.warnUnknown(ctx, n)...)
	}
	return out
}

// WarningStaysDeleted returns the warning for a write of an object that is marked for deletion: the write keeps the
// mark.
func WarningStaysDeleted(kind string, m metav1.Object) string {
	return fmt.Sprintf("%s/%s stays marked for deletion: kubectl hykube undelete %s/%s -n %s takes the deletion back",
		kind, m.GetName(), kind, m.GetName(), m.GetNamespace())
}

// GetResetFields returns the fields that a client cannot own through the object itself.
func (s strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(s.kind.GVK.GroupVersion().String()): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// PrepareForCreate replaces the client's status by the initial conditions. A new object has no infrastructure, so it
// also removes the finalizer, which a manifest from a backup may have.
func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	u := obj.(*unstructured.Unstructured)
	if finalizers := u.GetFinalizers(); slices.Contains(finalizers, v1alpha1.FinalizerState) {
		u.SetFinalizers(slices.DeleteFunc(finalizers, func(f string) bool { return f == v1alpha1.FinalizerState }))
	}
	observed := int64(0)
	if s.kind.Mode == v1alpha1.ModeEphemeral {
		observed = 1 // no plan has to visit it
	}
	u.Object["status"] = map[string]any{"observedGeneration": observed}
	initialCondition(u, s.kind.Mode)
	noteWriter(ctx, u, v1alpha1.WroteSpec)
	u.SetGeneration(1)
}

// PrepareForUpdate keeps the status and increments the generation if spec or lifecycle change.
func (s strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	n, o := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	keepFinalizer(ctx, n, o)
	if status, ok := o.Object["status"]; ok {
		n.Object["status"] = status
	} else {
		delete(n.Object, "status")
	}
	if changed(n, o, "spec") || changed(n, o, "lifecycle") {
		n.SetGeneration(o.GetGeneration() + 1)
		if s.kind.Mode == v1alpha1.ModeEphemeral {
			s.resetStatus(n)
		}
	}
	noteWriter(ctx, n, written(n, o)...)
}

// resetStatus sets the status of an ephemeral resource for its new spec, which needs no apply.
func (strategy) resetStatus(u *unstructured.Unstructured) {
	initialCondition(u, v1alpha1.ModeEphemeral)
	u.Object["status"].(map[string]any)["observedGeneration"] = u.GetGeneration()
}

// initialCondition sets the condition Ready of a new object.
func initialCondition(u *unstructured.Unstructured, mode v1alpha1.Mode) {
	message := "recorded; make a Plan to apply it"
	switch mode {
	case v1alpha1.ModeEphemeral:
		condition.Edit(u, func(c *[]metav1.Condition) {
			condition.Ready(c, 0, v1alpha1.ReasonDeclared, "opened by the plans that need it, and never stored")
		})
		return
	case v1alpha1.ModeData:
		message = "recorded; make a Plan to read it"
	case v1alpha1.ModeAction:
		message = "recorded; make a Plan to run it"
	}
	notReady(u, v1alpha1.ReasonAwaitingPlan, message)
}

// notReady sets the condition Ready to False and keeps the others.
func notReady(u *unstructured.Unstructured, reason, message string) {
	condition.Edit(u, func(c *[]metav1.Condition) {
		condition.Set(c, 0, v1alpha1.ConditionReady, false, reason,
			message)
	})
}

func changed(n, o *unstructured.Unstructured, top string) bool {
	return !apiequality.Semantic.DeepEqual(n.Object[top], o.Object[top])
}

func (s strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	u := obj.(*unstructured.Unstructured)
	return append(append(s.validate(ctx, u), s.kind.refuseUnknownTypes(ctx, u, nil)...),
		s.kind.refuseAddressOfSet(u)...)
}

// hasInstances reports whether ResourceSets have instances of the kind in a namespace, or in any one if that is empty.
func (k *served) hasInstances(namespace string) bool {
	of := k.kinds.config.Infrastructure.SetOf
	return of != nil && k.Mode == v1alpha1.ModeManaged &&
		of(v1alpha1.ObjectReference{APIVersion: k.GVK.GroupVersion().String(), Kind: k.GVK.Kind, Namespace: namespace})
}

// refuseAddressOfSet refuses a new object with the address of the instances of a ResourceSet.
func (k *served) refuseAddressOfSet(u *unstructured.Unstructured) field.ErrorList {
	if k.kinds.config.Infrastructure.SetAt == nil || k.Mode != v1alpha1.ModeManaged {
		return nil
	}
	ref := v1alpha1.ObjectReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(),
		Name: u.GetName()}
	set := k.kinds.config.Infrastructure.SetAt(ref)
	if set == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), u.GetName(),
		fmt.Sprintf("the ResourceSet %q has instances with the address %s.%s already: choose another name, or delete the set first", set, k.Type, u.GetName()))}
}

// validate validates a new object except for its references.
func (s strategy) validate(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	errs := s.validateObject(u)
	errs = append(errs, tooManyKeys(u.Object["spec"], field.NewPath("spec"))...)
	errs = append(errs, s.kind.validateSpec(ctx, u)...)
	errs = append(errs, s.kind.validateLifecycle(ctx, u)...)
	return append(errs, s.validateStateFinalizer(u, nil)...)
}

// ValidateUpdate validates spec and lifecycle only if they change. So an object that is invalid after an upgrade of its
// provider can still be labelled, released and deleted.
func (s strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	n, o := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	errs := s.validateObject(n)
	errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(n, o, field.NewPath("metadata"))...)
	if changed(n, o, "spec") {
		errs = append(errs, tooManyKeys(n.Object["spec"], field.NewPath("spec"))...)
		errs = append(errs, s.kind.validateSpec(ctx, n)...)
	}
	if changed(n, o, "lifecycle") {
		errs = append(errs, s.kind.validateLifecycle(ctx, n)...)
	}
	errs = append(errs, s.kind.refuseUnknownTypes(ctx, n, o)...)
	errs = append(errs, s.validateStateFinalizer(n, o)...)
	return append(errs, validateFinalizers(ctx, n, o)...)
}

// validateStateFinalizer rejects the finalizer on an object without infrastructure, because no plan would remove it.
func (s strategy) validateStateFinalizer(n, o *unstructured.Unstructured) field.ErrorList {
	if s.kind.Mode == v1alpha1.ModeManaged || !slices.Contains(n.GetFinalizers(), v1alpha1.FinalizerState) ||
		o != nil && slices.Contains(o.GetFinalizers(), v1alpha1.FinalizerState) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "finalizers"),
		fmt.Sprintf("%s is for managed resources: a %s has no infrastructure to destroy", v1alpha1.FinalizerState,
			s.kind.GVK.Kind))}
}

// validateObject validates the parts that all kinds share. It rejects unknown fields: those of an apply reach it, while
// other requests drop them earlier.
func (s strategy) validateObject(u *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	if got, want := u.GetAPIVersion(), s.kind.GVK.GroupVersion().String(); got != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), got, "must be "+want))
	}
	if got, want := u.GetKind(), s.kind.GVK.Kind; got != want {
		errs = append(errs, field.Invalid(field.NewPath("kind"), got, "must be "+want))
	}
	errs = append(errs, unknownFieldErrors(s.kind.unknownTop(u))...)
	path := field.NewPath("metadata")
	m, unknown, err := decodeMetadata(u.Object["metadata"])
	if err != nil {
		return append(errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
	}
	errs = append(errs, unknownFieldErrors(unknown)...)
	return append(errs, apivalidation.ValidateObjectMetaAccessor(m, true, apivalidation.NameIsDNSSubdomain, path)...)
}

// keepFinalizer restores the finalizer if a request removes all finalizers without naming this one: `kubectl replace`
// sends a manifest without finalizers, or a client applies an object without the one that it alone applied before. Of
// an object without applied finalizers, a patch that removes it is refused.
func keepFinalizer(ctx context.Context, n, o *unstructured.Unstructured) {
	info, ok := request.RequestInfoFrom(ctx)
	if !ok || byServer(ctx) || n.GetFinalizers() != nil || !slices.Contains(o.GetFinalizers(),
		v1alpha1.FinalizerState) {
		return
	}
	// managedFields does not list the server's own finalizer; see Kinds.UpdateStored.
	applied := slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Operation == metav1.ManagedFieldsOperationApply && strings.Contains(e.FieldsV1.String(),
			"f:finalizers")
	})
	if info.Verb == "update" || applied {
		n.SetFinalizers([]string{v1alpha1.FinalizerState})
	}
}

// byServer reports whether the API server itself made the request.
func byServer(ctx context.Context) bool {
	u, ok := request.UserFrom(ctx)
	return ok && u.GetName() == user.APIServerUser
}

// validateFinalizers lets only the server remove the finalizer of an object with infrastructure.
func validateFinalizers(ctx context.Context, n, o *unstructured.Unstructured) field.ErrorList {
	if !slices.Contains(o.GetFinalizers(), v1alpha1.FinalizerState) ||
		slices.Contains(n.GetFinalizers(), v1alpha1.FinalizerState) {
		return nil
	}
	if byServer(ctx) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "finalizers"),
		v1alpha1.FinalizerState+" stays until the object's infrastructure is destroyed: delete the object and apply a Plan, "+
			"and the server removes the finalizer")}
}

// CheckGracefulDelete sets the condition for the deletion in the write that marks the object for deletion. It always
// returns false, because no object has a grace period.
func (strategy) CheckGracefulDelete(ctx context.Context, obj runtime.Object, _ *metav1.DeleteOptions) bool {
	u, ok := obj.(*unstructured.Unstructured)
	if ok && slices.Contains(u.GetFinalizers(), v1alpha1.FinalizerState) {
		noteWriter(ctx, u, v1alpha1.WroteDeletion)
		d, _ := ctx.Value(deletionKey{}).(Deletion)
		awaitDeletion(u, d.MovedTo)
	}
	return false
}

// awaitDeletion sets the condition of an object that is marked for deletion and waits for a plan. movedTo is the
// address of the object that gets the infrastructure; empty without one. The condition CreateUnknown stays.
func awaitDeletion(u *unstructured.Unstructured, movedTo string) {
	destroy, set, _ := unstructured.NestedBool(u.Object, "lifecycle", "destroy")
	switch {
	case condition.Find(u, v1alpha1.ConditionReady)["reason"] == v1alpha1.ReasonCreateUnknown:
	case movedTo != "":
		notReady(u, v1alpha1.ReasonMoving, v1alpha1.MessageMoving(movedTo))
	case set && !destroy:
		notReady(u, v1alpha1.ReasonForgetting, v1alpha1.MessageForgetting)
	default:
		notReady(u, v1alpha1.ReasonDeleting, v1alpha1.MessageDeleting)
	}
}

// attributes returns the labels and fields for selectors.
func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	u := obj.(*unstructured.Unstructured)
	return u.GetLabels(), fields.Set{"metadata.name": u.GetName(), "metadata.namespace": u.GetNamespace()}, nil
}

func match(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attributes}
}

// ownStatus is the context key for a status that the server writes on behalf of a user, as for a taint.
type ownStatus struct{}

// statusStrategy is the strategy of the subresource "status", which changes only the status.
type statusStrategy struct{ strategy }

func (s statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(s.kind.GVK.GroupVersion().String()): fieldpath.NewSet(
			fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("lifecycle")),
	}
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	n, o := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	status, ok := n.Object["status"]
	managed := n.GetManagedFields()
	*n = *o.DeepCopy()
	n.SetManagedFields(managed)
	if ok {
		n.Object["status"] = status
	} else {
		delete(n.Object, "status")
	}
}

func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (s statusStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	n, o := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	path := field.NewPath("status")
	if !byServer(ctx) && ctx.Value(ownStatus{}) == nil && changed(n, o, "status") {
		return field.ErrorList{field.Forbidden(path,
			"only the server writes the status. To read the infrastructure again: kubectl hykube plan --refresh=All")}
	}
	errs := apivalidation.ValidateObjectMetaAccessorUpdate(n, o, field.NewPath("metadata"))
	raw, ok := n.Object["status"]
	if !ok || raw == nil {
		return append(errs, field.Required(path, "an object always has a status"))
	}
	m, ok := raw.(map[string]any)
	if !ok {
		return append(errs, field.Invalid(path, raw, "must be an object, got "+describe(raw)))
	}
	var status struct {
		ObservedGeneration int64                  `json:"observedGeneration,omitempty"`
		AppliedGeneration  int64                  `json:"appliedGeneration,omitempty"`
		FailedCreate       string                 `json:"failedCreate,omitempty"`
		Imported           string                 `json:"imported,omitempty"`
		MovedFrom          string                 `json:"movedFrom,omitempty"`
		Conditions         []metav1.Condition     `json:"conditions,omitempty"`
		Contributors       []v1alpha1.Contributor `json:"contributors,omitempty"`
		Attributes         map[string]any         `json:"attributes,omitempty"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m, &status, true); err != nil {
		return append(errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
	}
	return append(errs, metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))...)
}
