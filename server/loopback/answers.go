package loopback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/storage"
)

// Answers answers requests of the API from the ledger.
type Answers struct {
	Ledger *ledger.Ledger
	Stored *storage.Objects
	// Client reads ProviderConfigs and Plans; nil if there are none.
	Client rest.Interface
	// Kinds resolves the references of objects; nil if there are none.
	Kinds *kinds.Kinds
	// Modules has the resources of Modules; nil if there are none without infrastructure.
	Modules interface {
		// ModuleAt returns the Module with a name; nil if there is none.
		ModuleAt(ctx context.Context, namespace, name string) (*resourceset.Module, error)
	}
}

// SaveObjects stores a chunk of the objects of a speculative plan. After the last chunk, it returns the number of
// uploaded objects.
func (a *Answers) SaveObjects(ctx context.Context, plan types.UID, chunk int32, docs []ledger.Document,
	last bool) (uploaded int, err error) {
	if err := a.Ledger.SaveDocuments(ctx, plan, chunk, docs); err != nil || !last {
		return 0, err
	}
	for _, err := range a.Ledger.Documents(ctx, plan) {
		if err != nil {
			return 0, err
		}
		uploaded++
	}
	return uploaded, nil
}

// Taint sets or removes the mark that makes the next plan replace an object's infrastructure. applied is true if the
// current generation is applied.
func (a *Answers) Taint(ctx context.Context, obj metav1.Object, k kinds.Kind, tainted bool) (applied bool, err error) {
	verb := map[bool]string{true: "taint", false: "untaint"}[tainted]
	refuse := func(format string, args ...any) (bool, error) {
		return false, apierrors.NewConflict(k.GVR.GroupResource(), obj.GetName(),
			fmt.Errorf("%s: %s", verb, fmt.Sprintf(format, args...)))
	}
	rec, err := a.record(ctx, obj, k)
	switch {
	case err != nil:
		return false, err
	case rec.Intent != nil:
		return refuse("a change of it is running, or its outcome is unknown; see the object's conditions, and try again when the change has ended")
	case !rec.Exists():
		err := apierrors.NewNotFound(k.GVR.GroupResource(), obj.GetName())
		err.ErrStatus.Message = fmt.Sprintf("%s %q has no infrastructure, so there is nothing to %s; a plan creates it",
			k.GVK.Kind, obj.GetName(), map[bool]string{true: "replace", false: "keep"}[tainted])
		return false, err
	case rec.Tainted == tainted:
		return isApplied(obj, rec, obj.GetGeneration()), nil
	}
	rec.Tainted = tainted
	if err := a.Ledger.Save(ctx, rec); errors.Is(err, ledger.ErrConflict) {
		return refuse("a plan is changing it; try again when the plan has ended")
	} else if err != nil {
		return false, err
	}
	return isApplied(obj, rec, obj.GetGeneration()), nil
}

// isApplied reports whether a generation of an object is the last applied one, and the object has no taint, drift or
// deposed instance.
func isApplied(obj metav1.Object, rec *ledger.Instance, generation int64) bool {
	u, ok := obj.(*unstructured.Unstructured)
	return ok && rec.Exists() && !rec.Tainted && len(rec.Deposed) == 0 && rec.Object.Generation == generation &&
		!condition.IsTrue(u, v1alpha1.ConditionDrifted)
}

func (a *Answers) record(ctx context.Context, obj metav1.Object, k kinds.Kind) (*ledger.Instance, error) {
	return a.Ledger.Instance(ctx, v1alpha1.ObjectReference{
		APIVersion: k.GVK.GroupVersion().String(), Kind: k.GVK.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
		UID: obj.GetUID(),
	})
}

// defaultChanges is the default length of a page of changes.
const defaultChanges = 500

// Changes returns a page of a plan's changes. The ledger stores them masked.
func (a *Answers) Changes(ctx context.Context, p *v1alpha1.Plan, limit int,
	cont string) (*v1alpha1.PlanChangeList, error) {
	from := int64(0)
	if cont != "" {
		var err error
		if from, err = strconv.ParseInt(cont, 10, 32); err != nil || from < 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the continue token %q is not that of an earlier page",
				cont))
		}
	}
	if limit <= 0 {
		limit = defaultChanges
	}
	list := &v1alpha1.PlanChangeList{Items: []v1alpha1.PlanChange{}}
	list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("PlanChangeList"))
	page, err := a.Ledger.ChangesPage(ctx, p.UID, int32(from), limit+1)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) { // a plan may have no changes
		return nil, err
	}
	if len(page) > limit {
		list.Continue = strconv.Itoa(int(page[limit].Index))
		page = page[:limit]
	}
	for _, c := range page {
		c.PlanChange.Sequence = c.Revision()
		list.Items = append(list.Items, c.PlanChange)
	}
	return list, nil
}

// State returns the raw provider state for the subresource "state", including secrets. It returns nil if there is none.
func (a *Answers) State(ctx context.Context, obj metav1.Object, k kinds.Kind) ([]byte, error) {
	rec, err := a.record(ctx, obj, k)
	if err != nil || !rec.Living() && len(rec.Quarantine) == 0 {
		return nil, err
	}
	state := instanceState(&rec.State)
	state["provider"], state["mode"] = rec.Provider, k.Mode
	var deposed []map[string]any
	for i := range rec.Deposed {
		d := instanceState(&rec.Deposed[i].State)
		d["key"] = rec.Deposed[i].Key
		deposed = append(deposed, d)
	}
	if deposed != nil {
		state["deposed"] = deposed
	}
	return json.Marshal(state)
}

// instanceState returns one instance for users who may see secrets.
func instanceState(s *ledger.State) map[string]any {
	m := map[string]any{
		"type": s.Type, "providerVersion": s.ProviderVersion, "schemaVersion": s.SchemaVersion,
		"attributes": s.Attributes, "tainted": s.Tainted, "dependencies": s.Dependencies,
	}
	if s.Identity != nil {
		m["identity"], m["identityVersion"] = s.Identity, s.IdentityVersion
	}
	if s.Quarantine != nil {
		m["quarantine"] = s.Quarantine
	}
	return m
}
