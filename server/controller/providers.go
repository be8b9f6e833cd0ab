package controller

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/loopback"
)

// settleLimit bounds how long a server that starts again waits for the kinds that it served before. A plugin that hangs is refused
// after a minute.
const settleLimit = 90 * time.Second

// Providers installs the plugins of Provider objects and serves their kinds.
type Providers struct {
	Client    rest.Interface
	Installer *provider.Installer
	Pool      *provider.Pool
	Catalog   *catalog.Catalog
	Kinds     *kinds.Kinds
	Schemas   Schemas
	Logger    *slog.Logger
	// Grant lets the roles view, edit and admin reach the resources of a provider's API group.
	Grant func(ctx context.Context, name string, resources []string) error
	// Objects lists the objects of a provider's kinds, in all namespaces.
	Objects func(ctx context.Context, provider string) iter.Seq2[*unstructured.Unstructured, error]
	// Changed is called with the name of a provider that came, changed or went.
	Changed func(name string)

	informer cache.SharedIndexInformer
	queue    *queue[cache.ObjectName]
	ready    atomic.Bool

	mu sync.Mutex
	// tried holds the spec of each provider that this process installed or refused: a refused one is tried again after a
	// change or a restart.
	tried map[string]v1alpha1.ProviderSpec
}

func (p *Providers) start() {
	p.tried = map[string]v1alpha1.ProviderSpec{}
	p.queue = newQueue("provider", p.Logger, p.reconcile)
	p.informer = informer(p.Client, "providers", &v1alpha1.Provider{}, p.queue)
}

func (p *Providers) reconcile(ctx context.Context, name cache.ObjectName) error {
	obj, ok, err := lookup[*v1alpha1.Provider](p.informer, name)
	if err != nil {
		return err
	}
	if !ok {
		p.remove(name.Name)
		return nil
	}
	p.mu.Lock()
	spec, tried := p.tried[obj.Name]
	p.mu.Unlock()
	if tried && spec == obj.Spec {
		return p.observe(ctx, obj)
	}
	if !observed(obj) {
		if err := p.status(ctx, obj, func(s *v1alpha1.ProviderStatus) {
			condition.Reconciling(&s.Conditions, obj.Generation, v1alpha1.ReasonInstalling, "The provider is being resolved, fetched and verified.")
		}); err != nil {
			return err
		}
	}
	pkg, sch, ierr := p.install(ctx, obj)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if ierr != nil {
		return p.fail(ctx, obj, pkg, ierr)
	}
	refused, err := p.orphans(ctx, obj, pkg, sch)
	if err != nil {
		return err
	}
	if refused != "" {
		p.Logger.Warn("upgrade provider", "provider", obj.Name, "error", refused)
		if pkg, sch, err = p.installed(ctx, obj); err != nil {
			return fmt.Errorf("%s And the old one cannot be served: %w", refused, err)
		}
	}
	return p.serve(ctx, obj, pkg, sch, refused)
}

// fail records why a provider could not be installed, and serves the kinds that it had.
func (p *Providers) fail(ctx context.Context, obj *v1alpha1.Provider, pkg provider.Package, why error) error {
	p.Logger.Warn("install provider", "provider", obj.Name, "error", why)
	message := why.Error()
	if served := p.serveRecorded(obj); served != "" {
		message = strings.TrimSuffix(message, ".") + ". " + served
	}
	p.settle(obj)
	defer p.Changed(obj.Name)
	return p.status(ctx, obj, func(s *v1alpha1.ProviderStatus) {
		s.ObservedGeneration = obj.Generation
		s.Kinds = int32(len(p.Kinds.Kinds(obj.Name)))
		reason, installed := v1alpha1.ReasonInstallFailed, pkg.Version != ""
		if installed {
			reason = v1alpha1.ReasonSchemaFailed
		}
		condition.Set(&s.Conditions, obj.Generation, v1alpha1.ConditionInstalled, installed, reason, message)
		condition.Stalled(&s.Conditions, obj.Generation, reason, message)
	})
}

