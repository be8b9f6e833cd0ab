package activitiestest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FakeObjects implements store.Objects.
type FakeObjects struct{ World *World }

func (o FakeObjects) Key(ref v1alpha1.ObjectReference) string {
	return ref.Namespace + ":" + ref.Kind + "/" + ref.Name
}

// List returns the objects of a namespace, sorted.
func (o FakeObjects) List(namespace string) (list []*unstructured.Unstructured) {
	o.World.Mu.Lock()
	defer o.World.Mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(o.World.Stored)) {
		if obj := o.World.Stored[key]; obj.GetNamespace() == namespace {
			list = append(list, o.read(obj))
		}
	}
	return list
}

func (o FakeObjects) Get(_ context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	o.World.Mu.Lock()
	defer o.World.Mu.Unlock()
	obj := o.World.Stored[o.Key(ref)]
	if obj == nil || ref.UID != "" && obj.GetUID() != ref.UID {
		return nil, store.ErrGone
	}
	return o.read(obj), nil
}

func (o FakeObjects) GetSpec(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	obj, err := o.Get(ctx, ref)
	if err == nil {
		delete(obj.Object, "status")
	}
	return obj, err
}

// read returns a copy of an object with its resource version.
func (o FakeObjects) read(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := obj.DeepCopy()
	out.SetResourceVersion(strconv.FormatInt(o.World.Feed.revision(obj), 10))
	return out
}

func (o FakeObjects) Plural(ref v1alpha1.ObjectReference) (string, error) { return ref.Kind + "s", nil }

func (o FakeObjects) UpdateStatus(_ context.Context, ref v1alpha1.ObjectReference, _ *unstructured.Unstructured,
	change func(*unstructured.Unstructured) map[string]any) error {
	o.World.Mu.Lock()
	defer o.World.Mu.Unlock()
	obj := o.World.Stored[o.Key(ref)]
	if obj == nil || ref.UID != "" && obj.GetUID() != ref.UID {
		return store.ErrGone
	}
	obj.Object["status"] = change(obj.DeepCopy())
	return nil
}

// NewInstanceStatus implements store.Objects. The callers use UpdateStatus for all objects.
func (o FakeObjects) NewInstanceStatus(context.Context, *unstructured.Unstructured,
	func(*unstructured.Unstructured) map[string]any) (*store.InstanceStatus, error) {
	return nil, nil
}

func (o FakeObjects) AddFinalizer(_ context.Context,
	obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return obj, nil
}

func (o FakeObjects) RemoveFinalizer(_ context.Context, ref v1alpha1.ObjectReference) error {
	o.World.Mu.Lock()
	defer o.World.Mu.Unlock()
	o.World.Released = append(o.World.Released, ref.Name)
	return nil
}

// FakeConfigs implements store.Configs.
type FakeConfigs struct{ World *World }

func (c FakeConfigs) Get(_ context.Context, namespace, name string) (*v1alpha1.ProviderConfig, error) {
	c.World.Mu.Lock()
	defer c.World.Mu.Unlock()
	c.World.ConfigReads++
	return c.World.ProviderConfigs[namespace+"/"+name], nil
}

func (c FakeConfigs) Leaving(_ context.Context, cfg *v1alpha1.ProviderConfig) (string, error) {
	if cfg.DeletionTimestamp != nil {
		return fmt.Sprintf("the ProviderConfig %q", cfg.Name), nil
	}
	return "", nil
}

func (c FakeConfigs) Writers(_ context.Context, of store.Written) (store.Writers, bool, error) {
	return c.World.Wrote[of], true, nil
}

func (c FakeConfigs) Terminating(context.Context, string) (bool, error) {
	return c.World.Terminating, nil
}

func (c FakeConfigs) Secret(_ context.Context, namespace, name, key string) ([]byte, error) {
	value, ok := c.World.Data["secrets/"+namespace+"/"+name][key]
	if !ok {
		return nil, fmt.Errorf("the Secret %q has no key %q", name, key)
	}
	return value, nil
}

func (c FakeConfigs) ConfigMap(_ context.Context, namespace, name string) (map[string][]byte, error) {
	return c.World.Data["configmaps/"+namespace+"/"+name], nil
}

func (c FakeConfigs) ConfigMapNames(_ context.Context, namespace string) ([]string, error) {
	var names []string
	for key := range c.World.Data {
		if name, ok := strings.CutPrefix(key, "configmaps/"+namespace+"/"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func (c FakeConfigs) SecretData(_ context.Context, namespace, name string) (map[string][]byte, error) {
	return c.World.Data["secrets/"+namespace+"/"+name], nil
}

// FakeAccess implements store.Access. It allows everything that World.Forbidden does not forbid.
type FakeAccess struct{ World *World }

// May implements store.Access. A user who lacks the right to one object also lacks the right to all objects.
func (a FakeAccess) May(_ context.Context, who v1alpha1.Identity, right store.Right) (bool, error) {
	a.World.Mu.Lock()
	defer a.World.Mu.Unlock()
	key := right.Namespace + "/" + right.Resource + "/"
	if right.Verb != store.VerbGet && right.Verb != store.VerbUse {
		key = right.Verb + ":" + key
	}
	a.World.Asked = append(a.World.Asked, key+right.Name)
	for forbidden, is := range a.World.Forbidden {
		if !is {
			continue
		}
		if user, rest, of := strings.Cut(forbidden, "!"); of && user == who.Username {
			forbidden = rest
		}
		if name, ok := strings.CutPrefix(forbidden, key); ok && !strings.Contains(name, "/") &&
			(right.Name == "" || right.Name == name || name == "*") {
			return false, nil
		}
	}
	return true, nil
}

// FakePolicies implements store.Policies.
type FakePolicies struct{ World *World }

func (p FakePolicies) Of(context.Context, string) (*store.PlanPolicies, error) {
	p.World.Mu.Lock()
	defer p.World.Mu.Unlock()
	return &store.PlanPolicies{Policies: slices.Clone(p.World.Policies)}, nil
}

func (p FakePolicies) Earlier(context.Context, string, int) ([]v1alpha1.PlanRecord, error) {
	return nil, nil
}
