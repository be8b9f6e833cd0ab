package scope

import (
	"context"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/schema"
)

// This file finds the values of ResourceSets for expressions.

// SetAt returns the ResourceSet whose template has an address; nil if there is none.
func SetAt(ctx context.Context, a *Sources, namespace string, addr lang.Address) (*resourceset.Set, error) {
	if addr.Namespace != "" {
		namespace = addr.Namespace
	}
	if a.Sets == nil || addr.Mode != "" && addr.Module == "" || addr.Stored() || v1alpha1.IsInstanceName(addr.Name) {
		return nil, nil
	}
	for _, provider := range a.Catalog.ProvidersOf(addr.Mode, addr.Type) {
		set, err := a.Sets.Set(ctx, v1alpha1.ObjectReference{
			APIVersion: v1alpha1.ProviderGroup(provider) + "/" + v1alpha1.ResourceVersion, Kind: addr.Kind(),
			Namespace: namespace, Name: addr.ObjectName(),
		})
		if set != nil || err != nil {
			return set, err
		}
	}
	return nil, nil
}

// unknownInstances returns the error for a ResourceSet or a Module whose instances are not known. It omits the problem,
// which may quote the files of a Module and the values in them: not everybody who reads the text may read these.
func unknownInstances(kind, name string) error {
	return &AbsentError{fmt.Sprintf(
		"the instances of the %s %q are not known: the condition Ready of that object says why", kind, name)}
}

// set returns the value of a whole set: a tuple of the instances with spec.count, or an object with spec.forEach. ok is
// false if no set has the address.
func (s *Scope) set(ctx context.Context, addr lang.Address) (v cty.Value, ok bool, err error) {
	set, err := s.setAt(ctx, addr)
	if err != nil || set == nil {
		return cty.NilVal, false, err
	}
	if set.Problem != "" {
		return cty.NilVal, false, unknownInstances("ResourceSet", set.Name)
	}
	items := make([]cty.Value, 0, set.Len())
	attrs := make(map[string]cty.Value, set.Len())
	for i := range set.Len() {
		key := set.Key(i)
		v, ok, err := s.found(ctx, addr.Instance(key))
		switch {
		case err != nil:
			return cty.NilVal, false, err
		case !ok && s.planned == nil:
			return cty.NilVal, false, &AbsentError{fmt.Sprintf("%s has no values yet: apply a plan of it first",
				addr.Instance(key))}
		case !ok:
			v = cty.DynamicVal
			if block := s.Block(addr); block != nil {
				v = lang.MarkSensitive(block, schema.UnknownBlock(block))
			}
		}
		items = append(items, v)
		attrs[key.Text()] = v
	}
	if set.Repeats == lang.RepeatCount {
		return cty.TupleVal(items), true, nil
	}
	return cty.ObjectVal(attrs), true, nil
}

// leftSet reports whether an address is that of an instance that its set no longer has. Its record may still exist.
func (s *Scope) leftSet(ctx context.Context, addr lang.Address) (bool, error) {
	of, key, ok := addr.Set()
	if !ok && addr.Module != "" {
		return s.leftModule(ctx, addr)
	}
	if !ok {
		return false, nil
	}
	set, err := s.setAt(ctx, of)
	return err == nil && (set == nil || !set.Has(key)), err
}

// setAt is SetAt with a cache.
func (s *Scope) setAt(ctx context.Context, addr lang.Address) (*resourceset.Set, error) {
	s.mu.Lock()
	set, known := s.sets[addr]
	s.mu.Unlock()
	if known {
		return set, nil
	}
	set, err := SetAt(ctx, s.Sources, s.namespace, addr)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets[addr] = set
	return set, nil
}
