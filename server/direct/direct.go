// Package direct changes objects through their storage as system:apiserver. It does what the handler of an update does,
// but without a request: admission, the rules of the kind, and the owners of fields stay the same. It knows no kind.
package direct

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// fieldManager is the owner of the fields that the server writes. The user agent of its requests has the same name.
const fieldManager = "hykube"

// ErrUnchanged ends an update without a write.
var ErrUnchanged = errors.New("nothing changes")

// Storage is the storage of a kind, or of a subresource.
type Storage struct {
	rest.Updater
	// Scope describes the kind, as for the handlers of its requests.
	Scope *handlers.RequestScope
	// Admission checks every write; nil admits everything.
	Admission admission.Interface
}

// Context returns a context for a call of a storage as system:apiserver.
func Context(ctx context.Context, scope *handlers.RequestScope, namespace, name string) context.Context {
	ctx = request.WithUser(ctx, server)
	ctx = request.WithNamespace(ctx, namespace)
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, Verb: "update", APIPrefix: "apis", Namespace: namespace, Name: name,
		APIGroup: scope.Resource.Group, APIVersion: scope.Resource.Version, Resource: scope.Resource.Resource,
		Subresource: scope.Subresource,
	})
}

var server = &user.DefaultInfo{Name: user.APIServerUser,
	Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}

// Update changes a stored object. It calls change with a copy of the object, and calls it again if another writer was
// faster. If change returns an error, nothing is written. It returns nil if that error is ErrUnchanged.
func (s Storage) Update(ctx context.Context, namespace, name string, change func(runtime.Object) error) error {
	ctx = Context(ctx, s.Scope, namespace, name)
	options := &metav1.UpdateOptions{FieldManager: fieldManager}
	attributes := func(obj, old runtime.Object) admission.Attributes {
		return admission.NewAttributesRecord(obj, old, s.Scope.Kind, namespace, name, s.Scope.Resource,
			s.Scope.Subresource, admission.Update, options, false, server)
	}
	var refused error // the error of the last call of change, which a storage may convert
	info := rest.DefaultUpdatedObjectInfo(nil,
		func(ctx context.Context, _, old runtime.Object) (runtime.Object, error) {
			obj := old.DeepCopyObject()
			if refused = change(obj); refused != nil {
				return nil, refused
			}
			obj = s.Scope.FieldManager.UpdateNoErrors(old, obj, fieldManager)
			if admit, ok := s.Admission.(admission.MutationInterface); ok && admit.Handles(admission.Update) {
				if err := admit.Admit(ctx, attributes(obj, old), s.Scope); err != nil {
					return nil, err
				}
			}
			return obj, nil
		})
	validate := func(ctx context.Context, obj, old runtime.Object) error {
		if admit, ok := s.Admission.(admission.ValidationInterface); ok && admit.Handles(admission.Update) {
			return admit.Validate(ctx, attributes(obj, old), s.Scope)
		}
		return nil
	}
	_, _, err := s.Updater.Update(ctx, name, info, refuseCreate, validate, false, options)
	switch {
	case errors.Is(refused, ErrUnchanged):
		return nil
	case refused != nil:
		return refused
	}
	return err
}

// refuseCreate is never called, because no storage of this package creates an object on update.
func refuseCreate(context.Context, runtime.Object) error {
	return fmt.Errorf("update: the object does not exist")
}
