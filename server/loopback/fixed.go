package loopback

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/direct"
	"github.com/hykube/hykube/server/storage"
)

// NewClient returns a client for the kinds of hykube.io.
func NewClient(config *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("make client of %s: %w", v1alpha1.GroupName, err)
	}
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath = &v1alpha1.SchemeGroupVersion, "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make client of %s: %w", v1alpha1.GroupName, err)
	}
	return client, nil
}

// StoredPlans reads Plans and changes their status, as *registry.StoredPlans does.
type StoredPlans interface {
	// Get returns a plan, or a NotFound error.
	Get(ctx context.Context, namespace, name string) (*v1alpha1.Plan, error)
	// Cached returns a plan from memory, which may be a moment old, or a NotFound error. The caller must not change it.
	Cached(ctx context.Context, namespace, name string) (*v1alpha1.Plan, error)
	// UpdateStatus changes the status of a plan. It writes nothing if change returns direct.ErrUnchanged.
	UpdateStatus(ctx context.Context, namespace, name string, change func(*v1alpha1.Plan) error) error
}

// Plans accesses the Plan objects. It implements store.Plans.
type Plans struct {
	Stored StoredPlans
	// Client sends approvals, so that the audit log records them as those of users.
	Client rest.Interface
}

// Get implements store.Plans.
func (p *Plans) Get(ctx context.Context, namespace, name string, uid types.UID) (*v1alpha1.Plan, error) {
	plan, err := p.Stored.Get(ctx, namespace, name)
	if apierrors.IsNotFound(err) || err == nil && plan.UID != uid {
		return nil, store.ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("read plan %q: %w", name, err)
	}
	return plan, nil
}

// Cancelled implements store.Plans. It reads the cache, because each step of an apply calls it first, and a large plan
// is slow to read and decode.
func (p *Plans) Cancelled(ctx context.Context, namespace, name string, uid types.UID) (bool, error) {
	plan, err := p.Stored.Cached(ctx, namespace, name)
	if apierrors.IsNotFound(err) || err == nil && plan.UID != uid {
		plan, err = p.Get(ctx, namespace, name, uid)
	}
	if err != nil {
		return false, err
	}
	return plan.Status.Cancel != nil, nil
}

// UpdateStatus implements store.Plans.
func (p *Plans) UpdateStatus(ctx context.Context, namespace, name string, uid types.UID,
	change func(*v1alpha1.PlanStatus)) error {
	err := p.Stored.UpdateStatus(ctx, namespace, name, func(plan *v1alpha1.Plan) error {
		if plan.UID != uid {
			return store.ErrGone
		}
		before := plan.Status.DeepCopy()
		if change(&plan.Status); equality.Semantic.DeepEqual(before, &plan.Status) {
			return direct.ErrUnchanged
		}
		return nil
	})
	return asGone(err)
}

// Approve implements store.Plans.
func (p *Plans) Approve(ctx context.Context, namespace, name string, uid types.UID,
	approval v1alpha1.PlanApproval) error {
	return asGone(Update(ctx, p.Client, "plans", namespace, name, "approval", func(plan *v1alpha1.Plan) error {
		if plan.UID != uid {
			return store.ErrGone
		}
		plan.Status.Approval = &approval
		return nil
	}))
}

// asGone returns store.ErrGone for a NotFound error, and other errors unchanged.
func asGone(err error) error {
	if apierrors.IsNotFound(err) {
		return store.ErrGone
	}
	return err
}

// Update changes an object of hykube.io, or a subresource of it. It retries after a conflict and writes nothing if
// nothing changes.
func Update[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, client rest.Interface, resource, namespace, name, subresource string,
	change func(P) error) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		obj := P(new(T))
		if err := client.Get().NamespaceIfScoped(namespace,
			namespace != "").Resource(resource).Name(name).Do(ctx).Into(obj); err != nil {
			return err
		}
		before := obj.DeepCopyObject()
		if err := change(obj); err != nil || equality.Semantic.DeepEqual(before, runtime.Object(obj)) {
			return err
		}
		return client.Put().NamespaceIfScoped(namespace,
			namespace != "").Resource(resource).Name(name).SubResource(subresource).Body(obj).Do(ctx).Error()
	})
}

// StoredObjects reads objects from the storage; *storage.Objects implements it.
type StoredObjects interface {
	// Shared returns an object, or nil if there is none of that name.
	Shared(ctx context.Context, gr kschema.GroupResource, namespace, name string) (*storage.SharedObject, error)
}

// Configs accesses the ProviderConfigs, ConfigMaps and Secrets. It implements store.Configs.
type Configs struct {
	Core kubernetes.Interface
	// Stored reads objects without requests. So the audit log does not record these reads.
	Stored StoredObjects

	recorded recordedReads
}

