package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/ledger"
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
	Pool    validator
	Catalog *catalog.Catalog
	Ledger  *ledger.Ledger
	Logger  *slog.Logger

	informer, secrets cache.SharedIndexInformer
	queue             *queue[cache.ObjectName]
}

// validator makes a provider validate its configuration. It returns an *provider.UnavailableError if the process was
// lost during the call.
type validator interface {
	ValidateConfig(ctx context.Context, pkg provider.Package, config cty.Value) ([]*tfprotov6.Diagnostic, error)
}

func (c *Configs) start() {
	c.queue = newQueue("provider configuration", c.Logger, c.reconcile)
	c.informer = informer(c.Client, "providerconfigs", &v1alpha1.ProviderConfig{}, c.queue)
	// Only the names of Secrets matter here; check reads their values when needed.
	lw := cache.NewListWatchFromClient(c.Core, "secrets", metav1.NamespaceAll, fields.Everything())
	c.secrets = cache.NewSharedIndexInformer(lw, &corev1.Secret{}, 0, nil)
	_ = c.secrets.SetTransform(func(obj any) (any, error) {
		if s, ok := obj.(*corev1.Secret); ok {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace,
				ResourceVersion: s.ResourceVersion}}, nil
		}
		return obj, nil
	})
	touch := func(obj any) {
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			c.secretChanged(name)
		}
	}
	_, _ = c.secrets.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: touch,
		UpdateFunc: func(_, obj any) { touch(obj) }, DeleteFunc: touch})
}

// providerChanged validates the configurations of a provider again.
func (c *Configs) providerChanged(name string) {
	c.enqueue(func(cfg *v1alpha1.ProviderConfig) bool { return cfg.Spec.Provider == name })
}

// secretChanged validates the configurations that take values from a Secret again.
func (c *Configs) secretChanged(secret cache.ObjectName) {
	c.enqueue(func(cfg *v1alpha1.ProviderConfig) bool { return reads(cfg, secret) })
}

// reads reports whether a ProviderConfig takes a value from a Secret.
func reads(cfg *v1alpha1.ProviderConfig, secret cache.ObjectName) bool {
	return cfg.Namespace == secret.Namespace && slices.ContainsFunc(cfg.Spec.SecretRefs,
		func(ref v1alpha1.SecretArgument) bool { return ref.Name == secret.Name })
}

// readers returns the names of the ProviderConfigs that take a value from a Secret.
func (c *Configs) readers(secret cache.ObjectName) (names []string) {
	for _, cfg := range inNamespace[*v1alpha1.ProviderConfig](c.informer.GetIndexer(), secret.Namespace) {
		if reads(cfg, secret) {
			names = append(names, cfg.Name)
		}
	}
	return names
}

func (c *Configs) enqueue(concerned func(*v1alpha1.ProviderConfig) bool) {
	for _, obj := range c.informer.GetStore().List() {
		if cfg, ok := obj.(*v1alpha1.ProviderConfig); ok && concerned(cfg) {
			c.queue.work.Add(cache.MetaObjectToName(cfg))
		}
	}
}

