package loopback

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/shell"
	"github.com/hykube/hykube/server/kinds"
)

// Resolve drops the intent of a create whose outcome is unknown, so that the next plan creates the resource. The caller
// then writes the condition of the object.
//
// The write of the record fails if a plan has changed the record since, for example because it imports the resource. If
// the server stops after that write, the condition of the object still has the reason CreateUnknown. The user can then
// send the same request again.
func (a *Answers) Resolve(ctx context.Context, obj metav1.Object, k kinds.Kind) error {
	refuse := func(format string, args ...any) error {
		return apierrors.NewConflict(k.GVR.GroupResource(), obj.GetName(),
			fmt.Errorf("resolve: %s", fmt.Sprintf(format, args...)))
	}
	rec, err := a.record(ctx, obj, k)
	if err != nil {
		return err
	}
	lost, err := a.lostCreate(ctx, rec)
	if err != nil {
		return err
	}
	terminating, err := a.leavesWithNamespace(ctx, obj)
	switch {
	case err != nil:
		return err
	case obj.GetDeletionTimestamp() != nil && v1alpha1.IsVirtualName(obj.GetName()):
		return refuse("its set no longer has it, so the next applied plan forgets the create; to keep it, make the set have its key again")
	case terminating:
		return refuse("its namespace is marked for deletion, so the next applied plan forgets the create; to keep it, run kubectl hykube undelete namespace/%s first", obj.GetNamespace())
	case obj.GetDeletionTimestamp() != nil:
		return refuse("it is marked for deletion, so the next applied plan forgets the create; to keep the object, run kubectl hykube undelete %s/%s -n %s first",
			k.GVK.Kind, obj.GetName(), obj.GetNamespace())
	case lost: // the code below drops it
	case rec.Exists():
		return refuse("it has infrastructure: kubectl hykube state show %s -n %s. To replace that, use kubectl hykube taint",
			shell.Word(k.GVK.Kind+"/"+obj.GetName()), obj.GetNamespace())
	case rec.Revision() == 0 && showsInfrastructure(obj):
		return nil // the record is lost, and the status that follows lets the next plan create the resource
	case rec.Intent == nil && showsCreateUnknown(obj):
		return nil // an earlier attempt changed the record and did not write the status
	case rec.Intent == nil:
		return refuse("no create of it has an unknown outcome, so there is nothing to resolve")
	case rec.Intent.Action != v1alpha1.ActionCreate:
		return refuse("its interrupted change is no create, so the next plan reads the resource and continues; make a plan")
	default:
		return refuse("a plan is creating it; try again when the plan has ended")
	}
	// The object keeps its finalizer: a waiting plan may begin to create the resource now, and needs it.
	if err = a.dropCreate(ctx, rec); errors.Is(err, ledger.ErrConflict) {
		return refuse("a plan is changing it; try again when the plan has ended")
	}
	return err
}

// leavesWithNamespace reports whether an object is an instance in a namespace that is marked for deletion. Such a
// namespace marks other objects themselves.
func (a *Answers) leavesWithNamespace(ctx context.Context, obj metav1.Object) (bool, error) {
	if !v1alpha1.IsVirtualName(obj.GetName()) {
		return false, nil
	}
	ns, err := a.Stored.Shared(ctx, resourceOfCore("namespaces"), "", obj.GetNamespace())
	if err != nil || ns == nil {
		return false, err
	}
	return ns.Object.GetDeletionTimestamp() != nil, nil
}

// dropCreate removes the intent of a create, and with it the record of an object without infrastructure.
func (a *Answers) dropCreate(ctx context.Context, rec *ledger.Instance) error {
	rec.Intent, rec.Quarantine = nil, nil
	if rec.Living() {
		return a.Ledger.Save(ctx, rec)
	}
	return a.Ledger.Forget(ctx, rec)
}

// Forget removes the record of an object that does not exist, as after a restore of an older store of the objects. The
// caller has checked that no object has the UID.
func (a *Answers) Forget(ctx context.Context, ref v1alpha1.ObjectReference, k kinds.Kind, dry bool) error {
	rec, err := a.Ledger.Instance(ctx, ref)
	if err != nil {
		return err
	}
	if of := rec.Object; rec.Revision() == 0 || of.APIVersion != ref.APIVersion || of.Kind != ref.Kind ||
		of.Name != ref.Name || of.Set != "" {
		return apierrors.NewNotFound(k.GVR.GroupResource(), ref.Name)
	}
	lost, err := a.lostCreate(ctx, rec)
	if err != nil {
		return err
	}
	running := apierrors.NewConflict(k.GVR.GroupResource(), ref.Name,
		errors.New("resolve: a plan is changing it; try again when the plan has ended"))
	if rec.Intent != nil && !lost {
		return running
	}
	if dry {
		return nil
	}
	if err = a.Ledger.Forget(ctx, rec); errors.Is(err, ledger.ErrConflict) {
		return running
	}
	return err
}

func showsInfrastructure(obj metav1.Object) bool {
	u, ok := obj.(*unstructured.Unstructured)
	return ok && resource.StatusOf(u).ShowsInfrastructure()
}

func showsCreateUnknown(obj metav1.Object) bool {
	u, ok := obj.(*unstructured.Unstructured)
	return ok && condition.Find(u, v1alpha1.ConditionReady)["reason"] == v1alpha1.ReasonCreateUnknown
}
