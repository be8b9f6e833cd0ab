package scope

import (
	"context"
	"errors"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
)

// Lookup finds missing objects outside of a plan that the plan's resources refer to. It calls no provider.
type Lookup struct {
	scope   *Scope
	configs *ProviderConfigs
	// checked holds the names of the ProviderConfigs that were checked, and "provider " with the name of each provider
	// without one. Missing checks each only once.
	checked map[string]bool
}

// Lookup returns a Lookup for a plan. The values of resources and data sources in the plan's namespace are unknown to
// it.
func (a *Sources) Lookup(ctx context.Context, po *v1alpha1.Plan) *Lookup {
	return &Lookup{checked: map[string]bool{}, configs: a.ProviderConfigs(ctx, po),
		scope: a.NewScope(po, po.Namespace, func(addr lang.Address) (cty.Value, bool) {
			return cty.DynamicVal, !addr.Stored() && !addr.Named()
		})}
}

// Missing returns an error for each missing object outside of the plan that the resource or its ProviderConfig refers
// to. An object counts as missing if the plan's requester may not read it.
func (l *Lookup) Missing(ctx context.Context, r *resource.Resource) diag.Diagnostics {
	var diags diag.Diagnostics
	parsed := r.Parse()
	if !diag.HasErrors(parsed.Invalid) && l.Broken(ctx, parsed.References) {
		diags = l.missing(ctx, r, parsed)
	}
	return l.scope.MaskAll(append(diags, l.missingConfig(ctx, r)...))
}

// Broken reports whether a reference to an object outside of the plan cannot be read, or lacks the attribute or key.
func (l *Lookup) Broken(ctx context.Context, refs []lang.Reference) bool {
	return slices.ContainsFunc(refs, func(ref lang.Reference) bool { return outside(ref) && l.isBroken(ctx, ref) })
}

// outside reports whether a reference is to an object that no plan of the namespace manages, or to an output of a
// Module. It returns false for ephemeral resources.
func outside(ref lang.Reference) bool {
	return ref.Stored() || ref.IsModuleOutput() || ref.Namespace != "" && ref.Mode != v1alpha1.ModeEphemeral
}

// isBroken reports whether the referenced value cannot be read, or lacks the attribute or key.
func (l *Lookup) isBroken(ctx context.Context, ref lang.Reference) bool {
	v, ok, err := l.scope.Value(ctx, ref.Address)
	if err != nil || !ok {
		return err != nil
	}
	v, _ = v.Unmark()
	return ref.Attribute != "" && v.Type().IsObjectType() && !v.Type().HasAttribute(ref.Attribute)
}

// missing evaluates the expressions of a resource, because a function such as try can permit a missing key.
func (l *Lookup) missing(ctx context.Context, r *resource.Resource, parsed *resource.Expressions) diag.Diagnostics {
	v := &Evaluator{Ctx: ctx, Scope: l.scope}
	resolve := func(addr lang.Address) (cty.Value, bool) {
		if addr.Mode == v1alpha1.ModeEphemeral {
			return cty.DynamicVal, true // the lookup opens no ephemeral resource
		}
		if found, ok := v.Resolve(addr); ok {
			return found, true
		}
		return cty.DynamicVal, true // v.Err holds the error
	}
	at, err := l.scope.EvaluationContext(ctx, r)
	if err != nil {
		return diag.Of(err)
	}
	_, diags := parsed.Config.With(at).Evaluate(resolve)
	for _, e := range parsed.LifecycleExpressions {
		_, more := e.With(at).Evaluate(resolve, cty.DynamicVal)
		diags = append(diags, more...)
	}
	diags = slices.DeleteFunc(diags, func(d v1alpha1.Diagnostic) bool { return d.Severity != v1alpha1.SeverityError })
	if v.Err != nil {
		if f, ok := errors.AsType[*diag.Failure](v.Unresolved(parsed.References)); ok {
			diags = append(diags, f.Diagnostics...)
		}
	}
	return diags
}

// missingConfig returns an error if the resource's ProviderConfig, or a Secret or an object that it refers to, is
// missing. It ignores other errors, because the first use of the ProviderConfig reports them.
func (l *Lookup) missingConfig(ctx context.Context, r *resource.Resource) diag.Diagnostics {
	cfg, err := configOf(r, func(name string) (*v1alpha1.ProviderConfig, error) {
		read, err := l.configs.lookup(name)
		if err != nil {
			return nil, err
		}
		return read.Cfg, nil
	})
	if _, absent := errors.AsType[*AbsentError](err); absent {
		return diag.Of(err)
	}
	if err == nil && cfg == nil && r.Entry.TakesConfiguration() {
		if l.checked["provider "+r.Entry.Name] {
			return nil
		}
		l.checked["provider "+r.Entry.Name] = true
		return diag.Of(l.scope.unconfigured(ctx, r))
	}
	if err != nil || cfg == nil || l.checked[cfg.Name] {
		return nil
	}
	l.checked[cfg.Name] = true
	if l.scope.mayUse(ctx, r.Ref.Namespace, cfg.Name) != nil {
		return nil
	}
	_, err = l.scope.Configuration(ctx, r.Entry, cfg)
	_, absent := errors.AsType[*AbsentError](err)
	if _, secret := errors.AsType[*store.SecretError](err); !secret && !absent {
		return nil
	}
	f, ok := errors.AsType[*diag.Failure](configurationError(r.Entry, cfg, err))
	if !ok {
		return nil
	}
	return f.Diagnostics
}
