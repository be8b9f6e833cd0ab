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

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/loopback"
)

// maxKindsWait is the maximum time that a restarted server waits for the kinds that it served before. A plugin that
// hangs fails after a minute.
const maxKindsWait = 90 * time.Second

// Providers installs the plugins of Provider objects and serves their kinds.
type Providers struct {
	Client    rest.Interface
	Installer *provider.Installer
	Pool      *provider.Pool
	Catalog   *catalog.Catalog
	Kinds     *kinds.Kinds
	Schemas   Schemas
	// Containment is the policy of the pool.
	Containment *contain.Policy
	Logger      *slog.Logger
	// Grant adds the resources of a provider's API group to the roles view, edit and admin.
	Grant func(ctx context.Context, name string, resources []string) error
	// Objects returns the objects of a provider's kinds in all namespaces.
	Objects func(ctx context.Context, provider string) iter.Seq2[*unstructured.Unstructured, error]
	// Follows makes the controller of a worker, which installs what the server has chosen, and writes no status.
	Follows bool
	// Changed is called with the name of a provider that was added, changed or removed.
	Changed func(name string)

	informer cache.SharedIndexInformer
	queue    *queue[cache.ObjectName]
	ready    atomic.Bool

	mu sync.Mutex
	// tried holds the last attempt of each provider that this process has installed or rejected.
	tried map[string]attempt
}

// attempt is an attempt to install a provider. The next one follows a change of the spec or a restart, and also comes
// at a time if the package could not be found or fetched.
type attempt struct {
	spec v1alpha1.ProviderSpec
	// again is the time of the next attempt, after a pause; zero if a change must come first.
	again time.Time
	pause time.Duration
}

// Pauses between attempts to find and fetch a package. Each is twice the one before.
const (
	firstRetry = 10 * time.Second
	lastRetry  = 10 * time.Minute
)

func (p *Providers) start() {
	p.tried = map[string]attempt{}
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
	if p.Follows {
		return p.follow(ctx, obj)
	}
	p.mu.Lock()
	last, tried := p.tried[obj.Name]
	p.mu.Unlock()
	if tried && equality.Semantic.DeepEqual(last.spec, obj.Spec) &&
		(last.again.IsZero() || time.Now().Before(last.again)) {
		return p.observe(ctx, obj)
	}
	if !observed(obj) {
		if err := p.status(ctx, obj, func(s *v1alpha1.ProviderStatus) {
			condition.Reconciling(&s.Conditions, obj.Generation, v1alpha1.ReasonInstalling,
				"The server is finding, downloading and verifying the provider.")
		}); err != nil {
			return err
		}
	}
	pkg, sch, ierr := p.install(ctx, obj)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if ierr != nil {
		return p.keepOrFail(ctx, obj, pkg, ierr)
	}
	refused, err := p.missingTypes(ctx, obj, pkg, sch)
	if err != nil {
		return err
	}
	if refused == "" {
		return p.serve(ctx, obj, pkg, sch, nil)
	}
	p.Logger.Warn("upgrade provider", "provider", obj.Name, "error", refused)
	if pkg, sch, err = p.installed(ctx, obj, provider.Trust{Kept: true}); err != nil {
		return fmt.Errorf("%s The server cannot serve the old version either: %w", refused, err)
	}
	return p.serve(ctx, obj, pkg, sch, &refusal{reason: v1alpha1.ReasonUpgradeRefused, message: refused})
}

// follow installs the version that the server has installed, with the same checksum.
func (p *Providers) follow(ctx context.Context, obj *v1alpha1.Provider) error {
	now, served := p.Catalog.Get(obj.Name)
	if obj.Status.Checksum == "" || served && now.Package.Checksum == obj.Status.Checksum {
		return nil
	}
	pkg, sch, err := p.installed(ctx, obj, provider.Trust{Kept: true})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		p.Logger.Warn("install provider", "provider", obj.Name, "error", err)
		p.Catalog.Remove(obj.Name)
		p.retryLater(obj)
		p.Changed(obj.Name)
		return nil
	}
	p.Catalog.Put(catalog.Entry{Name: obj.Name, Package: pkg, Schema: sch})
	if err := p.Kinds.Set(kinds.Provider{Name: obj.Name, Source: pkg.Source.String(), Version: pkg.Version,
		Schema: sch}); err != nil {
		return err
	}
	p.markTried(obj)
	p.Changed(obj.Name)
	return nil
}

// refusal is the reason why the server does not use the version in the spec and continues with the installed one.
type refusal struct {
	reason, message string
	// err is the failed installation of the version in the spec; nil if it was installed.
	err error
}

