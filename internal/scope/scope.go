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
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/internal/suggest"

	"github.com/zclconf/go-cty/cty"
)

// Scope is what expressions may see. It may be asked by many at once, and shared by all resources of a plan. What it opens
// lives until close.
type Scope struct {
	*Sources
	// requester asked for the plan: all is read with their rights. It is nil when nobody did.
	requester *store.Asker
	// approver approved the plan that is applied. It is nil when that is the requester, and while the plan is made.
	approver  *store.Asker
	namespace string
	// planned is what resources of the plan will be; nil while the plan is applied, when no value may be unknown.
	planned           func(lang.Address) (cty.Value, bool)
	providerFunctions func() lang.Functions
	// Decoder decodes the resources that are referred to.
	Decoder *resource.Decoder
	// plan is the one whose expressions are evaluated; nil when there is none.
	plan *v1alpha1.Plan
	// Home is the namespace of whose expressions are meant; empty for the scope's own.
	Home string
	// openChain are the ephemeral resources that are being opened, each for the one before it.
	openChain []lang.Address

	*scopeCache
}

// scopeCache holds the values that a scope has read, and the ephemeral resources that it has opened.
type scopeCache struct {
	mu sync.Mutex
	// data remembers what was read of ConfigMaps and Secrets.
	data map[lang.Address]cty.Value
	// open holds the values of the ephemeral resources that are open.
	open map[lang.Address]cty.Value
	// Secrets are the sensitive texts that providers are told, and may repeat.
	Secrets *plan.Secrets
	// Hashes are the results of bcrypt, which the step keeps with its change.
	Hashes map[string]string
	// closers closes them, in the order in which they were opened.
	closers []func(context.Context) error
	// opening is held while ephemeral resources are opened, so that each is opened once.
	opening sync.Mutex
}

// NewScope returns the scope of the resources of a namespace. planned tells what the plan makes of a resource; it is nil
// when the plan is applied, and only what is recorded counts.
func (a *Sources) NewScope(po *v1alpha1.Plan, namespace string, planned func(lang.Address) (cty.Value, bool)) *Scope {
	s := a.ScopeOf(po.Status.RequestedBy, namespace, planned)
	s.plan = po
	if planned == nil {
		s.approver = a.ApproverOf(po)
	}
	return s
}

// ScopeOf is NewScope for a user who asks without a plan.
func (a *Sources) ScopeOf(who *v1alpha1.Identity, namespace string, planned func(lang.Address) (cty.Value, bool)) *Scope {
	return &Scope{
		Sources: a, requester: a.askerOf(who), namespace: namespace, planned: planned,
		providerFunctions: sync.OnceValue(a.providerFunctions), Decoder: resource.NewDecoder(a.Catalog),
		scopeCache: &scopeCache{data: map[lang.Address]cty.Value{}, open: map[lang.Address]cty.Value{}, Secrets: new(plan.Secrets), Hashes: map[string]string{}},
	}
}

// Functions are those that the installed providers define.
func (s *Scope) Functions() lang.Functions { return s.providerFunctions() }

// EvaluationContext is when and with which functions the expressions of an object are evaluated. While the plan is made, what only its
// apply can tell is left open.
func (s *Scope) EvaluationContext(r *resource.Resource) lang.EvaluationContext {
	m := lang.EvaluationContext{Functions: s.Functions()}
	if s.plan == nil {
		return m
	}
	m.Planned = s.plan.CreationTimestamp.Time
	if at := s.plan.Spec.Timestamp; at != nil {
		m.Planned = at.Time
	}
	if approval := s.plan.Status.Approval; s.planned == nil && approval != nil && approval.At != nil {
		m.Applied, m.Seed, m.Hashes = approval.At.Time, string(s.plan.UID)+"/"+string(r.Ref.UID), s.Hashes
	}
	return m
}

