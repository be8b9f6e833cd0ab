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
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/deletion"
)

// messageUndeleted is what the Ready condition says after a deletion was taken back.
const messageUndeleted = "%s took the deletion back; make a Plan to see whether the infrastructure is as it should be"

// serveUndelete takes the deletion of an object back (POST), and answers with the object. Of what is sent, the options alone matter.
func (k *Kinds) serveUndelete(s *served, use *serving, info *request.RequestInfo) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		options, err := k.taintOptions(w, r, false)
		if err != nil {
			k.fail(w, r, err)
			return
		}
		obj, err := k.undelete(request.WithNamespace(r.Context(), info.Namespace), s, use, info, len(options.DryRun) > 0)
		if err != nil {
			k.fail(w, r, err)
			return
		}
		responsewriters.WriteObjectNegotiated(negotiated{kind: s}, negotiation.DefaultEndpointRestrictions, s.GVK.GroupVersion(), w, r, http.StatusOK, obj, false)
	}
}

func (k *Kinds) undelete(ctx context.Context, s *served, use *serving, info *request.RequestInfo, dry bool) (runtime.Object, error) {
	found, err := use.object.Get(ctx, info.Name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	obj := found.(*unstructured.Unstructured)
	if obj.GetDeletionTimestamp() == nil {
		return nil, apierrors.NewConflict(s.GVR.GroupResource(), info.Name, errors.New("it is not being deleted"))
	}
	if k.config.Undelete == nil {
		return nil, notFound(s.GVR.Group, s.GVR.Resource+"/"+undeleteSubresource, "this server keeps no states, so there is nothing to take back")
	}
	who, _ := request.UserFrom(ctx)
	// A namespace that is being deleted keeps nothing.
	if admit, ok := k.config.Admission.(admission.MutationInterface); ok && admit.Handles(admission.Create) {
		a := admission.NewAttributesRecord(obj, nil, s.GVK, info.Namespace, info.Name, s.GVR, undeleteSubresource, admission.Create, &metav1.CreateOptions{}, dry, who)
		if err := admit.Admit(ctx, a, use.objectScope); err != nil {
			return nil, err
		}
	}
	name := "somebody"
	if who != nil {
		name = who.GetName()
	}
	var out runtime.Object
	store := use.object.Store
	clear := func() (err error) {
		out, err = deletion.Undo(ctx, store, info.Name, obj.GetUID(), dry, func(existing runtime.Object) {
			setCondition(existing.(*unstructured.Unstructured), readiness(metav1.ConditionFalse, v1alpha1.ReasonUndeleted, fmt.Sprintf(messageUndeleted, name)))
		})
		return err
	}
	if dry {
		err := clear()
		return out, err
	}
	mark := func() error {
		return deletion.Redo(ctx, store, info.Name, obj.GetUID(), func(existing runtime.Object) {
			setCondition(existing.(*unstructured.Unstructured), readiness(metav1.ConditionFalse, v1alpha1.ReasonDeleting, messageDeleted))
		})
	}
	err = k.config.Undelete(ctx, obj, s.Kind, clear, mark)
	return out, err
}
