package kinds

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/server/deletion"
)

// Undeleted is the state of an object after its deletion was reverted.
type Undeleted int

const (
	// UndeletedUnplanned means that the object needs a plan: its spec or infrastructure may have changed before the
	// deletion.
	UndeletedUnplanned Undeleted = iota
	// UndeletedApplied means that the current generation is applied.
	UndeletedApplied
	// UndeletedUnknown means that the outcome of a create is unknown.
	UndeletedUnknown
)

// undeletedReady holds the condition Ready for each Undeleted.
var undeletedReady = map[Undeleted]struct {
	reason, message string
}{
	UndeletedUnplanned: {v1alpha1.ReasonUndeleted,
		"%s took the deletion back; make a Plan to see whether the resource needs changes"},
	UndeletedApplied: {v1alpha1.ReasonApplied,
		"%s took the deletion back; the infrastructure matches the spec, according to its recorded state"},
	UndeletedUnknown: {v1alpha1.ReasonCreateUnknown,
		"%s took the deletion back; a create started, and its outcome is unknown: check whether the resource exists, and then run kubectl hykube resolve"},
}

// undeleted sets the condition of an object whose deletion is reverted, for its next generation.
func undeleted(u *unstructured.Unstructured, how Undeleted, who string) {
	r := undeletedReady[how]
	if how != UndeletedApplied {
		notReady(u, r.reason, fmt.Sprintf(r.message, who))
		return
	}
	condition.Edit(u, func(c *[]metav1.Condition) { condition.Ready(c, 0, r.reason, fmt.Sprintf(r.message, who)) })
	status := u.Object["status"].(map[string]any)
	status["observedGeneration"], status["appliedGeneration"] = u.GetGeneration()+1, u.GetGeneration()+1
}

// serveUndelete reverts the deletion of an object (POST) and returns the object. Of the request body, it uses only the
// options.
func (k *Kinds) serveUndelete(s *served, serving *serving, info *request.RequestInfo) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		options, err := k.recordOptions(w, r)
		if err != nil {
			k.fail(w, r, err)
			return
		}
		obj, err := k.undelete(request.WithNamespace(r.Context(), info.Namespace), s, serving, info,
			len(options.DryRun) > 0)
		if err != nil {
			k.fail(w, r, err)
			return
		}
		responsewriters.WriteObjectNegotiated(negotiated{kind: s}, negotiation.DefaultEndpointRestrictions,
			s.GVK.GroupVersion(), w, r, http.StatusOK, obj, false)
	}
}

func (k *Kinds) undelete(ctx context.Context, s *served, serving *serving, info *request.RequestInfo,
	dry bool) (runtime.Object, error) {
	found, err := serving.object.Get(ctx, info.Name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	obj := found.(*unstructured.Unstructured)
	if obj.GetDeletionTimestamp() == nil {
		return nil, apierrors.NewConflict(s.GVR.GroupResource(), info.Name, errors.New("it is not being deleted"))
	}
	// An object cannot stay in a namespace that is being deleted.
	if admit, ok := k.config.Admission.(admission.MutationInterface); ok && admit.Handles(admission.Create) {
		a := admission.NewAttributesRecord(obj, nil, s.GVK, info.Namespace, info.Name, s.GVR, undeleteSubresource,
			admission.Create, &metav1.CreateOptions{}, dry, userOf(ctx))
		if err := admit.Admit(ctx, a, serving.objectScope); err != nil {
			return nil, err
		}
	}
	return k.revertDeletion(ctx, s, serving, obj, dry)
}

// Undelete reverts the deletion of an object on behalf of the user of ctx. The caller must have checked the user's
// right.
func (k *Kinds) Undelete(ctx context.Context, kind Kind, obj *unstructured.Unstructured) error {
	s, serving, done, err := k.acquire(&request.RequestInfo{APIGroup: kind.GVR.Group, APIVersion: kind.GVR.Version,
		Resource:  kind.GVR.Resource,
		Namespace: obj.GetNamespace(), Name: obj.GetName(), Verb: "create", Subresource: undeleteSubresource})
	if err != nil {
		return err
	}
	defer done()
	_, err = k.revertDeletion(request.WithNamespace(ctx, obj.GetNamespace()), s, serving, obj, false)
	return err
}

func userOf(ctx context.Context) user.Info {
	who, _ := request.UserFrom(ctx)
	return who
}

// revertDeletion reverts the deletion of an object whose user and namespace were checked.
func (k *Kinds) revertDeletion(ctx context.Context, s *served, serving *serving, obj *unstructured.Unstructured,
	dry bool) (runtime.Object, error) {
	name := nameOf(ctx)
	var out runtime.Object
	store := serving.object.Store
	clear := func(how Undeleted) (err error) {
		out, err = deletion.Undo(ctx, store, obj.GetName(), obj.GetUID(), dry, func(existing runtime.Object) {
			undeleted(existing.(*unstructured.Unstructured), how, name)
			if how == UndeletedApplied {
				takeBack(existing.(*unstructured.Unstructured), v1alpha1.WroteDeletion, v1alpha1.WroteUndelete)
			} else {
				noteWriter(ctx, existing.(*unstructured.Unstructured), v1alpha1.WroteUndelete)
			}
		})
		return err
	}
	if dry {
		err := clear(UndeletedUnplanned)
		return out, err
	}
	mark := func() error {
		return deletion.Redo(ctx, store, obj.GetName(), obj.GetUID(), func(existing runtime.Object) {
			awaitDeletion(existing.(*unstructured.Unstructured), "")
			noteWriter(ctx, existing.(*unstructured.Unstructured), v1alpha1.WroteDeletion)
		})
	}
	err := k.config.Infrastructure.Undelete(ctx, obj, s.Kind, clear, mark)
	return out, err
}