// Value is the value of what an address names; ok is false when there is none.
func (s *Scope) Value(ctx context.Context, addr lang.Address) (v cty.Value, ok bool, err error) {
	if addr.Namespace == "" {
		addr.Namespace = s.Home
	}
	addr = addr.In(s.namespace)
	if err := s.mayRefer(ctx, addr); err != nil {
		return cty.NilVal, false, err
	}
	if v, ok, err = s.found(ctx, addr); err != nil || !ok {
		return v, ok, err
	}
	v, err = s.guarded(ctx, addr, v)
	return v, err == nil, err
}

// found is the value as it was planned, read or recorded, whoever asks. The address is from the scope's namespace.
func (s *Scope) found(ctx context.Context, addr lang.Address) (v cty.Value, ok bool, err error) {
	if addr.Namespace == "" && s.planned != nil {
		if v, ok := s.planned(addr); ok {
			return v, true, nil
		}
	}
	switch {
	case addr.Stored():
		v, err = s.Keys(ctx, addr)
		return v, err == nil, err
	case addr.Mode == v1alpha1.ModeEphemeral:
		return s.ephemeral(ctx, addr)
	case addr.Mode == v1alpha1.ModeAction:
		return cty.NilVal, false, nil // an action has no value
	default:
		return s.recorded(ctx, addr)
	}
}

// recorded is the value of a resource or data source as the ledger has it.
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
	if found && addr.Namespace != "" {
		return cty.NilVal, false, &AbsentError{fmt.Sprintf("%s has no values yet: apply a plan in the namespace %q first", addr, addr.Namespace)}
	}
	return cty.NilVal, false, nil
}

// Resources reads the objects that an address may mean: one of each provider that has the type. One of another namespace must
// be readable for whoever asked for the plan.
func (s *Scope) Resources(ctx context.Context, addr lang.Address) func(yield func(*resource.Resource, error) bool) {
	return func(yield func(*resource.Resource, error) bool) {
		var refused error
		found := false
		for _, provider := range s.Catalog.ProvidersOf(addr.Mode, addr.Type) {
			ref := v1alpha1.ObjectReference{
				APIVersion: v1alpha1.ProviderGroup(provider) + "/" + v1alpha1.ResourceVersion, Kind: addr.Kind(),
				Namespace: s.namespace, Name: addr.Name,
			}
			if addr.Namespace != "" {
				ref.Namespace = addr.Namespace
				plural, err := s.Objects.Plural(ref)
				if err != nil {
					yield(nil, err)
					return
				}
				what := store.Right{Namespace: addr.Namespace, Group: v1alpha1.ProviderGroup(provider), Resource: plural, Name: addr.Name}
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

// Keys is a ConfigMap or Secret as an object of its keys. What is no text is written in base64, as kubectl shows it.
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
	data, err := read(ctx, namespace, addr.Name)
	if err != nil {
		return cty.NilVal, fmt.Errorf("%s: %w", addr, err)
	}
	if data == nil {
		hint, err := s.instead(ctx, addr.In(s.Home), namespace)
		if err != nil {
			return cty.NilVal, fmt.Errorf("%s: %w", addr, err)
		}
		return cty.NilVal, fmt.Errorf("%s: %w", addr, &AbsentError{fmt.Sprintf("there is no %s %q in the namespace %q%s", addr.Kind(), addr.Name, namespace, hint)})
	}
	vals := make(map[string]cty.Value, len(data))
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text := string(data[key])
		if !utf8.ValidString(text) {
			text = base64.StdEncoding.EncodeToString(data[key])
		}
		vals[key] = cty.StringVal(text)
		if addr.Type == lang.TypeSecret {
			vals[key] = vals[key].Mark(lang.Sensitive)
		}
	}
	v = cty.ObjectVal(vals)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data[addr] = v
	return v, nil
}

// instead says what to do about a ConfigMap or a Secret that is not there. It suggests another ConfigMap to those who may read
// all of the namespace. Names of Secrets are never suggested: a plan may be read by others than who made it.
func (s *Scope) instead(ctx context.Context, addr lang.Address, namespace string) (string, error) {
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

// AbsentError says that something that is referred to is not there.
type AbsentError struct{ text string }

func (e *AbsentError) Error() string { return e.text }