// keepOrFail handles a provider that could not be installed. The server keeps another version that is installed if the
// new one was not found, could not be verified or returned no schema. The kept version met the requirements when it was
// installed.
func (p *Providers) keepOrFail(ctx context.Context, obj *v1alpha1.Provider, pkg provider.Package, why error) error {
	reason := v1alpha1.ReasonInstallFailed
	unverified, ok := errors.AsType[*provider.VerificationError](why)
	switch {
	case obj.Status.Version == "" || pkg.Version == obj.Status.Version || refusedSandbox(why):
		return p.fail(ctx, obj, pkg, why)
	case ok && unverified.Version == obj.Status.Version, !ok && (distrusted(why) || p.keepsInstalled(obj)):
		return p.fail(ctx, obj, pkg, why)
	case ok:
		reason = v1alpha1.ReasonUpgradeRefused
	case pkg.Version != "":
		reason = v1alpha1.ReasonSchemaFailed
	}
	old, sch, err := p.installed(ctx, obj, provider.Trust{Kept: true})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return p.fail(ctx, obj, pkg, errors.Join(why, err))
	}
	p.Logger.Warn("install provider", "provider", obj.Name, "error", why)
	message := fmt.Sprintf("%s. Version %s, which was installed before, continues.",
		strings.TrimSuffix(why.Error(), "."), old.Version)
	return p.serve(ctx, obj, old, sch, &refusal{reason, message, why})
}

// fail records why a provider could not be installed, and serves the kinds of its recorded schema.
func (p *Providers) fail(ctx context.Context, obj *v1alpha1.Provider, pkg provider.Package, why error) error {
	p.Logger.Warn("install provider", "provider", obj.Name, "error", why)
	message := why.Error()
	if served := p.serveRecorded(obj); served != "" {
		message = strings.TrimSuffix(message, ".") + ". " + served
	}
	if distrusted(why) {
		p.Catalog.Remove(obj.Name) // no plan may use it
	}
	if pkg.Version == "" && !refusedSandbox(why) && !distrusted(why) {
		p.retryLater(obj)
	} else {
		p.markTried(obj)
	}
	defer p.Changed(obj.Name)
	return p.status(ctx, obj, func(s *v1alpha1.ProviderStatus) {
		s.ObservedGeneration = obj.Generation
		s.Kinds = int32(len(p.Kinds.Kinds(obj.Name)))
		reason, installed := v1alpha1.ReasonInstallFailed, pkg.Version != ""
		switch {
		case refusedSandbox(why):
			reason = v1alpha1.ReasonSandboxRefused
			condition.Set(&s.Conditions, obj.Generation, v1alpha1.ConditionSandboxed, false, reason, message)
		case distrusted(why):
			reason = unverified(&s.Conditions, obj, why)
		case installed:
			reason = v1alpha1.ReasonSchemaFailed
		}
		condition.Set(&s.Conditions, obj.Generation, v1alpha1.ConditionInstalled, installed, reason, message)
		condition.Stalled(&s.Conditions, obj.Generation, reason, message)
	})
}

