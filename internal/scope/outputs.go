package scope

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/store"
)

// This file finds the outputs of Modules for expressions outside of them.

// MaxOutputs is the maximum number of Modules of which each has an input from an output of the next.
const MaxOutputs = 16

// output returns the value of an output of a Module. Who refers to it needs the right to get the Module, and what its
// expression needs.
func (s *Scope) output(ctx context.Context, addr lang.Address) (cty.Value, bool, error) {
	right := store.Right{Namespace: s.namespaceOf(addr), Group: v1alpha1.GroupName, Resource: "modules",
		Name: v1alpha1.RootModule(addr.Module)}
	if err := s.MayRead(ctx, right); err != nil {
		return cty.NilVal, false, err
	}
	if slices.Contains(s.outputs, addr) || len(s.outputs) == MaxOutputs {
		return cty.NilVal, false, &diag.Failure{Operation: "evaluate output",
			Diagnostics: diag.Diagnostics{diag.Errorf("", "Cycle",
				"The value of %s depends on itself, through %s. Remove one of the references.", addr,
				listAddresses(s.outputs))}}
	}
	m, err := s.moduleOf(ctx, addr)
	if err != nil {
		return cty.NilVal, false, err
	}
	if m.Outputs[addr.Name] == nil {
		return cty.NilVal, false, &AbsentError{fmt.Sprintf("the Module %q has no output %q.%s", m.Name, addr.Name,
			diag.DidYouMean(addr.Name, slices.Sorted(maps.Keys(m.Outputs))))}
	}
	if why := m.Outputs[addr.Name].Waits; why != "" {
		return cty.NilVal, false, &AbsentError{fmt.Sprintf(
			"%s is not known yet: %s. Apply a plan of what is known first, with --target if needed", addr, why)}
	}
	inside, err := s.writtenToo(ctx, store.Written{Kind: "Module", Namespace: right.Namespace, Name: m.Name})
	if err != nil {
		return cty.NilVal, false, err
	}
	inside.outputs = append(slices.Clone(s.outputs), addr)
	v, ok, err := inside.namedIn(ctx, m, addr)
	if err != nil || !ok {
		return v, ok, err
	}
	return v, true, s.mayHave(ctx, v)
}

// ModuleOutput returns the recorded value of an output of a Module for the user of the scope, who has no plan. It is
// unknown where nothing is recorded. The address has a namespace, or is in the scope's own.
func (s *Scope) ModuleOutput(ctx context.Context, addr lang.Address) (cty.Value, error) {
	if s.who == nil {
		return cty.NilVal, errNoRequester
	}
	namespace := s.relative(addr).Namespace
	of := s.ScopeOf(s.who, cmp.Or(namespace, s.namespace),
		func(lang.Address) (cty.Value, bool) { return cty.NilVal, false })
	addr.Namespace = ""
	v, _, err := of.Value(ctx, addr)
	return v, err
}

// mayHave returns a *ForbiddenError if a value comes from a Secret that the plan's requester, or a writer of the
// evaluated object, may not get: a reference to the Secret would need that right, too.
func (s *Scope) mayHave(ctx context.Context, v cty.Value) error {
	for _, o := range lang.OriginsOf(v) {
		if !o.Address.Stored() && o != lang.FurtherOrigins {
			continue
		}
		rights, err := s.RightsToSecrets(o.Address)
		if err != nil {
			return err
		}
		for _, asker := range append([]*store.Asker{s.requester}, s.writers...) {
			for _, right := range rights {
				if err := mayRead(ctx, asker, right); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// writtenToo returns a scope whose writers also are those of a Module and its files. They can make an output reveal a
// secret.
func (s *Scope) writtenToo(ctx context.Context, module store.Written) (*Scope, error) {
	lists, err := s.writersOfOwner(ctx, module)
	if err != nil {
		return nil, err
	}
	of := s.WrittenBy(contributor.Merge(lists...))
	of.writers, of.unknown = append(of.writers, s.writers...), of.unknown || s.unknown
	return of, nil
}

func (s *Scope) namespaceOf(addr lang.Address) string {
	if addr.Namespace == "" {
		return s.namespace
	}
	return addr.Namespace
}

func listAddresses(list []lang.Address) string {
	texts := make([]string, len(list))
	for i, a := range list {
		texts[i] = a.String()
	}
	return strings.Join(texts, ", ")
}

// outputVersion returns a text that changes with the value of an output of the namespace, apart from the values of
// resources and data sources of the namespace. ok is false if it cannot be determined.
func (s *Scope) outputVersion(ctx context.Context, addr lang.Address, above []lang.Address) (version string, ok bool) {
	if slices.Contains(above, addr) || len(above) == MaxOutputs {
		return "", false
	}
	m, err := s.moduleOf(ctx, addr)
	if err != nil || m.Outputs[addr.Name] == nil {
		return "", false
	}
	version = m.Outputs[addr.Name].Version
	for _, a := range m.Outputs[addr.Name].Behind {
		text := ""
		switch {
		case a.Namespace == "" && a.IsModuleOutput():
			text, ok = s.outputVersion(ctx, a, append(slices.Clone(above), addr))
		case a.Namespace != "" || a.Stored():
			text, ok = s.textOf(ctx, a)
		default:
			continue
		}
		if !ok {
			return "", false
		}
		version += "\n" + text
	}
	return version, true
}

// writersOfOutput returns the users who wrote a Module and its files, and those who caused what an output of it depends
// on.
func (s *Scope) writersOfOutput(ctx context.Context, addr lang.Address, depth int) ([]v1alpha1.Contributor, error) {
	if depth == 0 {
		return []v1alpha1.Contributor{{More: true}}, nil
	}
	namespace, name := s.namespaceOf(addr), v1alpha1.RootModule(addr.Module)
	module := store.Written{Kind: "Module", Namespace: namespace, Name: name}
	lists, err := s.writersOfOwner(ctx, module)
	if err != nil {
		return nil, err
	}
	written, _, err := s.Configs.Writers(ctx, module)
	if err != nil {
		return nil, err
	}
	// an apply ends the other entries of a Module, and an input may be in an output alone
	lists = append(lists, written.Parts)
	m, err := s.moduleOf(ctx, addr)
	if err != nil {
		return []v1alpha1.Contributor{{More: true}}, nil
	}
	if m.Outputs[addr.Name] != nil {
		for _, a := range m.Outputs[addr.Name].Behind {
			if a.Namespace == "" {
				a.Namespace = addr.Namespace
			}
			list, err := s.writersAt(ctx, a, "", depth-1)
			if err != nil {
				return nil, err
			}
			lists = append(lists, list)
		}
	}
	list := contributor.Merge(lists...)
	for i := range list {
		list[i].Wrote = nil // an output follows from all of it
	}
	return list, nil
}
