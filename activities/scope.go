package activities

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/suggest"

	"github.com/zclconf/go-cty/cty"
)

// scope is what expressions may see. It may be asked by many at once, and shared by all resources of a plan. What it opens
// lives until close.
type scope struct {
	*Activities
	// who asked for the plan: all is read with their rights.
	who       *v1alpha1.Identity
	namespace string
	// planned is what resources of the plan will be; nil while the plan is applied, when no value may be unknown.
	planned           func(lang.Address) (cty.Value, bool)
	providerFunctions func() lang.Functions
	// plan is the one whose expressions are evaluated; nil when there is none.
	plan *v1alpha1.Plan
	// home is the namespace of whose expressions are meant; empty for the scope's own.
	home string
	// openChain are the ephemeral resources that are being opened, each for the one before it.
	openChain []lang.Address

	*scopeCache
}

// scopeCache holds the values that a scope has read, and the ephemeral resources that it has opened.
type scopeCache struct {
	mu sync.Mutex
	// allowed remembers what may be read, and data what was read of ConfigMaps and Secrets.
	allowed map[accessTarget]bool
	data    map[lang.Address]cty.Value
	// open holds the values of the ephemeral resources that are open.
	open map[lang.Address]cty.Value
	// secrets are the sensitive texts that providers are told, and may repeat.
	secrets *plan.Secrets
	// closers closes them, in the order in which they were opened.
	closers []func(context.Context) error
	// opening is held while ephemeral resources are opened, so that each is opened once.
	opening sync.Mutex
}

// accessTarget is an object, or a subresource of it, whose reader needs a right.
type accessTarget struct{ namespace, group, resource, name string }

// newScope returns the scope of the resources of a namespace. planned tells what the plan makes of a resource; it is nil
// when the plan is applied, and only what is recorded counts.
func (a *Activities) newScope(po *v1alpha1.Plan, namespace string, planned func(lang.Address) (cty.Value, bool)) *scope {
	s := a.scopeOf(po.Status.RequestedBy, namespace, planned)
	s.plan = po
	return s
}

func (a *Activities) scopeOf(who *v1alpha1.Identity, namespace string, planned func(lang.Address) (cty.Value, bool)) *scope {
	return &scope{
		Activities: a, who: who, namespace: namespace, planned: planned,
		providerFunctions: sync.OnceValue(a.providerFunctions),
		scopeCache:        &scopeCache{allowed: map[accessTarget]bool{}, data: map[lang.Address]cty.Value{}, open: map[lang.Address]cty.Value{}, secrets: new(plan.Secrets)},
	}
}

// functions are those that the installed providers define.
func (s *scope) functions() lang.Functions { return s.providerFunctions() }

// evaluationContext is when the expressions of an object are evaluated. While the plan is made, what only its apply can tell is left open.
func (s *scope) evaluationContext(r *resource) lang.EvaluationContext {
	if s.plan == nil {
		return lang.EvaluationContext{}
	}
	m := lang.EvaluationContext{Planned: s.plan.CreationTimestamp.Time}
	if at := s.plan.Spec.Timestamp; at != nil {
		m.Planned = at.Time
	}
	if approval := s.plan.Status.Approval; s.planned == nil && approval != nil && approval.At != nil {
		m.Applied, m.Seed = approval.At.Time, string(s.plan.UID)+"/"+string(r.ref.UID)
	}
	return m
}

// value is the value of what an address names; ok is false when there is none.
func (s *scope) value(ctx context.Context, addr lang.Address) (v cty.Value, ok bool, err error) {
	if addr.Namespace == "" {
		addr.Namespace = s.home
	}
	addr = addr.In(s.namespace)
	if v, ok, err = s.found(ctx, addr); err != nil || !ok {
		return v, ok, err
	}
	v, err = s.guarded(ctx, addr, v)
	return v, err == nil, err
}

