// Package speculation validates an object as if its author recorded it, for a speculative plan. Its requests are dry
// runs of the real ones, with the same decoding, merging, defaulting, validation and admission. They need only the
// right to read the object. The package knows no kind and no storage.
package speculation

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/hykube/hykube/api/v1alpha1"
)

// clientSideManager is the field manager of `kubectl apply` without --server-side.
const clientSideManager = "kubectl-client-side-apply"

type contextKey struct{}

// With returns a context for dry-run requests of a speculative plan with a field manager. External requests cannot have
// such a context.
func With(ctx context.Context, fieldManager string) context.Context {
	return context.WithValue(ctx, contextKey{}, fieldManager)
}

func from(ctx context.Context) (fieldManager string, ok bool) {
	fieldManager, ok = ctx.Value(contextKey{}).(string)
	return fieldManager, ok
}

// Is reports whether a request is a dry run of a speculative plan. The plan sees all its objects together, and such a
// request only its own.
func Is(ctx context.Context) bool {
	_, ok := from(ctx)
	return ok
}

// Authorizer adds two permissions to another authorizer. A user who may read an object may use it in a speculative
// plan. A user who may create plans may upload a plan's objects.
type Authorizer struct{ authorizer.Authorizer }

// Authorize implements authorizer.Authorizer.
func (a Authorizer) Authorize(ctx context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := a.Authorizer.Authorize(ctx, asked)
	if decision == authorizer.DecisionAllow {
		return decision, reason, err
	}
	instead := attributes(asked)
	switch _, speculative := from(ctx); {
	case !asked.IsResourceRequest():
		return decision, reason, err
	case speculative && (asked.GetVerb() == "create" || asked.GetVerb() == "patch" || asked.GetVerb() == "delete") &&
		asked.GetSubresource() == "":
		instead.Verb = "get"
	case asked.GetAPIGroup() == v1alpha1.GroupName && asked.GetResource() == "plans" &&
		asked.GetSubresource() == "objects" && asked.GetVerb() == "create":
		// The subresource itself checks that the plan is the user's own.
		instead.Subresource, instead.Name = "", ""
	default:
		return decision, reason, err
	}
	return a.Authorizer.Authorize(ctx, instead)
}

func attributes(a authorizer.Attributes) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: a.GetUser(), Verb: a.GetVerb(), Namespace: a.GetNamespace(), APIGroup: a.GetAPIGroup(),
		APIVersion: a.GetAPIVersion(),
		Resource:   a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
		ResourceRequest: a.IsResourceRequest(), Path: a.GetPath(),
	}
}

// Adopt makes a speculative update see the object with the field ownership that `kubectl hykube apply` sets when it
// takes over client-side applied fields. It does not change other updates.
func Adopt(ctx context.Context, info rest.UpdatedObjectInfo) rest.UpdatedObjectInfo {
	manager, ok := from(ctx)
	if !ok {
		return info
	}
	return adopting{info, manager}
}

type adopting struct {
	rest.UpdatedObjectInfo
	manager string
}

func (a adopting) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	old = old.DeepCopyObject()
	if err := csaupgrade.UpgradeManagedFields(old, sets.New(clientSideManager), a.manager); err != nil {
		return nil, err
	}
	return a.UpdatedObjectInfo.UpdatedObject(ctx, old)
}
