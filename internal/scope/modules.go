package scope

import (
	"context"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/module"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"
)

// This file finds the named values of Modules for expressions: variables, local values, outputs and modules.

// moduleValues evaluates named values of a Module once. Later changes of a plan do not affect it, so it must not
// outlive one evaluation.
type moduleValues struct {
	*module.Values
	// of is the name of the Module.
	of string
	// err is the first error of a value outside of the module.
	err error
}

// named returns the value of a variable, local value, output or module.
func (s *Scope) named(ctx context.Context, addr lang.Address) (cty.Value, bool, error) {
	if addr.IsModuleOutput() { // inside of a module, all references to outputs are to those of called modules
		return s.output(ctx, addr)
	}
	m, err := s.moduleOf(ctx, addr)
	if err != nil {
		return cty.NilVal, false, err
	}
	return s.namedIn(ctx, m, addr)
}

// namedIn returns the value of a named value of a Module.
func (s *Scope) namedIn(ctx context.Context, m *resourceset.Module, addr lang.Address) (cty.Value, bool, error) {
	addr.Namespace = ""
	values := s.valuesOf(ctx, m)
	v, ok := values.Value(addr)
	return v, ok, values.failure()
}

// moduleOf returns the Module that an address is in. It must have an expansion.
func (s *Scope) moduleOf(ctx context.Context, addr lang.Address) (*resourceset.Module, error) {
	namespace := addr.Namespace
	if namespace == "" {
		namespace = s.namespace
	}
	name := v1alpha1.RootModule(addr.Module)
	if s.Sets == nil {
		return nil, &AbsentError{fmt.Sprintf("there is no Module %q in the namespace %q", name, namespace)}
	}
	m, err := s.Sets.Module(ctx, namespace, name)
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return nil, &AbsentError{fmt.Sprintf("there is no Module %q in the namespace %q", name, namespace)}
	case m.Problem != "":
		return nil, unknownInstances("Module", name)
	}
	return m, nil
}

// valuesOf returns an evaluator for one evaluation.
func (s *Scope) valuesOf(ctx context.Context, m *resourceset.Module) *moduleValues {
	inside := *s
	inside.inModule, inside.Home = true, m.Namespace
	out := &moduleValues{of: m.Name}
	out.Values = m.Expansion.Values(func(a lang.Address) (cty.Value, bool) {
		v, ok, err := inside.Value(ctx, a)
		if err != nil && out.err == nil {
			out.err = err
		}
		return v, ok && err == nil
	}).Within(lang.BudgetOf(ctx))
	return out
}

// Checks evaluates the check blocks of a Module. What does not hold, and what cannot be evaluated, is a warning.
func (s *Scope) Checks(ctx context.Context, name string) (diag.Diagnostics, error) {
	m, err := s.moduleOf(ctx, lang.Address{Module: v1alpha1.ModulePath("", name, nil)})
	if _, absent := errors.AsType[*AbsentError](err); absent {
		return nil, nil // the plan says so
	}
	if err != nil || m.Deleting != nil || !m.Expansion.HasChecks() {
		return nil, err
	}
	inside, err := s.writtenToo(ctx, store.Written{Kind: "Module", Namespace: m.Namespace, Name: m.Name})
	if err != nil {
		return nil, err
	}
	values := inside.valuesOf(ctx, m)
	diags := values.Checks()
	_, absent := errors.AsType[*AbsentError](values.err)
	switch {
	case values.err == nil:
	case absent || IsForbidden(values.err):
		diags = append(diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityWarning,
			Address: v1alpha1.ModulePath("", name, nil),
			Summary: "Check block cannot be evaluated", Detail: diag.Sentence(values.err.Error())})
	default:
		if f, ok := errors.AsType[*diag.Failure](values.err); !ok || len(f.Diagnostics) == 0 {
			return nil, values.err
		}
		for _, d := range diag.Of(values.err) {
			d.Severity = v1alpha1.SeverityWarning
			diags = append(diags, d)
		}
	}
	return s.MaskAll(diags), nil
}

// failure returns the errors of the evaluation.
func (v *moduleValues) failure() error {
	if v.err != nil {
		return v.err
	}
	diags := v.Diagnostics()
	if !diag.HasErrors(diags) {
		return nil
	}
	return &diag.Failure{Kind: diag.Unevaluated, Operation: fmt.Sprintf("evaluate Module %q", v.of), Diagnostics: diags}
}

// instanceOf returns the key and the value of an instance for its expressions; nil for an object that is no instance.
func (s *Scope) instanceOf(ctx context.Context, r *resource.Resource) (*lang.Instance, error) {
	if r.Instance == nil || r.Address.Module == "" || r.Deleting {
		return r.Instance, nil
	}
	addr := r.Address
	addr.Namespace = r.Ref.Namespace
	m, err := s.moduleOf(ctx, addr)
	if err != nil {
		return nil, err
	}
	values := s.valuesOf(ctx, m)
	each := m.BlockSet(r.Ref).Instance(r.Instance.Key, values.Values)
	if each == nil {
		return nil, &AbsentError{fmt.Sprintf("the Module %q has no instance %s", m.Name, r.Address)}
	}
	return each, values.failure()
}

// leftModule reports whether an address without a key is that of a block that its Module no longer has, or that it now
// repeats. Its record may still exist.
func (s *Scope) leftModule(ctx context.Context, addr lang.Address) (bool, error) {
	m, err := s.moduleOf(ctx, addr)
	if _, absent := errors.AsType[*AbsentError](err); absent {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	addr.Namespace = ""
	block := m.BlockAt(addr)
	return block == nil || block.Repeats == "" && block.Len() == 0, nil
}
