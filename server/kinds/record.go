package kinds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
)

// This file serves the subresources that change the record of an object's infrastructure: "taint" and "resolve".

// recordChange changes the record of an object's infrastructure. It returns the function that then writes the result to
// the status of the object, for users: plans use the record.
type recordChange func(ctx context.Context, s *served,
	obj *unstructured.Unstructured) (show func(*unstructured.Unstructured), err error)

// serveRecord changes the record of an object and returns the object. Of the request body, it uses only the options. If
// the object does not exist, forget removes the record with the UID in the body; nil refuses that.
func (k *Kinds) serveRecord(s *served, serving *serving, info *request.RequestInfo, change recordChange,
	forget forgetFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := request.WithNamespace(r.Context(), info.Namespace)
		options, err := k.recordOptions(w, r)
		if err != nil {
			k.fail(w, r, err)
			return
		}
		obj, err := k.changeRecord(ctx, s, serving, info.Name, change, forget, options)
		if err != nil {
			k.fail(w, r, err)
			return
		}
		responsewriters.WriteObjectNegotiated(negotiated{kind: s}, negotiation.DefaultEndpointRestrictions,
			s.GVK.GroupVersion(), w, r, http.StatusOK, obj, false)
	}
}

// recordOptions returns the options in the query and in the body. A body is a DeleteOptions, or an object whose UID is
// a precondition.
func (k *Kinds) recordOptions(w http.ResponseWriter, r *http.Request) (metav1.DeleteOptions, error) {
	options := metav1.DeleteOptions{DryRun: r.URL.Query()["dryRun"]}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequestBodyBytes))
	if err != nil {
		return options, apierrors.NewBadRequest(fmt.Sprintf("read options: %v", err))
	}
	var sent struct {
		metav1.DeleteOptions
		Metadata metav1.Preconditions `json:"metadata"`
	}
	if err := yaml.Unmarshal(body, &sent); err != nil {
		return options, apierrors.NewBadRequest(fmt.Sprintf("decode options: %v", err))
	}
	options.DryRun, options.Preconditions = append(options.DryRun, sent.DryRun...), sent.Preconditions
	if options.Preconditions == nil {
		options.Preconditions = &sent.Metadata
	}
	for _, d := range options.DryRun {
		if d != metav1.DryRunAll {
			return options, apierrors.NewBadRequest(fmt.Sprintf("dryRun is %q, and can only be %q", d,
				metav1.DryRunAll))
		}
	}
	return options, nil
}

func (k *Kinds) changeRecord(ctx context.Context, s *served, serving *serving, name string, change recordChange,
	forget forgetFunc, options metav1.DeleteOptions) (runtime.Object, error) {
	found, err := serving.object.Get(ctx, name, &metav1.GetOptions{})
	uid := options.Preconditions.UID
	if named := uid != nil && *uid != ""; named && forget != nil && isOther(found, err, *uid) {
		ref := s.reference(request.NamespaceValue(ctx), name)
		ref.UID = *uid
		if out, err := forget(ctx, s, ref, len(options.DryRun) > 0); !apierrors.IsNotFound(err) {
			return out, err
		}
	}
	if err != nil {
		return nil, err
	}
	obj := found.(*unstructured.Unstructured)
	if uid != nil && *uid != "" && *uid != obj.GetUID() {
		return nil, apierrors.NewConflict(s.GVR.GroupResource(), name,
			fmt.Errorf("the UID in the precondition is %s, but the object has %s", *uid, obj.GetUID()))
	}
	if len(options.DryRun) > 0 {
		return obj, nil
	}
	show, err := change(ctx, s, obj)
	if err != nil {
		return nil, err
	}
	if v1alpha1.IsVirtualName(name) {
		ref := s.reference(obj.GetNamespace(), name)
		ref.UID = obj.GetUID()
		err := k.config.Infrastructure.InstanceStatus(ctx, ref, func(u *unstructured.Unstructured) map[string]any {
			show(u)
			obj.Object["status"] = u.Object["status"]
			return u.Object["status"].(map[string]any)
		})
		return obj, err
	}
	update := rest.DefaultUpdatedObjectInfo(nil,
		func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			u := old.(*unstructured.Unstructured).DeepCopy()
			if u.GetUID() != obj.GetUID() {
				return nil, apierrors.NewConflict(s.GVR.GroupResource(), name,
					fmt.Errorf("it was deleted and created again meanwhile"))
			}
			show(u)
			return u, nil
		})
	out, _, err := serving.status.Update(context.WithValue(ctx, ownStatus{}, true), name, update, nil, nil, false,
		&metav1.UpdateOptions{})
	return out, err
}

// forgetFunc removes a record of an object that does not exist. It returns what is known of the object, and a NotFound
// error if there is no such record.
type forgetFunc func(ctx context.Context, s *served, ref v1alpha1.ObjectReference, dry bool) (runtime.Object, error)

// isOther reports whether an object was not found, or has another UID.
func isOther(found runtime.Object, err error, uid types.UID) bool {
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	return found.(*unstructured.Unstructured).GetUID() != uid
}

// forgetRecord implements forgetFunc. The infrastructure stays, and nothing manages it afterwards. A plan that forgets
// a resource needs an approval, so the user must also have the right to approve plans.
func (k *Kinds) forgetRecord(ctx context.Context, s *served, ref v1alpha1.ObjectReference,
	dry bool) (runtime.Object, error) {
	if k.config.Infrastructure.Forget == nil {
		return nil, apierrors.NewNotFound(s.GVR.GroupResource(), ref.Name)
	}
	if err := k.config.Infrastructure.Forget(ctx, ref, s.Kind, true); err != nil {
		return nil, err
	}
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("forget record: the request has no user"))
	}
	right := store.Right{Verb: "approve", Namespace: ref.Namespace, Group: v1alpha1.GroupName, Resource: "plans"}
	if may, err := k.access.Asker(who).May(ctx, right); err != nil {
		return nil, apierrors.NewInternalError(err)
	} else if !may {
		return nil, apierrors.NewForbidden(s.GVR.GroupResource(), ref.Name,
			fmt.Errorf("to forget its record needs the right to %s in the namespace %q, too, and user %q lacks it",
				right, ref.Namespace, who.GetName()))
	}
	if !dry {
		if err := k.config.Infrastructure.Forget(ctx, ref, s.Kind, false); err != nil {
			return nil, err
		}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(s.GVK)
	u.SetNamespace(ref.Namespace)
	u.SetName(ref.Name)
	u.SetUID(ref.UID)
	return u, nil
}

// nameOf returns the name of the user of a request, for a message.
func nameOf(ctx context.Context) string {
	if u := userOf(ctx); u != nil {
		return u.GetName()
	}
	return "an unknown user"
}