func (c *Configs) reconcile(ctx context.Context, name cache.ObjectName) error {
	cfg, ok, err := lookup[*v1alpha1.ProviderConfig](c.informer, name)
	switch {
	case err == nil && !ok:
		return c.Ledger.ForgetAccounts(ctx, name.Namespace, name.Name)
	case err != nil || cfg.DeletionTimestamp != nil:
		return err
	}
	reason, message, retry := c.check(ctx, cfg)
	if ctx.Err() != nil || reason == "" {
		return cmp.Or(ctx.Err(), retry)
	}
	err = c.status(ctx, cfg, func(s *v1alpha1.ProviderConfigStatus) {
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
	return cmp.Or(err, retry)
}

// check validates a ProviderConfig against the provider's schema, then with the provider. It has no other effect. It
// returns an error if the queue must try again. The reason is then empty if check could not read an object, and
// ProviderNotReady if the provider's process was lost.
func (c *Configs) check(ctx context.Context, cfg *v1alpha1.ProviderConfig) (reason, message string, err error) {
	var secrets plan.Secrets
	defer func() { message = secrets.Hide(message) }() // providers quote the values that they reject
	entry, ok := c.Catalog.Get(cfg.Spec.Provider)
	if !ok {
		return c.whyNotReady(ctx, cfg.Spec.Provider)
	}
	functions := c.Catalog.Signatures()
	if err := c.Catalog.CheckReferences(ctx, entry, cfg, functions); err != nil {
		return v1alpha1.ReasonConfigRefused, err.Error(), nil
	}
	var unread error
	// The values of references are unknown here; only plans know them.
	conf, err := c.Catalog.Configuration(ctx, entry, cfg,
		catalog.Sources{Functions: functions, Secret: func(ctx context.Context, name, key string) ([]byte, error) {
			value, err := c.Secrets.Secret(ctx, cfg.Namespace, name, key)
			if _, missing := errors.AsType[*store.SecretError](err); !missing {
				unread = cmp.Or(unread, err)
			}
			secrets.Add(string(value))
			return value, err
		}})
	if unread != nil {
		return "", "", unread
	}
	secrets.AddBlock(entry.Schema.Config.Block, conf.Config)
	if _, ok := errors.AsType[*store.SecretError](err); ok {
		return v1alpha1.ReasonSecretNotFound, strings.ReplaceAll(err.Error(), "\n", "; "), nil
	}
	if err != nil {
		return v1alpha1.ReasonConfigRefused, err.Error(), nil
	}
	if _, err := c.Catalog.Meta(ctx, entry, cfg); err != nil {
		return v1alpha1.ReasonConfigRefused, err.Error(), nil
	}
	answer, err := c.Pool.ValidateConfig(ctx, entry.Package, conf.Config)
	if _, lost := errors.AsType[*provider.UnavailableError](err); lost {
		return v1alpha1.ReasonProviderNotReady, err.Error(), err
	}
	if err != nil {
		return v1alpha1.ReasonProviderNotReady, err.Error(), nil
	}
	diags := diag.FromProto(answer)
	if diag.HasErrors(diags) {
		return v1alpha1.ReasonConfigRefused, catalog.ConfigDiagnostics(diags).Error(), nil
	}
	text := []string{fmt.Sprintf("%s accepts the configuration.", entry.Package)}
	for _, d := range diags {
		text = append(text, "Warning: "+d.Summary+": "+d.Detail)
	}
	return v1alpha1.ReasonConfigured, strings.Join(text, "\n"), nil
}

// whyNotReady returns the reason and message for a provider that is not in the catalog. When the provider is ready or
// fails, its configurations are checked again.
func (c *Configs) whyNotReady(ctx context.Context, name string) (reason, message string, err error) {
	p := &v1alpha1.Provider{}
	err = c.Client.Get().Resource("providers").Name(name).Do(ctx).Into(p)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return "", "", fmt.Errorf("read provider %q: %w", name, err)
	case err == nil && p.DeletionTimestamp == nil && !meta.IsStatusConditionTrue(p.Status.Conditions,
		v1alpha1.ConditionStalled):
		return v1alpha1.ReasonInstalling, fmt.Sprintf("The provider %q is being installed.", name), nil
	}
	return v1alpha1.ReasonProviderNotReady,
		fmt.Sprintf("The provider %q does not exist or is not ready; see kubectl describe provider %s.", name, name),
		nil
}

func (c *Configs) status(ctx context.Context, cfg *v1alpha1.ProviderConfig,
	change func(*v1alpha1.ProviderConfigStatus)) error {
	return ignoreNotFound(loopback.Update(ctx, c.Client, "providerconfigs", cfg.Namespace, cfg.Name, "status",
		func(fresh *v1alpha1.ProviderConfig) error {
			change(&fresh.Status)
			return nil
		}))
}
