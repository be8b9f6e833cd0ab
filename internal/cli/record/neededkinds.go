package record

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/terminal"
	"github.com/hykube/hykube/internal/suggest"
)

// kindWait is the maximum wait for the kinds of a ready provider.
const kindWait = 15 * time.Second

// awaitKind waits for a kind of a provider that has just become ready.
func (r *Recorder) awaitKind(ctx context.Context,
	gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	provider, _ := v1alpha1.ProviderOfGroup(gvk.Group)
	deadline := time.Now().Add(kindWait)
	for {
		r.mu.Lock()
		r.Mapper.Reset()
		gvr, namespaced, err := r.Mapping(gvk)
		r.mu.Unlock()
		if err == nil || !r.Installed[provider] || r.served(gvk.GroupVersion()) || time.Now().After(deadline) {
			return gvr, namespaced, err
		}
		session.Pause(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return gvr, namespaced, ctx.Err()
		}
	}
}

// served reports whether a group serves any kind. Then a missing kind will not appear.
func (r *Recorder) served(gv schema.GroupVersion) bool {
	l, err := r.Discovery.ServerResourcesForGroupVersion(gv.String())
	return err == nil && len(l.APIResources) > 0
}

// UnknownKind returns the error for an unknown kind, with the existing kinds.
func (r *Recorder) UnknownKind(ctx context.Context, m manifest.Manifest, cause error) error {
	gvk := m.Object.GroupVersionKind()
	if !meta.IsNoMatchError(cause) {
		return fmt.Errorf("%s: find kind %q: %w", m.Where(), gvk.Kind, r.Explain(cause))
	}
	head := fmt.Sprintf("%s: unknown kind %q in %q", m.Where(), gvk.Kind, gvk.GroupVersion())
	provider, ours := v1alpha1.ProviderOfGroup(gvk.Group)
	if !ours {
		return fmt.Errorf("%s: this server serves no such kind; `kubectl api-resources` lists them all", head)
	}
	if l, err := r.Discovery.ServerResourcesForGroupVersion(v1alpha1.ProviderGroup(provider) + "/" +
		v1alpha1.ResourceVersion); err == nil && len(l.APIResources) > 0 {
		var names []string
		for _, k := range l.APIResources {
			if !strings.Contains(k.Name, "/") {
				names = append(names, k.Kind)
			}
		}
		if gvk.Version != v1alpha1.ResourceVersion {
			return fmt.Errorf("%s: write apiVersion: %s/%s", head, gvk.Group, v1alpha1.ResourceVersion)
		}
		if near := suggest.Nearest(v1alpha1.KindOf(gvk.Kind), names); near != "" {
			return fmt.Errorf("%s: did you mean %q? `kubectl hykube provider schema %s` lists the kinds of provider %q",
				head, near, provider, provider)
		}
		return fmt.Errorf("%s: provider %q has no such resource type; `kubectl hykube provider schema %s` lists those that it has", head, provider, provider)
	}
	list := &v1alpha1.ProviderList{}
	if err := r.Hykube.Get().Resource("providers").Do(ctx).Into(list); err != nil {
		return fmt.Errorf("%s: no provider %q is ready", head, provider)
	}
	var names []string
	for _, p := range list.Items {
		if p.Name == provider {
			return fmt.Errorf("%s: provider %q isn't ready: %s", head, provider, ConditionText(p.Status.Conditions))
		}
		names = append(names, p.Name)
	}
	installed := "none is installed"
	if len(names) > 0 {
		installed = "installed are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("%s: no provider is named %q (%s). Add this document before it:\n  apiVersion: %s\n  kind: Provider\n  metadata: {name: %s}\n  spec: {source: NAMESPACE/%s}",
		head, provider, installed, v1alpha1.SchemeGroupVersion, provider, provider)
}

// AwaitProviders waits until the providers of the files are ready and serve their kinds.
func (r *Recorder) AwaitProviders(ctx context.Context, ms []manifest.Manifest) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	for _, m := range ms {
		name := m.Object.GetName()
		if err := r.awaitProvider(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", m.Where(), err)
		}
		r.Installed[name] = true
	}
	return nil
}

func (r *Recorder) awaitProvider(ctx context.Context, name string) error {
	said, began := false, time.Now()
	for {
		p := &v1alpha1.Provider{}
		if err := r.Hykube.Get().Resource("providers").Name(name).Do(ctx).Into(p); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("provider %q isn't ready after %s: `kubectl describe provider %s` shows why", name,
					terminal.Elapsed(time.Since(began)), name)
			}
			return fmt.Errorf("get provider %q: %w", name, r.Explain(err))
		}
		current := p.Status.ObservedGeneration >= p.Generation
		switch {
		case current && meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady):
			if said {
				fmt.Fprintf(r.ErrOut, "Provider %q is ready: version %s, %d kinds.\n", name, p.Status.Version,
					p.Status.Kinds)
			}
			return nil
		case current && meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStalled):
			return fmt.Errorf("provider %q can't be installed: %s", name, ConditionText(p.Status.Conditions))
		}
		if !said && time.Since(began) > 300*time.Millisecond {
			said = true
			fmt.Fprintf(r.ErrOut, "Waiting for provider %q (%s) to be installed...\n", name, p.Spec.Source)
		}
		r.awaitChange(ctx, p)
	}
}

// awaitChange returns after a provider has changed, or after a second. The caller checks the provider itself.
func (r *Recorder) awaitChange(ctx context.Context, p *v1alpha1.Provider) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	w, err := r.Hykube.Get().Resource("providers").VersionedParams(&metav1.ListOptions{
		FieldSelector: "metadata.name=" + p.Name, ResourceVersion: p.ResourceVersion, Watch: true,
	}, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		session.Pause(ctx, 100*time.Millisecond)
		return
	}
	defer w.Stop()
	select {
	case <-w.ResultChan():
	case <-ctx.Done():
	}
}

// ConditionText returns the message of the condition that explains why an object is not ready.
func ConditionText(conditions []metav1.Condition) string {
	order := []string{v1alpha1.ConditionStalled, v1alpha1.ConditionInstalled, v1alpha1.ConditionReady}
	for _, t := range order {
		if c := meta.FindStatusCondition(conditions, t); c != nil && c.Message != "" {
			return c.Message
		}
	}
	return "the server has not processed it yet"
}
