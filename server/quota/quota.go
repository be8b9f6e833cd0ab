// Package quota enforces ResourceQuotas: it configures Kubernetes' quota admission, which charges a create to
// status.used, and counts again after writes, as Kubernetes' quota controller does. It knows no kind but Plan.
package quota

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quotaconfig "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	kquota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	// countDelay is the time from a write until its namespace is counted. The writes in between share the count.
	countDelay = 500 * time.Millisecond
	// evaluators is the number of namespaces whose creates are admitted at once.
	evaluators = 4
	// pauseRatio is the ratio of the pause after a count to the duration of the count.
	pauseRatio = 20
)

// named are the resources that a quota may also name without "count/".
var named = []corev1.ResourceName{corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourceQuotas}

// NewAdmission returns Kubernetes' quota admission for objects of all kinds. Any kind can be counted, as
// count/PLURAL.GROUP, except events and the records of plans, which the server itself writes and removes.
func NewAdmission(client kubernetes.Interface, factory informers.SharedInformerFactory,
	drained <-chan struct{}) (*resourcequota.QuotaAdmission, error) {
	plugin, err := resourcequota.NewResourceQuota(&quotaconfig.Configuration{}, evaluators)
	if err != nil {
		return nil, err
	}
	plugin.SetDrainedNotification(drained)
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(factory)
	var known []kquota.Evaluator
	for _, name := range named {
		known = append(known, generic.NewObjectCountEvaluator(corev1.Resource(string(name)), nil, name))
	}
	plugin.SetQuotaConfiguration(generic.NewConfiguration(known, map[schema.GroupResource]struct{}{
		corev1.Resource("events"): {}, {Group: "events.k8s.io", Resource: "events"}: {},
		v1alpha1.Resource("planrecords"): {},
	}))
	if err := plugin.ValidateInitialization(); err != nil {
		return nil, err
	}
	return plugin, nil
}

// CountFunc returns the number of objects of a resource in a namespace. It returns false if it does not know the
// resource; then the number in the status stays.
type CountFunc func(ctx context.Context, resource schema.GroupResource,
	namespace string) (n int64, known bool, err error)

// Counter keeps status.used of all ResourceQuotas. The admission charges a create before it is stored, so a failed
// create and a delete need a new count.
type Counter struct {
	client kubernetes.Interface
	lister listers.ResourceQuotaLister
	synced cache.InformerSynced
	log    *slog.Logger

	mu      sync.Mutex
	changed map[string]bool
	wake    chan struct{}
}

// NewCounter returns a Counter that counts a namespace after Changed.
func NewCounter(client kubernetes.Interface, factory informers.SharedInformerFactory,
	log *slog.Logger) (*Counter, error) {
	quotas := factory.Core().V1().ResourceQuotas()
	c := &Counter{
		client: client, lister: quotas.Lister(), synced: quotas.Informer().HasSynced, log: log,
		changed: map[string]bool{}, wake: make(chan struct{}, 1),
	}
	// At the start every quota is added, so a count follows each crash.
	_, err := quotas.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.Changed(obj.(*corev1.ResourceQuota).Namespace) },
		UpdateFunc: func(old, obj any) {
			if q := obj.(*corev1.ResourceQuota); !equality.Semantic.DeepEqual(old.(*corev1.ResourceQuota).Spec,
				q.Spec) {
				c.Changed(q.Namespace)
			}
		},
	})
	return c, err
}

// Changed notes that an object of a namespace was created or deleted, or that a plan changed.
func (c *Counter) Changed(namespace string) {
	if quotas, err := c.lister.ResourceQuotas(namespace).List(labels.Everything()); err != nil || len(quotas) == 0 {
		return
	}
	c.mu.Lock()
	c.changed[namespace] = true
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run counts until ctx ends. Call it when the kinds of all providers are served.
func (c *Counter) Run(ctx context.Context, count CountFunc) {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return
	}
	pause := countDelay
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		start := time.Now()
		c.countAll(ctx, count)
		pause = max(countDelay, pauseRatio*time.Since(start))
	}
}

func (c *Counter) countAll(ctx context.Context, count CountFunc) {
	c.mu.Lock()
	changed := c.changed
	c.changed = map[string]bool{}
	c.mu.Unlock()
	for namespace := range changed {
		quotas, err := c.lister.ResourceQuotas(namespace).List(labels.Everything())
		for _, q := range quotas {
			if err = c.update(ctx, q.Namespace, q.Name, count); err != nil {
				break
			}
		}
		if err != nil && ctx.Err() == nil {
			c.log.Debug("cannot count the objects of a namespace; the server tries again", "namespace", namespace,
				"error", err)
			c.Changed(namespace)
		}
	}
}

// update counts the objects that a quota limits, and writes its status if that changes.
func (c *Counter) update(ctx context.Context, namespace, name string, count CountFunc) error {
	q, err := c.client.CoreV1().ResourceQuotas(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	used := corev1.ResourceList{}
	for limited := range q.Spec.Hard {
		resource, ok := counted(limited)
		if !ok || len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
			continue // as in Kubernetes, only pods have scopes
		}
		n, known, err := count(ctx, resource, namespace)
		if err != nil {
			return err
		}
		if !known {
			before := q.Status.Used[limited]
			n = before.Value()
		}
		used[limited] = *kresource.NewQuantity(n, kresource.DecimalSI)
	}
	if equality.Semantic.DeepEqual(q.Status.Hard, q.Spec.Hard) && equality.Semantic.DeepEqual(q.Status.Used, used) {
		return nil
	}
	q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: used}
	// A create that the admission charged in the meantime makes this a conflict.
	_, err = c.client.CoreV1().ResourceQuotas(namespace).UpdateStatus(ctx, q, metav1.UpdateOptions{})
	return err
}

// counted returns the resource that a name in a quota limits.
func counted(name corev1.ResourceName) (schema.GroupResource, bool) {
	if slices.Contains(named, name) {
		return corev1.Resource(string(name)), true
	}
	full, ok := strings.CutPrefix(string(name), "count/")
	return schema.ParseGroupResource(full), ok
}
