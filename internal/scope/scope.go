package scope

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/internal/suggest"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/types"
)

// Scope provides the values for expressions. It is safe for concurrent use, and all resources of a plan can share it.
// Ephemeral resources that it opens stay open until Close.
type Scope struct {
	*Sources
	// requester checks the rights of the plan's requester, which limit what the scope reads. It is nil if there is no
	// requester.
	requester *store.Asker
	// approvers check the rights of the plan's approvers, except its requester. It is empty during planning.
	approvers []*store.Asker
	// writers check the rights of the users who wrote the evaluated object, which need the rights to the secrets that
	// it reveals or sends without an approval. unknown is true if the server did not record all of them.
	writers   []*store.Asker
	unknown   bool
	namespace string
	// planned returns the planned value of a resource. It is nil during an apply, when no value may be unknown.
	planned           func(lang.Address) (cty.Value, bool)
	providerFunctions func() lang.Functions
	// Decoder decodes the referenced resources.
	Decoder *resource.Decoder
	// plan is the plan whose expressions are evaluated; nil without one. who is the requester; nil without one.
	plan *v1alpha1.Plan
	who  *v1alpha1.Identity
	// Home is the namespace of the evaluated object; empty for the scope's own.
	Home string
	// pending reports whether the value of a resource is unknown, because its change is not made; nil for none.
	pending func(lang.Address) bool
	// inModule is true while named values of a Module are evaluated. The server has not checked the rights of those who
	// wrote the files of the Module.
	inModule bool
	// outputs are those of Modules that are being evaluated; each depends on the next.
	outputs []lang.Address
	// openChain lists the ephemeral resources that are being opened; each depends on the next.
	openChain []lang.Address

	*scopeCache
}

// scopeCache holds the values that a scope has read, and the ephemeral resources that it has opened.
type scopeCache struct {
	mu sync.Mutex
	// data caches the ConfigMaps and Secrets that the scope has read.
	data map[lang.Address]cty.Value
	// sets caches the ResourceSets by the addresses of their templates; nil for an address without one.
	sets map[lang.Address]*resourceset.Set
	// configs caches the ProviderConfigs; nil means that there is none of the name. readingConfig guards it.
	configs       map[types.NamespacedName]*v1alpha1.ProviderConfig
	readingConfig sync.Mutex
	// secretDigests caches the results of SecretsOf.
	secretDigests map[string]string
	// open holds the values of the open ephemeral resources.
	open map[lang.Address]cty.Value
	// Secrets holds the secret texts that providers receive and may quote.
	Secrets *plan.Secrets
	// Hashes holds the results of bcrypt(), which the step stores with its change.
	Hashes map[string]string
	// Approved has the approved arguments of the ProviderConfigs of a step, by their names. The scope configures no
	// provider with others. Nil means that no approval binds them.
	Approved map[string]ledger.Arguments
	// closers close the open ephemeral resources, in the order in which they were opened.
	closers []func(context.Context) error
	// opening is locked while ephemeral resources are opened, so that each is opened once.
	opening sync.Mutex
}

// NewScope returns the scope for the resources of a namespace. planned returns the planned value of a resource. It is
// nil during an apply, which uses recorded values only.
func (a *Sources) NewScope(po *v1alpha1.Plan, namespace string, planned func(lang.Address) (cty.Value, bool)) *Scope {
	s := a.ScopeOf(po.Status.RequestedBy, namespace, planned)
	s.plan = po
	if planned == nil {
		s.approvers = a.ApproversOf(po)
	}
	return s
}

// ScopeOf is NewScope for a user without a plan.
func (a *Sources) ScopeOf(who *v1alpha1.Identity, namespace string,
	planned func(lang.Address) (cty.Value, bool)) *Scope {
	return &Scope{
		Sources: a, requester: a.askerOf(who), who: who, namespace: namespace, planned: planned,
		providerFunctions: sync.OnceValue(a.providerFunctions), Decoder: resource.NewDecoder(a.Catalog),
		scopeCache: &scopeCache{data: map[lang.Address]cty.Value{}, sets: map[lang.Address]*resourceset.Set{},
			configs: map[types.NamespacedName]*v1alpha1.ProviderConfig{}, secretDigests: map[string]string{},
			open: map[lang.Address]cty.Value{}, Secrets: new(plan.Secrets), Hashes: map[string]string{}},
	}
}

// Before returns the scope for an evaluation before changes on which the values depend. pending reports whether an
// address is that of such a change; its value is unknown.
func (s *Scope) Before(pending func(lang.Address) bool) *Scope {
	inner := *s
	inner.pending = pending
	return &inner
}

// Functions returns the functions of the installed providers.
func (s *Scope) Functions() lang.Functions { return s.providerFunctions() }