// serve serves the kinds of an installed provider. refused says why a newer version is not used; empty when there is none.
func (p *Providers) serve(ctx context.Context, obj *v1alpha1.Provider, pkg provider.Package, sch *schema.Provider, refused string) error {
	if obj.Status.Checksum != pkg.Checksum || !p.Schemas.has(obj.Name) {
		if err := p.Schemas.write(obj.Name, record{Checksum: pkg.Checksum, Source: pkg.Source.String(), Version: pkg.Version, Schema: sch}); err != nil {
			p.Logger.Warn("install provider", "provider", obj.Name, "error", err)
		}
	}
	p.Catalog.Put(catalog.Entry{Name: obj.Name, Package: pkg, Schema: sch})
	if err := p.Kinds.Set(kinds.Provider{Name: obj.Name, Source: pkg.Source.String(), Version: pkg.Version, Schema: sch}); err != nil {
		return err
	}
	var resources []string
	for _, k := range p.Kinds.Kinds(obj.Name) {
		resources = append(resources, k.GVR.Resource)
	}
	if len(resources) > 0 { // a provider of functions alone has nothing to grant
		if err := p.Grant(ctx, obj.Name, resources); err != nil {
			return err
		}
	}
	p.settle(obj)
	p.Changed(obj.Name)
	return p.status(ctx, obj, func(s *v1alpha1.ProviderStatus) {
		s.ObservedGeneration = obj.Generation
		s.Version, s.Checksum, s.Protocol, s.Kinds = pkg.Version, pkg.Checksum, strconv.Itoa(sch.Protocol), int32(len(resources))
		message := fmt.Sprintf("%s %s serves %d kinds in %s.", pkg.Source, pkg.Version, len(resources), v1alpha1.ProviderGroup(obj.Name))
		condition.Set(&s.Conditions, obj.Generation, v1alpha1.ConditionInstalled, true, v1alpha1.ReasonInstalled, message)
		if refused != "" {
			condition.Stalled(&s.Conditions, obj.Generation, v1alpha1.ReasonUpgradeRefused, refused)
			return
		}
		condition.Ready(&s.Conditions, obj.Generation, v1alpha1.ReasonInstalled, message)
	})
}

// observed says whether the status is about the spec. A deletion raises the generation, and changes no spec.
func observed(obj *v1alpha1.Provider) bool {
	return obj.Status.ObservedGeneration == obj.Generation || obj.DeletionTimestamp != nil
}

// observe notes the generation of a provider whose spec is as before: it was deleted, or its deletion was taken back.
func (p *Providers) observe(ctx context.Context, obj *v1alpha1.Provider) error {
	if obj.Status.ObservedGeneration == obj.Generation {
		return nil
	}
	return p.status(ctx, obj, func(s *v1alpha1.ProviderStatus) {
		s.ObservedGeneration = obj.Generation
		for i := range s.Conditions {
			s.Conditions[i].ObservedGeneration = obj.Generation
		}
	})
}

// serveRecorded serves the kinds of a provider that cannot be installed from the schema that was recorded when it was, unless they
// are served. Nothing puts it into the catalog, so nothing is planned with it. It returns a sentence that says so.
func (p *Providers) serveRecorded(obj *v1alpha1.Provider) string {
	if obj.Status.Checksum == "" || len(p.Kinds.Kinds(obj.Name)) > 0 {
		return ""
	}
	r, err := p.Schemas.read(obj.Name, obj.Status.Checksum)
	if err == nil {
		err = p.Kinds.Set(kinds.Provider{Name: obj.Name, Source: r.Source, Version: r.Version, Schema: r.Schema})
	}
	if err != nil {
		p.Logger.Warn("serve kinds of a provider that is not installed", "provider", obj.Name, "error", err)
		return ""
	}
	return fmt.Sprintf("The server serves its kinds as version %s had them. Nothing of them can be planned or applied until the provider is installed.", r.Version)
}

// settle remembers that this spec of the provider was installed or refused.
func (p *Providers) settle(obj *v1alpha1.Provider) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried[obj.Name] = obj.Spec
}

// install resolves, fetches and verifies a provider, and asks it for its schema. A package whose version is set was installed,
// whatever the error says.
func (p *Providers) install(ctx context.Context, obj *v1alpha1.Provider) (provider.Package, *schema.Provider, error) {
	source, err := provider.ParseSource(obj.Spec.Source)
	if err != nil {
		return provider.Package{}, nil, err
	}
	if observed(obj) && obj.Status.Checksum != "" && !upgradeRefused(obj) {
		// What was installed once stays, whatever newer versions there are now.
		return p.installed(ctx, obj)
	}
	pkg, err := p.Installer.Install(ctx, source, obj.Spec.Version)
	if err != nil {
		return provider.Package{}, nil, err
	}
	return p.verified(ctx, pkg)
}

// installed is the version that the status says, which must be what it was then.
func (p *Providers) installed(ctx context.Context, obj *v1alpha1.Provider) (provider.Package, *schema.Provider, error) {
	source, err := provider.ParseSource(obj.Spec.Source)
	if err != nil {
		return provider.Package{}, nil, err
	}
	pkg, err := p.Installer.Install(ctx, source, "= "+obj.Status.Version)
	if err != nil {
		return provider.Package{}, nil, err
	}
	if pkg.Checksum != obj.Status.Checksum {
		return provider.Package{}, nil, fmt.Errorf("verify provider %q: its checksum is %s, and %s was recorded when it was installed: its files changed. Find out why, then remove its directory below the server's data directory, so that the server installs it again",
			pkg, pkg.Checksum, obj.Status.Checksum)
	}
	return p.verified(ctx, pkg)
}