// found is the value as it was planned, read or recorded, whoever asks. The address is from the scope's namespace.
func (s *scope) found(ctx context.Context, addr lang.Address) (v cty.Value, ok bool, err error) {
	if addr.Namespace == "" && s.planned != nil {
		if v, ok := s.planned(addr); ok {
			return v, true, nil
		}
	}
	switch {
	case addr.Stored():
		v, err = s.keys(ctx, addr)
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
func (s *scope) recorded(ctx context.Context, addr lang.Address) (v cty.Value, ok bool, err error) {
	found := false
	for r, err := range s.objects(ctx, addr) {
		if err != nil {
			return cty.NilVal, false, err
		}
		found = true
		rec, err := s.Ledger.Instance(ctx, r.ref)
		if err != nil {
			return cty.NilVal, false, err
		}
		if !rec.Exists() {
			continue
		}
		if v, err = instance.Recorded(&rec.State, r.schema); err != nil {
			return cty.NilVal, false, fmt.Errorf("%s: %w", addr, err)
		}
		return lang.MarkSensitive(r.schema.Block, v), true, nil
	}
	if found && addr.Namespace != "" {
		return cty.NilVal, false, &absentError{fmt.Sprintf("%s has no values yet: apply a plan in the namespace %q first", addr, addr.Namespace)}
	}
	return cty.NilVal, false, nil
}

// objects reads the objects that an address may mean: one of each provider that has the type. One of another namespace must
// be readable for whoever asked for the plan.
func (s *scope) objects(ctx context.Context, addr lang.Address) func(yield func(*resource, error) bool) {
	return func(yield func(*resource, error) bool) {
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
				what := accessTarget{addr.Namespace, v1alpha1.ProviderGroup(provider), plural, addr.Name}
				if err := s.mayRead(ctx, what); err != nil {
					if _, ok := errors.AsType[*ForbiddenError](err); !ok {
						yield(nil, err)
						return
					}
					refused = err
					continue
				}
			}
			obj, err := s.Objects.Get(ctx, ref)
			if errors.Is(err, ErrGone) {
				continue
			}
			var r *resource
			if err == nil {
				r, err = resourceOf(obj, s.Catalog)
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

// keys is a ConfigMap or Secret as an object of its keys. What is no text is written in base64, as kubectl shows it.
func (s *scope) keys(ctx context.Context, addr lang.Address) (cty.Value, error) {
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
	if err := s.mayRead(ctx, accessTarget{namespace, "", resource, addr.Name}); err != nil {
		return cty.NilVal, fmt.Errorf("%s: %w", addr, err)
	}
	data, err := read(ctx, namespace, addr.Name)
	if err != nil {
		return cty.NilVal, fmt.Errorf("%s: %w", addr, err)
	}
	if data == nil {
		hint, err := s.instead(ctx, addr.In(s.home), namespace)
		if err != nil {
			return cty.NilVal, fmt.Errorf("%s: %w", addr, err)
		}
		return cty.NilVal, fmt.Errorf("%s: %w", addr, &absentError{fmt.Sprintf("there is no %s %q in the namespace %q%s", addr.Kind(), addr.Name, namespace, hint)})
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
func (s *scope) instead(ctx context.Context, addr lang.Address, namespace string) (string, error) {
	const correct = "; create it, or correct the reference"
	if addr.Type != lang.TypeConfigMap {
		return correct, nil
	}
	if err := s.mayRead(ctx, accessTarget{namespace, "", "configmaps", ""}); err != nil {
		if _, ok := errors.AsType[*ForbiddenError](err); ok {
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

// absentError says that something that is referred to is not there.
type absentError struct{ text string }

func (e *absentError) Error() string { return e.text }

// ForbiddenError says that somebody lacks a right.
type ForbiddenError struct{ text string }

func (e *ForbiddenError) Error() string { return e.text }

// mayRead returns a *ForbiddenError when whoever asked for the plan may not read an object.
func (s *scope) mayRead(ctx context.Context, what accessTarget) error {
	if s.who == nil {
		return errors.New("nobody is recorded as having asked for the plan; make a new one")
	}
	s.mu.Lock()
	ok, known := s.allowed[what]
	s.mu.Unlock()
	if !known {
		var err error
		if ok, err = s.Access.MayRead(ctx, *s.who, what.namespace, what.group, what.resource, what.name); err != nil {
			return err
		}
		s.mu.Lock()
		s.allowed[what] = ok
		s.mu.Unlock()
	}
	if !ok {
		resource, sub, isSub := strings.Cut(what.resource, "/")
		if what.group != "" {
			resource += "." + what.group
		}
		if isSub {
			resource += "/" + sub
		}
		return &ForbiddenError{fmt.Sprintf("the user %q may not read %q of %s in the namespace %q: ask for the verb \"get\" on it",
			s.who.Username, what.name, resource, what.namespace)}
	}
	return nil
}
