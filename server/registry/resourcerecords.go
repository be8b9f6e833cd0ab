package registry

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/kinds"
)

// recordToken begins the token of a page of records without an object.
const recordToken = "records."

// messageWithoutObject is the message of a record without an object.
const messageWithoutObject = "The ledger has a record of it, and the object does not exist, so no plan changes or destroys it. To forget the record: kubectl hykube resolve KIND/NAME --forget. To take the resource back afterwards: kubectl hykube import KIND/NAME ID"

// withoutObject adds the records of infrastructure whose object does not exist. They have neither labels nor a resource
// version.
func (l *resourceList) withoutObject(ctx context.Context) error {
	var after v1alpha1.ObjectReference
	if l.Continue != "" {
		if err := decodeToken(recordToken, l.Continue, &after); err != nil {
			return err
		}
	}
	refs, at, err := l.backend.Index.WithoutObject(ctx, l.view.Namespace, after, l.room()+1)
	if err != nil {
		return apiError(err)
	}
	l.revision = at
	if room := l.room(); len(refs) > room {
		refs = refs[:room]
		l.list.Continue = encodeToken(recordToken, refs[room-1])
	}
	for _, ref := range refs {
		rec, err := l.backend.Record(ctx, ref)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		if err := l.addRecord(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}

// addRecord adds a record to the page, if the user may see objects of its kind and the selection has it. It omits a
// record that was removed since, and one whose object was made since.
func (l *resourceList) addRecord(ctx context.Context, rec *ledger.Instance) error {
	ref := rec.Object
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	stored := schema.GroupResource{Group: gvk.Group, Resource: v1alpha1.TypeOf(ref.Kind)}
	if visible, err := l.view.Visible(stored, ref.Namespace); err != nil || !visible || rec.Revision() == 0 {
		return err
	}
	u, err := l.objects.Get(ctx, stored, ref.Namespace, ref.Name)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if u != nil && u.GetUID() == ref.UID {
		return nil
	}
	provider, _ := v1alpha1.ProviderOfGroup(gvk.Group)
	r := &v1alpha1.ResourceSummary{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Resource"},
		ObjectMeta: metav1.ObjectMeta{Name: kinds.SummaryName(provider, ref.Kind, ref.Name), Namespace: ref.Namespace,
			UID: ref.UID},
		Object: ref, Provider: provider, ProviderConfig: rec.ProviderConfig,
		Status: v1alpha1.ResourceSummaryStatus{
			Ready: metav1.ConditionFalse, Reason: v1alpha1.ReasonWithoutObject, Message: messageWithoutObject,
			ID: l.idOf(stored, &rec.State), AppliedGeneration: ref.Generation,
		},
	}
	matches, err := l.Matches(r)
	if err == nil && matches {
		l.list.Items = append(l.list.Items, *r)
	}
	return err
}

// idOf returns the ID in a recorded state, masked if it is secret.
func (l *resourceList) idOf(stored schema.GroupResource, s *ledger.State) string {
	kind, served := l.kinds.Stored(stored)
	if !served || s.ID() == "" {
		return ""
	}
	if a := kind.Schema.Block.Attribute("id"); a != nil && a.Sensitive || s.Hides("id") {
		return lang.Mask
	}
	return s.ID()
}