// EvaluationContext returns the context in which the expressions of an object are evaluated. During planning, the
// results of impure functions that only the apply defines are unknown. The evaluation ends with ctx.
func (s *Scope) EvaluationContext(ctx context.Context, r *resource.Resource) (lang.EvaluationContext, error) {
	each, err := s.instanceOf(ctx, r)
	if err != nil {
		return lang.EvaluationContext{}, err
	}
	functions, err := s.functionsFor(ctx, r)
	m := lang.EvaluationContext{Functions: functions, Budget: lang.BudgetOf(ctx), Instance: each,
		Module: r.Address.Module}
	if s.plan == nil || err != nil {
		return m, err
	}
	m.Planned = s.plan.CreationTimestamp.Time
	if at := s.plan.Spec.Timestamp; at != nil {
		m.Planned = at.Time
	}
	if approval := s.plan.Status.Approval; s.planned == nil && approval != nil && approval.At != nil {
		m.Applied, m.Seed, m.Hashes = approval.At.Time, string(s.plan.UID)+"/"+string(r.Ref.UID), s.Hashes
	}
	return m, nil
}

// functionsFor returns the functions that expressions of an object may call. Those of a Module may read its files.
func (s *Scope) functionsFor(ctx context.Context, r *resource.Resource) (lang.Functions, error) {
	if r.Address.Module == "" || r.Deleting {
		return s.Functions(), nil
	}
	addr := r.Address
	addr.Namespace = r.Ref.Namespace
	m, err := s.moduleOf(ctx, addr)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(m.Expansion.Functions())
	maps.Copy(out, s.Functions()) // the expansion has only signatures of these
	return out, nil
}

// Value returns the value of an address. ok is false if there is none.
func (s *Scope) Value(ctx context.Context, addr lang.Address) (v cty.Value, ok bool, err error) {
	addr = s.relative(addr)
	if addr.Named() {
		return s.named(ctx, addr)
	}
	if err := s.mayRefer(ctx, addr); err != nil {
		return cty.NilVal, false, err
	}
	if v, ok, err = s.found(ctx, addr); err != nil || !ok {
		return v, ok, err
	}
	if v, err = s.withOrigin(addr, v); err == nil {
		v, err = s.guarded(ctx, addr, v)
	}
	return v, err == nil, err
}

// relative returns an address of an evaluated object as the scope knows it: without its own namespace.
func (s *Scope) relative(addr lang.Address) lang.Address {
	if addr.Namespace == "" {
		addr.Namespace = s.Home
	}
	return addr.In(s.namespace)
}

// withOrigin marks the secrets of an object's value with the object. All of a Secret is secret, also the names of its
// keys.
func (s *Scope) withOrigin(addr lang.Address, v cty.Value) (cty.Value, error) {
	if v == cty.NilVal {
		return v, nil
	}
	if addr.Stored() && addr.Type == lang.TypeSecret {
		return v.WithMarks(cty.NewValueMarks(lang.Sensitive, s.originOf(addr, ""))), nil
	}
	return lang.MarkOrigin(v, s.originOf(addr, ""))
}

// originOf returns the origin of the values of an address, which is relative to the scope's namespace.
func (s *Scope) originOf(addr lang.Address, key string) lang.Origin {
	if addr.Namespace == "" {
		addr.Namespace = s.namespace
	}
	return lang.Origin{Address: addr, Key: key}
}

// found returns the planned, read or recorded value, without the restrictions of guarded. The address is relative to
// the scope's namespace.
func (s *Scope) found(ctx context.Context, addr lang.Address) (v cty.Value, ok bool, err error) {
	if addr.Namespace == "" && s.planned != nil {
		if v, ok := s.planned(addr); ok {
			return v, true, nil
		}
	}
	if addr.Namespace == "" && s.pending != nil && s.pending(addr) {
		return cty.DynamicVal, true, nil
	}
	switch {
	case addr.Stored():
		v, err = s.Keys(ctx, addr)
		return v, err == nil, err
	case addr.Mode == v1alpha1.ModeEphemeral:
		return s.ephemeral(ctx, addr)
	case addr.Mode == v1alpha1.ModeAction:
		return cty.NilVal, false, nil // an action has no value
	}
	if gone, err := s.leftSet(ctx, addr); err != nil || gone {
		return cty.NilVal, false, err
	}
	return s.recorded(ctx, addr)
}

// recorded returns the recorded value of a resource or data source, or the value of a ResourceSet.
func (s *Scope) recorded(ctx context.Context, addr lang.Address) (v cty.Value, ok bool, err error) {
	found := false
	for r, err := range s.Resources(ctx, addr) {
		if err != nil {
			return cty.NilVal, false, err
		}
		found = true
		rec, err := s.Ledger.Instance(ctx, r.Ref)
		if err != nil {
			return cty.NilVal, false, err
		}
		if !rec.Exists() {
			continue
		}
		if v, err = instance.Recorded(&rec.State, r.Schema); err != nil {
			return cty.NilVal, false, fmt.Errorf("%s: %w", addr, err)
		}
		return lang.MarkSensitive(r.Schema.Block, v), true, nil
	}
	if !found {
		return s.set(ctx, addr)
	}
	if addr.Namespace != "" {
		return cty.NilVal, false, &AbsentError{fmt.Sprintf(
			"%s has no values yet: apply a plan in the namespace %q first", addr, addr.Namespace)}
	}
	return cty.NilVal, false, nil
}