// Get implements store.Configs. Each step of a plan asks for its ProviderConfig, so the storage answers without a
// request.
func (c *Configs) Get(ctx context.Context, namespace, name string) (*v1alpha1.ProviderConfig, error) {
	cfg := &v1alpha1.ProviderConfig{}
	found, err := readStored(ctx, c, v1alpha1.Resource("providerconfigs"), namespace, name, cfg)
	if err != nil || !found {
		return nil, err
	}
	return cfg, nil
}

// readStored reads an object from the storage. found is false if there is none of that name.
func readStored[T any, P interface {
	*T
	runtime.Object
	DeepCopyInto(*T)
}](ctx context.Context, c *Configs, gr kschema.GroupResource, namespace, name string, into P) (found bool, err error) {
	stored, err := c.Stored.Shared(ctx, gr, namespace, name)
	if err != nil || stored == nil {
		return false, err
	}
	return true, storage.Typed(stored, into)
}

// Leaving implements store.Configs.
func (c *Configs) Leaving(ctx context.Context, cfg *v1alpha1.ProviderConfig) (string, error) {
	stays := func(gr kschema.GroupResource, namespace, name string) (bool, error) {
		obj, err := c.Stored.Shared(ctx, gr, namespace, name)
		return obj != nil && obj.Object.GetDeletionTimestamp() == nil, err
	}
	if ok, err := stays(v1alpha1.Resource("providerconfigs"), cfg.Namespace, cfg.Name); err != nil || !ok {
		return fmt.Sprintf("the ProviderConfig %q", cfg.Name), err
	}
	for _, ref := range cfg.Spec.SecretRefs {
		if ok, err := stays(resourceOfCore("secrets"), cfg.Namespace, ref.Name); err != nil || !ok {
			return fmt.Sprintf("the Secret %q, which the ProviderConfig %q reads", ref.Name, cfg.Name), err
		}
	}
	for _, ref := range catalog.References(cfg) {
		if !ref.Stored() {
			continue
		}
		if ok, err := stays(resourceOfCore(ref.Type+"s"), cmp.Or(ref.Namespace, cfg.Namespace), ref.Name); err != nil ||
			!ok {
			return fmt.Sprintf("%s, which the ProviderConfig %q reads", ref.Address, cfg.Name), err
		}
	}
	return "", nil
}

// Writers implements store.Configs. Of a ConfigMap or Secret it reads the annotation alone, and no value.
func (c *Configs) Writers(ctx context.Context, of store.Written) (w store.Writers, found bool, err error) {
	if of.Kind == "ResourceSet" {
		set := &v1alpha1.ResourceSet{}
		found, err := readStored(ctx, c, v1alpha1.Resource("resourcesets"), of.Namespace, of.Name, set)
		w.List = set.Status.Contributors
		if from := set.Spec.ForEachFrom; from != nil {
			w.Keys = &from.ConfigMap
		}
		return w, found, err
	}
	if of.Kind == "Module" {
		m := &v1alpha1.Module{}
		found, err := readStored(ctx, c, v1alpha1.Resource("modules"), of.Namespace, of.Name, m)
		w.List, w.Files, w.Parts = m.Status.Contributors, m.Spec.Source.ConfigMap, m.Status.Writers
		return w, found, err
	}
	obj, err := c.Stored.Shared(ctx, resourceOfCore(strings.ToLower(of.Kind)+"s"), of.Namespace, of.Name)
	if err != nil || obj == nil {
		return w, false, err
	}
	w.List, err = contributor.DecodeKeys(obj.Object.GetAnnotations()[v1alpha1.AnnotationWriters])
	return w, true, err
}

// Terminating implements store.Configs.
func (c *Configs) Terminating(ctx context.Context, namespace string) (bool, error) {
	ns, err := c.Stored.Shared(ctx, resourceOfCore("namespaces"), "", namespace)
	if err != nil || ns == nil {
		return false, err
	}
	if condition.IsTrue(ns.Object, v1alpha1.ConditionUndeleting) {
		return false, fmt.Errorf("the deletion of the namespace %q is being taken back", namespace)
	}
	return ns.Object.GetDeletionTimestamp() != nil, nil
}

// ConfigMap implements store.Configs.
func (c *Configs) ConfigMap(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	cm := &corev1.ConfigMap{}
	found, err := readStored(ctx, c, resourceOfCore("configmaps"), namespace, name, cm)
	if err != nil || !found {
		return nil, err
	}
	data := make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for key, value := range cm.Data {
		data[key] = []byte(value)
	}
	maps.Copy(data, cm.BinaryData) // the API ensures that no key is in both
	return data, nil
}

// ConfigMapNames implements store.Configs.
func (c *Configs) ConfigMapNames(ctx context.Context, namespace string) ([]string, error) {
	list, err := c.Core.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{Limit: 1000})
	if err != nil {
		return nil, fmt.Errorf("list config maps: %w", err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// resourceOfCore returns a resource of the core group.
func resourceOfCore(name string) kschema.GroupResource { return kschema.GroupResource{Resource: name} }