// serve serves the kinds of an installed provider. refused is the reason why the version in the spec is not used; nil
// without one.
func (p *Providers) serve(ctx context.Context, obj *v1alpha1.Provider, pkg provider.Package, sch *schema.Provider,
	refused *refusal) error {
	if refused == nil && (obj.Status.Checksum != pkg.Checksum || obj.Status.ObservedGeneration != obj.Generation ||
		!p.Schemas.has(obj.Name)) {
		r := record{Checksum: pkg.Checksum, Source: pkg.Source.String(), Version: pkg.Version,
			Constraint: obj.Spec.Version, Schema: sch}
		if err := p.Schemas.write(obj.Name, r); err != nil {
			p.Logger.Warn("install provider", "provider", obj.Name, "error", err)
		}
	}
	p.Catalog.Put(catalog.Entry{Name: obj.Name, Package: pkg, Schema: sch})
	if err := p.Kinds.Set(kinds.Provider{Name: obj.Name, Source: pkg.Source.String(), Version: pkg.Version,
		Schema: sch}); err != nil {
		return err
	}
	var resources []string
	for _, k := range p.Kinds.Kinds(obj.Name) {
		resources = append(resources, k.GVR.Resource)
	}
	if len(resources) > 0 { // a provider with functions only has no resources
		if err := p.Grant(ctx, obj.Name, resources); err != nil {
			return err
		}
	}
	if refused != nil && refused.reason == v1alpha1.ReasonInstallFailed {
		p.retryLater(obj)
	} else {
		p.markTried(obj)
	}
	p.Changed(obj.Name)
	return p.status(ctx, obj, func(s *v1alpha1.ProviderStatus) {
		s.ObservedGeneration = obj.Generation
		s.Version, s.Checksum, s.Protocol, s.Kinds = pkg.Version, pkg.Checksum, strconv.Itoa(sch.Protocol),
			int32(len(resources))
		s.ArchiveChecksum = pkg.Verification.Archive
		message := fmt.Sprintf("%s %s serves %d kinds in %s.", pkg.Source, pkg.Version, len(resources),
			v1alpha1.ProviderGroup(obj.Name))
		condition.Set(&s.Conditions, obj.Generation, v1alpha1.ConditionInstalled, true, v1alpha1.ReasonInstalled,
			message)
		if !pkg.Source.BuiltIn() {
			p.sandboxed(&s.Conditions, obj, pkg.Source.String())
			verified(&s.Conditions, obj.Generation, pkg.Verification)
		}
		if refused != nil {
			if refused.err != nil {
				reason := refused.reason
				if distrusted(refused.err) {
					reason = unverified(&s.Conditions, obj, refused.err)
				}
				condition.Set(&s.Conditions, obj.Generation, v1alpha1.ConditionInstalled, false, reason,
					refused.message)
			}
			condition.Stalled(&s.Conditions, obj.Generation, refused.reason, refused.message)
			return
		}
		condition.Ready(&s.Conditions, obj.Generation, v1alpha1.ReasonInstalled, message)
	})
}

// observed reports whether the status belongs to the current spec. A deletion increments the generation without
// changing the spec.
func observed(obj *v1alpha1.Provider) bool {
	return obj.Status.ObservedGeneration == obj.Generation || obj.DeletionTimestamp != nil
}

// observe records the generation of a provider whose spec is unchanged, as after a deletion or its reversal.
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

// serveRecorded serves the kinds of a provider that cannot be installed from its recorded schema, unless they are
// served already. The provider is not in the catalog, so no plan uses it. It returns a sentence for the message.
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
	return fmt.Sprintf("The server serves the kinds from the recorded schema of version %s. It cannot plan or apply them until the provider is installed.", r.Version)
}

// markTried records that this spec was installed or rejected.
func (p *Providers) markTried(obj *v1alpha1.Provider) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried[obj.Name] = attempt{spec: obj.Spec}
}

// retryLater records that the package of this spec could not be found or fetched, and tries again after a pause: a
// mirror may have it later.
func (p *Providers) retryLater(obj *v1alpha1.Provider) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := firstRetry
	if last := p.tried[obj.Name]; last.pause > 0 && equality.Semantic.DeepEqual(last.spec, obj.Spec) {
		pause = min(2*last.pause, lastRetry)
	}
	p.tried[obj.Name] = attempt{obj.Spec, time.Now().Add(pause), pause}
	p.queue.work.AddAfter(cache.ObjectName{Name: obj.Name}, pause)
}

// install resolves, fetches and verifies a provider, and reads its schema. If the returned package has a version, it
// was installed even if there is an error.
func (p *Providers) install(ctx context.Context, obj *v1alpha1.Provider) (provider.Package, *schema.Provider, error) {
	source, err := provider.ParseSource(obj.Spec.Source)
	if err != nil {
		return provider.Package{}, nil, err
	}
	if p.keepsInstalled(obj) {
		pkg, sch, err := p.installed(ctx, obj, trustOf(obj))
		// The checksums in a changed spec may belong to another version.
		if _, ok := errors.AsType[*provider.VerificationError](err); !ok || observed(obj) {
			return pkg, sch, err
		}
	}
	pkg, err := p.Installer.Install(ctx, source, obj.Spec.Version, trustOf(obj))
	if err != nil {
		return provider.Package{}, nil, err
	}
	return p.readSchema(ctx, obj, pkg)
}

// keepsInstalled reports whether the server keeps the installed version, even if there are newer versions now. It does
// not keep that version if it could not install the one in the spec before, because it tries that one again.
func (p *Providers) keepsInstalled(obj *v1alpha1.Provider) bool {
	return obj.Status.Checksum != "" && !upgradeRefused(obj) &&
		(observed(obj) && !stalled(obj) || p.constraintUnchanged(obj))
}

// constraintUnchanged reports whether the installed version was chosen for the current spec.version. Then another field
// of the spec has changed.
func (p *Providers) constraintUnchanged(obj *v1alpha1.Provider) bool {
	r, err := p.Schemas.read(obj.Name, obj.Status.Checksum)
	return err == nil && r.Constraint == obj.Spec.Version
}

