package loopback

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/storage"
)

// Answers is what the API asks the ledger.
type Answers struct {
	Ledger *ledger.Ledger
	Stored *storage.Objects
}

// InUse counts what a Namespace, a Provider or a ProviderConfig stands behind: the living instances, and for a Provider the
// objects of its kinds, which nobody could see or delete without it.
func (a *Answers) InUse(ctx context.Context, obj metav1.Object) (n int, example string, err error) {
	count := func(kind, namespace, name string) {
		if n++; n == 1 {
			example = fmt.Sprintf("%s/%s in the namespace %q", kind, name, namespace)
		}
	}
	namespace, config := obj.GetNamespace(), obj.GetName()
	switch obj.(type) {
	case *corev1.Namespace:
		namespace, config = obj.GetName(), ""
	case *v1alpha1.Provider:
		for o, err := range a.Stored.List(ctx, v1alpha1.ProviderGroup(obj.GetName()), "") {
			if err != nil {
				return 0, "", err
			}
			count(o.GetKind(), o.GetNamespace(), o.GetName())
		}
		return n, example, nil
	}
	for rec, err := range a.Ledger.Instances(ctx, namespace) {
		if err != nil {
			return 0, "", err
		}
		if (config == "" || rec.ProviderConfig == config) && (rec.Exists() || rec.Intent != nil) {
			count(rec.Object.Kind, rec.Object.Namespace, rec.Object.Name)
		}
	}
	return n, example, nil
}

// defaultChanges is the length of a page of changes when the client names none.
const defaultChanges = 500

// Changes reads a page of a plan's changes, masked as they are stored.
func (a *Answers) Changes(ctx context.Context, p *v1alpha1.Plan, limit int, cont string) (*v1alpha1.PlanChangeList, error) {
	from := int64(0)
	if cont != "" {
		var err error
		if from, err = strconv.ParseInt(cont, 10, 32); err != nil || from < 0 {
			return nil, fmt.Errorf("list changes of plan %q: the continue parameter is not one that this server gave", p.Name)
		}
	}
	if limit <= 0 {
		limit = defaultChanges
	}
	list := &v1alpha1.PlanChangeList{Items: []v1alpha1.PlanChange{}}
	list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("PlanChangeList"))
	for c, err := range a.Ledger.Changes(ctx, p.UID, int32(from)) {
		if err != nil {
			return nil, err
		}
		if len(list.Items) == limit {
			list.Continue = strconv.Itoa(int(c.Index))
			break
		}
		list.Items = append(list.Items, c.PlanChange)
	}
	return list, nil
}

// State is what the subresource "state" answers: the raw provider state, secrets included. Nil when there is none.
func (a *Answers) State(ctx context.Context, obj metav1.Object, k kinds.Kind) ([]byte, error) {
	rec, err := a.Ledger.Instance(ctx, v1alpha1.ObjectReference{
		APIVersion: k.GVK.GroupVersion().String(), Kind: k.GVK.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
	})
	if err != nil || !rec.Exists() {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"type": rec.Type, "provider": rec.Provider, "providerVersion": rec.ProviderVersion, "schemaVersion": rec.SchemaVersion,
		"attributes": rec.Attributes, "tainted": rec.Tainted, "dependencies": rec.Dependencies,
	})
}