// Resources returns the objects with an address: one for each provider that has the type. The requester needs the right
// to read objects of other namespaces.
func (s *Scope) Resources(ctx context.Context, addr lang.Address) func(yield func(*resource.Resource, error) bool) {
	return func(yield func(*resource.Resource, error) bool) {
		var refused error
		found := false
		for _, provider := range s.Catalog.ProvidersOf(addr.Mode, addr.Type) {
			ref := v1alpha1.ObjectReference{
				APIVersion: v1alpha1.ProviderGroup(provider) + "/" + v1alpha1.ResourceVersion, Kind: addr.Kind(),
				Namespace: s.namespace, Name: addr.ObjectName(),
			}
			if addr.Namespace != "" {
				ref.Namespace = addr.Namespace
				plural, err := s.Objects.Plural(ref)
				if err != nil {
					yield(nil, err)
					return
				}
				what := store.Right{Namespace: addr.Namespace, Group: v1alpha1.ProviderGroup(provider),
					Resource: plural, Name: addr.ObjectName()}
				if err := s.MayRead(ctx, what); err != nil {
					if !IsForbidden(err) {
						yield(nil, err)
						return
					}
					refused = err
					continue
				}
			}
			obj, err := s.Objects.Get(ctx, ref)
			if errors.Is(err, store.ErrGone) {
				continue
			}
			var r *resource.Resource
			if err == nil {
				r, err = s.Decoder.Decode(obj)
			}
			found = true
			if !yield(r, err) || err != nil {
				return
			}
		}
		if !found && refused != nil {
			yield(nil, refused)
		}
	}
}

// Keys returns a ConfigMap or Secret as an object of its keys. Values that are not text are base64, as in kubectl.
func (s *Scope) Keys(ctx context.Context, addr lang.Address) (cty.Value, error) {
	s.mu.Lock()
	v, known := s.data[addr]
	s.mu.Unlock()
	if known {
		return v, nil
	}
	namespace := addr.Namespace
	if namespace == "" {
		namespace = s.namespace
	}
	resource, read := "configmaps", s.Configs.ConfigMap
	if addr.Type == lang.TypeSecret {
		resource, read = "secrets", s.Configs.SecretData
	}
	if err := s.MayRead(ctx, store.Right{Namespace: namespace, Resource: resource, Name: addr.Name}); err != nil {
		return cty.NilVal, fmt.Errorf("%s: %w", addr, err)
	}
	data, err := read(s.onBehalf(ctx), namespace, addr.Name)
	if err != nil {
		return cty.NilVal, fmt.Errorf("%s: %w", addr, err)
	}
	if data == nil {
		hint, err := s.missingDataRemedy(ctx, addr.In(s.Home), namespace)
		if err != nil {
			return cty.NilVal, fmt.Errorf("%s: %w", addr, err)
		}
		return cty.NilVal, fmt.Errorf("%s: %w", addr,
			&AbsentError{fmt.Sprintf("there is no %s %q in the namespace %q%s", addr.Kind(), addr.Name, namespace,
				hint)})
	}
	vals := make(map[string]cty.Value, len(data))
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text := string(data[key])
		if !utf8.ValidString(text) {
			text = base64.StdEncoding.EncodeToString(data[key])
		}
		vals[key] = cty.StringVal(text)
		if addr.Type == lang.TypeSecret {
			vals[key] = vals[key].WithMarks(cty.NewValueMarks(lang.Sensitive, s.originOf(addr, key)))
		}
	}
	v = cty.ObjectVal(vals)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data[addr] = v
	return v, nil
}

// missingDataRemedy returns the remedy for a missing ConfigMap or Secret. It suggests a similar ConfigMap if the user
// may read all in the namespace. It never suggests names of Secrets, because other users may read the plan.
func (s *Scope) missingDataRemedy(ctx context.Context, addr lang.Address, namespace string) (string, error) {
	const correct = "; create it, or correct the reference"
	if addr.Type != lang.TypeConfigMap {
		return correct, nil
	}
	if err := s.MayRead(ctx, store.Right{Namespace: namespace, Resource: "configmaps"}); err != nil {
		if IsForbidden(err) {
			return correct, nil
		}
		return "", err
	}
	names, err := s.Configs.ConfigMapNames(ctx, namespace)
	if err != nil {
		return "", err
	}
	near := suggest.Nearest(addr.Name, names)
	if near == "" {
		return correct, nil
	}
	addr.Name = near
	return fmt.Sprintf("; did you mean %s?", addr.Expression()), nil
}

// AbsentError is the error for a referenced object that does not exist.
type AbsentError struct{ text string }

func (e *AbsentError) Error() string { return e.text }