// installed returns the package of the version in the status. It fails if the checksum differs, unless the spec lists
// the new one.
func (p *Providers) installed(ctx context.Context, obj *v1alpha1.Provider,
	trust provider.Trust) (provider.Package, *schema.Provider, error) {
	source, err := provider.ParseSource(obj.Spec.Source)
	if err != nil {
		return provider.Package{}, nil, err
	}
	pkg, err := p.Installer.Install(ctx, source, "= "+obj.Status.Version, trust)
	if err != nil {
		return provider.Package{}, nil, err
	}
	if pkg.Checksum != obj.Status.Checksum && !slices.Contains(obj.Spec.Checksums, pkg.Checksum) {
		return provider.Package{}, nil, &provider.VerificationError{Version: pkg.Version, Err: &provider.ChecksumError{
			What: fmt.Sprintf("provider %q", pkg), Want: obj.Status.Checksum + " (as at the installation)",
			Got:    pkg.Checksum,
			Remedy: "find out why its files changed, then remove its directory below the server's data directory, so that the server installs it again; to accept the changed files, add their checksum to spec.checksums",
		}}
	}
	return p.readSchema(ctx, obj, pkg)
}

// readSchema verifies the files of a package and reads its schema from the plugin.
func (p *Providers) readSchema(ctx context.Context, obj *v1alpha1.Provider,
	pkg provider.Package) (provider.Package, *schema.Provider, error) {
	if !pkg.Source.BuiltIn() {
		if err := pkg.Verify(); err != nil {
			return provider.Package{}, nil, err
		}
		pkg.Grants = grants(obj)
		if err := p.Containment.Check(pkg.Grants); err != nil {
			return pkg, nil, err
		}
	}
	sch, err := p.Pool.Schema(ctx, pkg)
	return pkg, sch, err
}

// missingTypes returns the reason why another version must not replace the installed one: it lacks types of existing
// objects, which would become inaccessible. It returns "" if there is none.
func (p *Providers) missingTypes(ctx context.Context, obj *v1alpha1.Provider, pkg provider.Package,
	sch *schema.Provider) (string, error) {
	if obj.Status.Version == "" || pkg.Version == obj.Status.Version {
		return "", nil
	}
	next := catalog.Entry{Name: obj.Name, Package: pkg, Schema: sch}
	count, example := 0, ""
	types := map[string]bool{}
	for u, err := range p.Objects(ctx, obj.Name) {
		if err != nil {
			return "", fmt.Errorf("find objects of types that %s lacks: %w", pkg, err)
		}
		// A managed type may look like a type of another mode if its provider's name is a mode, such as "data".
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
	return fmt.Sprintf("Version %s of the provider has no %s, but objects exist: %s. So version %s stays. Set spec.version back to %s. Then destroy or forget the objects (lifecycle.destroy: false), "+
		"or move them to another type with lifecycle.moved. Then set the new version again.",
		pkg.Version, strings.Join(slices.Sorted(maps.Keys(types)), ", "), example, obj.Status.Version,
		obj.Status.Version), nil
}

// upgradeRefused reports whether the version in the spec was rejected because of missing types or its verification, and
// the installed one continues.
func upgradeRefused(obj *v1alpha1.Provider) bool {
	return v1alpha1.TrueReason(obj.Status.Conditions, v1alpha1.ConditionStalled) == v1alpha1.ReasonUpgradeRefused
}

// stalled reports whether an earlier attempt to install the provider failed.
func stalled(obj *v1alpha1.Provider) bool {
	return v1alpha1.TrueReason(obj.Status.Conditions, v1alpha1.ConditionStalled) != ""
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
	return ignoreNotFound(loopback.Update(ctx, p.Client, "providers", "", obj.Name, "status",
		func(fresh *v1alpha1.Provider) error {
			change(&fresh.Status)
			return nil
		}))
}

// ignoreNotFound returns nil if the object does not exist, else err.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Ready returns an error until the kinds of the providers are served again after a start.
func (p *Providers) Ready() error {
	if p.ready.Load() {
		return nil
	}
	return errors.New("the server does not serve the providers' kinds yet")
}

// awaitKinds waits until every provider that served kinds before the start was installed or rejected, at most
// maxKindsWait. It does not wait for other providers. Afterwards, requests for kinds that are not served get 503
// instead of 404.
func (p *Providers) awaitKinds(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, maxKindsWait)
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
				p.Logger.Warn("the server accepts requests, but a provider is not ready and its kinds are missing",
					"provider", provider.Name)
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
