package kinds

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/server/direct"
)

// UpdateStatus changes the status of an object as the server itself, by the rules of the subresource "status". change
// returns direct.ErrUnchanged to write nothing. It may be called again after a conflict.
func (k *Kinds) UpdateStatus(ctx context.Context, kind Kind, namespace, name string, change func(*unstructured.Unstructured) error) error {
	return k.update(ctx, kind, namespace, name, statusSubresource, change)
}

// UpdateObject changes an object, except its status, as the server itself. See UpdateStatus.
func (k *Kinds) UpdateObject(ctx context.Context, kind Kind, namespace, name string, change func(*unstructured.Unstructured) error) error {
	return k.update(ctx, kind, namespace, name, "", change)
}

func (k *Kinds) update(ctx context.Context, kind Kind, namespace, name, subresource string, change func(*unstructured.Unstructured) error) error {
	_, use, done, err := k.acquire(&request.RequestInfo{
		IsResourceRequest: true, Verb: "update", APIGroup: kind.GVR.Group, APIVersion: kind.GVR.Version, Resource: kind.GVR.Resource,
		Subresource: subresource, Namespace: namespace, Name: name,
	})
	if err != nil {
		return err
	}
	defer done()
	s := direct.Storage{Updater: use.object, Scope: use.objectScope, Admission: k.config.Admission}
	if subresource == statusSubresource {
		s.Updater, s.Scope = use.status, use.statusScope
	}
	return s.Update(withParsedSpec(ctx), namespace, name, func(obj runtime.Object) error { return change(obj.(*unstructured.Unstructured)) })
}
