package kinds

import (
	"context"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

// Messages of the condition Ready after a taint and after its removal.
const (
	messageTainted   = "tainted by %s: the next plan replaces it"
	messageUntainted = "no longer tainted; make a Plan to see whether the resource needs changes"
)

// serveTaint marks an object's infrastructure for replacement by the next plan (POST), or removes the mark (DELETE). It
// returns the object. Of the request body, it uses only the options.
func (k *Kinds) serveTaint(s *served, use *serving, info *request.RequestInfo) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := request.WithNamespace(r.Context(), info.Namespace)
		options, err := k.taintOptions(w, r, info.Verb == "delete")
		if err != nil {
			k.fail(w, r, err)
			return
		}
		obj, err := k.taint(ctx, s, use, info.Name, info.Verb == "create", options)
		if err != nil {
			k.fail(w, r, err)
			return
		}
		responsewriters.WriteObjectNegotiated(negotiated{kind: s}, negotiation.DefaultEndpointRestrictions, s.GVK.GroupVersion(), w, r, http.StatusOK, obj, false)
	}
}

// taintOptions returns the options in the query and, if inBody is true, in the body of a delete.
func (k *Kinds) taintOptions(w http.ResponseWriter, r *http.Request, inBody bool) (metav1.DeleteOptions, error) {
	options := metav1.DeleteOptions{DryRun: r.URL.Query()["dryRun"]}
	if inBody {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequestBodyBytes))
		if err != nil {
			return options, apierrors.NewBadRequest(fmt.Sprintf("read options: %v", err))
		}
		var sent metav1.DeleteOptions
		if err := yaml.Unmarshal(body, &sent); err != nil {
			return options, apierrors.NewBadRequest(fmt.Sprintf("decode options: %v", err))
		}
		options.DryRun, options.Preconditions = append(options.DryRun, sent.DryRun...), sent.Preconditions
	}
	for _, d := range options.DryRun {
		if d != metav1.DryRunAll {
			return options, apierrors.NewBadRequest(fmt.Sprintf("dryRun is %q, and can only be %q", d, metav1.DryRunAll))
		}
	}
	return options, nil
}

func (k *Kinds) taint(ctx context.Context, s *served, use *serving, name string, tainted bool, options metav1.DeleteOptions) (runtime.Object, error) {
	found, err := use.object.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	obj := found.(*unstructured.Unstructured)
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != obj.GetUID() {
		return nil, apierrors.NewConflict(s.GVR.GroupResource(), name, fmt.Errorf("the UID in the precondition is %s, but the object has %s", *p.UID, obj.GetUID()))
	}
	if len(options.DryRun) > 0 {
		return obj, nil
	}
	applied, err := k.config.Taint(ctx, obj, s.Kind, tainted)
	if err != nil {
		return nil, err
	}
	// Plans use the state; the conditions are for users.
	who := "an unknown user"
	if u, ok := request.UserFrom(ctx); ok {
		who = u.GetName()
	}
	reason, message := v1alpha1.ReasonTainted, fmt.Sprintf(messageTainted, who)
	if !tainted {
		reason, message = v1alpha1.ReasonAwaitingPlan, messageUntainted
	}
	update := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		u := old.(*unstructured.Unstructured).DeepCopy()
		if u.GetUID() != obj.GetUID() {
			return nil, apierrors.NewConflict(s.GVR.GroupResource(), name, fmt.Errorf("it was deleted and created again meanwhile"))
		}
		condition.Edit(u, func(c *[]metav1.Condition) {
			if applied && u.GetGeneration() == obj.GetGeneration() {
				condition.Ready(c, u.GetGeneration(), v1alpha1.ReasonApplied, v1alpha1.MessageApplied)
				return
			}
			condition.Waiting(c, u.GetGeneration(), reason, message)
		})
		return u, nil
	})
	out, _, err := use.status.Update(context.WithValue(ctx, ownStatus{}, true), name, update, nil, nil, false, &metav1.UpdateOptions{})
	return out, err
}
