package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/loopback"
)

// Configs validates ProviderConfigs with their providers.
type Configs struct {
	Client  rest.Interface
	Core    rest.Interface
	Secrets *loopback.Configs
	Pool    *provider.Pool
	Catalog *catalog.Catalog
	Logger  *slog.Logger

	informer, secrets cache.SharedIndexInformer
	queue             *queue[cache.ObjectName]
}

func (c *Configs) start() {
	c.queue = newQueue("provider configuration", c.Logger, c.reconcile)
	c.informer = informer(c.Client, "providerconfigs", &v1alpha1.ProviderConfig{}, c.queue)
	// Only the names of Secrets matter here; check reads their values when needed.
	lw := cache.NewListWatchFromClient(c.Core, "secrets", metav1.NamespaceAll, fields.Everything())
	c.secrets = cache.NewSharedIndexInformer(lw, &corev1.Secret{}, 0, nil)
	_ = c.secrets.SetTransform(func(obj any) (any, error) {
		if s, ok := obj.(*corev1.Secret); ok {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace, ResourceVersion: s.ResourceVersion}}, nil
		}
		return obj, nil
	})
	touch := func(obj any) {
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			c.secretChanged(name)
		}
	}
	_, _ = c.secrets.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: touch, UpdateFunc: func(_, obj any) { touch(obj) }, DeleteFunc: touch})
}

// providerChanged validates the configurations of a provider again.
func (c *Configs) providerChanged(name string) {
	c.again(func(cfg *v1alpha1.ProviderConfig) bool { return cfg.Spec.Provider == name })
}

func (c *Configs) secretChanged(secret cache.ObjectName) {
	c.again(func(cfg *v1alpha1.ProviderConfig) bool {
		if cfg.Namespace != secret.Namespace {
			return false
		}
		for _, ref := range cfg.Spec.SecretRefs {
			if ref.Name == secret.Name {
				return true
			}
		}
		return false
	})
}

func (c *Configs) again(concerned func(*v1alpha1.ProviderConfig) bool) {
	for _, obj := range c.informer.GetStore().List() {
		if cfg, ok := obj.(*v1alpha1.ProviderConfig); ok && concerned(cfg) {
			c.queue.work.Add(cache.MetaObjectToName(cfg))
		}
	}
}

func (c *Configs) reconcile(ctx context.Context, name cache.ObjectName) error {
	cfg, ok, err := lookup[*v1alpha1.ProviderConfig](c.informer, name)
	if err != nil || !ok || cfg.DeletionTimestamp != nil {
		return err
	}
	reason, message := c.check(ctx, cfg)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.status(ctx, cfg, func(s *v1alpha1.ProviderConfigStatus) {
		s.ObservedGeneration = cfg.Generation
		switch reason {
		case v1alpha1.ReasonConfigured:
			condition.Ready(&s.Conditions, cfg.Generation, reason, message)
			return
		case v1alpha1.ReasonInstalling:
			condition.Reconciling(&s.Conditions, cfg.Generation, reason, message)
			return
		}
		condition.Stalled(&s.Conditions, cfg.Generation, reason, message)
	})
}

// check validates a ProviderConfig against the provider's schema, then with the provider. It has no other effect.
func (c *Configs) check(ctx context.Context, cfg *v1alpha1.ProviderConfig) (reason, message string) {
	var secrets plan.Secrets
	defer func() { message = secrets.Hide(message) }() // providers quote the values that they reject
	entry, ok := c.Catalog.Get(cfg.Spec.Provider)
	if !ok && c.installing(ctx, cfg.Spec.Provider) {
		return v1alpha1.ReasonInstalling, fmt.Sprintf("The provider %q is being installed.", cfg.Spec.Provider)
	}
	if !ok {
		return v1alpha1.ReasonProviderNotReady, fmt.Sprintf("The provider %q does not exist or is not ready; see kubectl describe provider %s.", cfg.Spec.Provider, cfg.Spec.Provider)
	}
	functions := c.Catalog.Signatures()
	if err := c.Catalog.CheckReferences(entry, cfg, functions); err != nil {
		return v1alpha1.ReasonConfigRefused, err.Error()
	}
	// The values of references are unknown here; only plans know them.
	conf, err := c.Catalog.Configuration(ctx, entry, cfg, catalog.Sources{Functions: functions, Secret: func(ctx context.Context, name, key string) ([]byte, error) {
		value, err := c.Secrets.Secret(ctx, cfg.Namespace, name, key)
		secrets.Add(string(value))
		return value, err
	}})
	secrets.AddBlock(entry.Schema.Config.Block, conf.Config)
	if _, ok := errors.AsType[*store.SecretError](err); ok {
		return v1alpha1.ReasonSecretNotFound, strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	if err != nil {
		return v1alpha1.ReasonConfigRefused, err.Error()
	}
	if _, err := c.Catalog.Meta(entry, cfg); err != nil {
		return v1alpha1.ReasonConfigRefused, err.Error()
	}
	said, err := c.Pool.ValidateConfig(ctx, entry.Package, conf.Config)
	if err != nil {
		return v1alpha1.ReasonProviderNotReady, err.Error()
	}
	diags := diag.FromProto(said)
	if diag.HasErrors(diags) {
		return v1alpha1.ReasonConfigRefused, catalog.ConfigDiagnostics(diags).Error()
	}
	text := []string{fmt.Sprintf("%s accepts the configuration.", entry.Package)}
	for _, d := range diags {
		text = append(text, "Warning: "+d.Summary+": "+d.Detail)
	}
	return v1alpha1.ReasonConfigured, strings.Join(text, "\n")
}

// installing reports whether a provider is being installed. When it is ready or fails, its configurations are checked
// again.
func (c *Configs) installing(ctx context.Context, name string) bool {
	p := &v1alpha1.Provider{}
	err := c.Client.Get().Resource("providers").Name(name).Do(ctx).Into(p)
	return err == nil && p.DeletionTimestamp == nil && !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStalled)
}

func (c *Configs) status(ctx context.Context, cfg *v1alpha1.ProviderConfig, change func(*v1alpha1.ProviderConfigStatus)) error {
	return ignoreNotFound(loopback.Update(ctx, c.Client, "providerconfigs", cfg.Namespace, cfg.Name, "status", func(fresh *v1alpha1.ProviderConfig) error {
		change(&fresh.Status)
		return nil
	}))
}
