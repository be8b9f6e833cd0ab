package activities

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/ledger/ledgertest"
	"github.com/hykube/hykube/internal/store"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

type crashObjects struct {
	activitiestest.FakeObjects
	scenario *crashScenario
}

func (o crashObjects) Get(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	if err := o.scenario.injector.alive(); err != nil {
		return nil, err
	}
	return o.FakeObjects.Get(ctx, ref)
}

func (o crashObjects) GetSpec(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	if err := o.scenario.injector.alive(); err != nil {
		return nil, err
	}
	return o.FakeObjects.GetSpec(ctx, ref)
}

func (o crashObjects) UpdateStatus(ctx context.Context, ref v1alpha1.ObjectReference, known *unstructured.Unstructured, change func(*unstructured.Unstructured) map[string]any) error {
	return o.scenario.injector.does(func() error {
		o.scenario.statusWrites.Add(1)
		return o.FakeObjects.UpdateStatus(ctx, ref, known, change)
	})
}

// NewInstanceStatus returns the status of an instance of a ResourceSet. The store of the scenario sets what is written.
func (o crashObjects) NewInstanceStatus(ctx context.Context, known *unstructured.Unstructured, change func(*unstructured.Unstructured) map[string]any) (*store.InstanceStatus, error) {
	if known.Object[v1alpha1.FieldInstance] == nil {
		return nil, nil
	}
	status, err := o.World.Ledger.Status(ctx, ledger.StatusKey{Namespace: "team", Set: "s", UID: known.GetUID()})
	if err == nil {
		status.Value, err = json.Marshal(change(known.DeepCopy()))
	}
	if meanwhile := o.scenario.ending; meanwhile != nil {
		o.scenario.ending = nil
		meanwhile()
	}
	return &store.InstanceStatus{Namespace: "team", Set: "s", UID: known.GetUID(), Value: status.Value, Revision: status.Revision, Written: func() {}}, err
}

func (o crashObjects) AddFinalizer(_ context.Context, read *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return read, o.scenario.injector.does(func() error {
		o.World.Mu.Lock()
		defer o.World.Mu.Unlock()
		obj := o.World.Stored["team:"+read.GetKind()+"/"+read.GetName()]
		if obj == nil || obj.GetUID() != read.GetUID() || obj.GetGeneration() != read.GetGeneration() || obj.GetDeletionTimestamp() != nil {
			return store.ErrGone
		}
		obj.SetFinalizers([]string{v1alpha1.FinalizerState})
		return nil
	})
}

func (o crashObjects) RemoveFinalizer(_ context.Context, ref v1alpha1.ObjectReference) error {
	return o.scenario.injector.does(func() error {
		o.World.Mu.Lock()
		defer o.World.Mu.Unlock()
		obj := o.World.Stored[o.Key(ref)]
		if obj == nil || obj.GetUID() != ref.UID {
			return nil
		}
		obj.SetFinalizers(nil)
		if obj.GetDeletionTimestamp() != nil {
			delete(o.World.Stored, o.Key(ref))
		}
		return nil
	})
}

type crashPlans struct{ scenario *crashScenario }

func (p crashPlans) Get(_ context.Context, _, name string, _ types.UID) (*v1alpha1.Plan, error) {
	if err := p.scenario.injector.alive(); err != nil {
		return nil, err
	}
	po := p.scenario.plans.get(name)
	if po == nil {
		return nil, store.ErrGone
	}
	return po.DeepCopy(), nil
}

func (p crashPlans) Cancelled(ctx context.Context, namespace, name string, uid types.UID) (bool, error) {
	po, err := p.Get(ctx, namespace, name, uid)
	return err == nil && po.Status.Cancel != nil, err
}

func (p crashPlans) UpdateStatus(_ context.Context, _, name string, _ types.UID, change func(*v1alpha1.PlanStatus)) error {
	return p.scenario.injector.does(func() error {
		if !p.scenario.plans.change(name, func(po *v1alpha1.Plan) { change(&po.Status) }) {
			return store.ErrGone
		}
		return nil
	})
}

func (p crashPlans) Approve(context.Context, string, string, types.UID, v1alpha1.PlanApproval) error {
	// No user has the right to approve here.
	return apierrors.NewForbidden(v1alpha1.Resource("plans"), "p", errors.New("no right"))
}

// crashStore is a store that fails when the server is killed.
type crashStore struct {
	*ledgertest.KV
	injector *crashInjector
	world    *activitiestest.World
}

func (s crashStore) Get(ctx context.Context, key string) ([]byte, int64, error) {
	if err := s.injector.alive(); err != nil {
		return nil, 0, err
	}
	return s.KV.Get(ctx, key)
}

func (s crashStore) Put(ctx context.Context, key string, value []byte, revision int64) (now int64, err error) {
	err = s.injector.does(func() (err error) {
		now, err = s.KV.Put(ctx, key, value, revision)
		return err
	})
	return now, err
}

func (s crashStore) Delete(ctx context.Context, key string, revision int64) error {
	return s.injector.does(func() error { return s.KV.Delete(ctx, key, revision) })
}

func (s crashStore) Batch(ctx context.Context, writes []ledger.Write) (revisions []int64, err error) {
	err = s.injector.does(func() (err error) {
		if revisions, err = s.KV.Batch(ctx, writes); err != nil {
			return err
		}
		return s.setStatuses(writes)
	})
	return revisions, err
}

func (s crashStore) Persist(ctx context.Context, writes []ledger.Write, _ bool) ([]int64, error) {
	return s.Batch(ctx, writes)
}

// setStatuses gives the instances of ResourceSets the statuses that were written.
func (s crashStore) setStatuses(writes []ledger.Write) error {
	s.world.Mu.Lock()
	defer s.world.Mu.Unlock()
	for _, w := range writes {
		uid, ok := strings.CutPrefix(w.Key, "statuses/team/s/")
		for _, obj := range s.world.Stored {
			if !ok || string(obj.GetUID()) != uid {
				continue
			}
			var status map[string]any
			if err := utiljson.Unmarshal(w.Value, &status); err != nil {
				return err
			}
			obj.Object["status"] = status
		}
	}
	return nil
}

func (s crashStore) DeletePrefix(ctx context.Context, prefix string) error {
	return s.injector.does(func() error { return s.KV.DeletePrefix(ctx, prefix) })
}

func (s crashStore) List(ctx context.Context, prefix, after string, limit int) ([]ledger.Entry, error) {
	if err := s.injector.alive(); err != nil {
		return nil, err
	}
	return s.KV.List(ctx, prefix, after, limit)
}