// verified asks a package for its schema once its files are what was fetched.
func (p *Providers) verified(ctx context.Context, pkg provider.Package) (provider.Package, *schema.Provider, error) {
	if err := pkg.Verify(); err != nil {
		return provider.Package{}, nil, err
	}
	sch, err := p.Pool.Schema(ctx, pkg)
	return pkg, sch, err
}

// orphans says why another version of a provider cannot take the place of the one that is installed: it lacks types that there
// are objects of, which nobody could see, plan or delete any more. It is empty when nothing speaks against it.
func (p *Providers) orphans(ctx context.Context, obj *v1alpha1.Provider, pkg provider.Package, sch *schema.Provider) (string, error) {
	if obj.Status.Version == "" || pkg.Version == obj.Status.Version {
		return "", nil
	}
	next := catalog.Entry{Name: obj.Name, Package: pkg, Schema: sch}
	count, example := 0, ""
	types := map[string]bool{}
	for u, err := range p.Objects(ctx, obj.Name) {
		if err != nil {
			return "", fmt.Errorf("look for objects of types that %s has not: %w", pkg, err)
		}
		// A managed type of a provider that is called like a mode, such as "data", looks like one of that mode.
		mode, t := v1alpha1.ParseKind(u.GetKind())
		if next.Type(mode, t) != nil || next.Type(v1alpha1.ModeManaged, v1alpha1.TypeOf(u.GetKind())) != nil {
			continue
		}
		if types[u.GetKind()] = true; count == 0 {
			example = fmt.Sprintf("%s/%s in the namespace %q", u.GetKind(), u.GetName(), u.GetNamespace())
		}
		count++
	}
	if count == 0 {
		return "", nil
	}
	if count > 1 {
		example += fmt.Sprintf(" and %d more", count-1)
	}
	return fmt.Sprintf("Version %s of the provider has no %s, and there is %s, so version %s stays. Destroy or forget them (lifecycle.destroy: false), "+
		"or write lifecycle.moved into what takes over, with the old version: set spec.version back to %s. Then set it to the new one again.",
		pkg.Version, strings.Join(slices.Sorted(maps.Keys(types)), ", "), example, obj.Status.Version, obj.Status.Version), nil
}

// upgradeRefused says whether the version that the spec asks for was refused for its types.
func upgradeRefused(obj *v1alpha1.Provider) bool {
	return v1alpha1.TrueReason(obj.Status.Conditions, v1alpha1.ConditionStalled) == v1alpha1.ReasonUpgradeRefused
}

func (p *Providers) remove(name string) {
	p.mu.Lock()
	delete(p.tried, name)
	p.mu.Unlock()
	p.Kinds.Remove(name)
	p.Catalog.Remove(name)
	if err := p.Schemas.remove(name); err != nil {
		p.Logger.Warn("remove provider", "error", err)
	}
	p.Changed(name)
}

func (p *Providers) status(ctx context.Context, obj *v1alpha1.Provider, change func(*v1alpha1.ProviderStatus)) error {
	return ignoreNotFound(loopback.Update(ctx, p.Client, "providers", "", obj.Name, "status", func(fresh *v1alpha1.Provider) error {
		change(&fresh.Status)
		return nil
	}))
}

// ignoreNotFound returns nil for an object that is gone.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Ready says which providers' kinds are not served again yet after a start.
func (p *Providers) Ready() error {
	if p.ready.Load() {
		return nil
	}
	return errors.New("the providers' kinds are not served yet")
}

// settled waits until every provider that served kinds before the start was installed or refused, but no longer than settleLimit.
// One that never served any keeps nobody waiting. Requests for kinds that are not served after that get 503, not 404.
func (p *Providers) settled(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for _, obj := range p.informer.GetStore().List() {
		provider, ok := obj.(*v1alpha1.Provider)
		if !ok || provider.Status.Checksum == "" {
			continue
		}
		p.Kinds.Expect(provider.Name)
		for ok && limit.Err() == nil && !p.known(provider.Name) {
			select {
			case <-time.After(20 * time.Millisecond):
				_, ok, _ = p.informer.GetStore().Get(provider)
			case <-limit.Done():
				p.Logger.Warn("the server takes requests without the kinds of a provider that is not ready", "provider", provider.Name)
			}
		}
	}
	p.ready.Store(ctx.Err() == nil)
}

func (p *Providers) known(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.tried[name]
	return known
}
