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

// Lookup finds what resources refer to outside of a plan and that is missing, before any provider is asked.
type Lookup struct {
	scope   *Scope
	configs *ProviderConfigs
	// checked are the names of the ProviderConfigs whose problems were returned.
	checked map[string]bool
}

// Lookup returns a Lookup for the resources of a plan. The resources and data sources of the plan's own namespace count as unknown.
func (a *Sources) Lookup(ctx context.Context, po *v1alpha1.Plan) *Lookup {
	return &Lookup{checked: map[string]bool{}, configs: a.ProviderConfigs(ctx, po), scope: a.NewScope(po, po.Namespace, func(addr lang.Address) (cty.Value, bool) {
		return cty.DynamicVal, !addr.Stored()
	})}
}

// Missing says what the spec, the lifecycle and the ProviderConfig of a resource refer to and is not there, or may not be read.
func (l *Lookup) Missing(ctx context.Context, r *resource.Resource) diag.Diagnostics {
	var diags diag.Diagnostics
	parsed := r.Parse()
	leadsNowhere := func(ref lang.Reference) bool { return outside(ref) && l.leadsNowhere(ctx, ref) }
	if !diag.HasErrors(parsed.Invalid) && slices.ContainsFunc(parsed.References, leadsNowhere) {
		diags = l.missing(ctx, r, parsed)
	}
	return l.scope.MaskAll(append(diags, l.missingConfig(ctx, r)...))
}

// outside says whether a reference is to something that no plan of the namespace makes, and that lasts.
func outside(ref lang.Reference) bool {
	return ref.Stored() || ref.Namespace != "" && ref.Mode != v1alpha1.ModeEphemeral
}

// leadsNowhere says whether a reference is to nothing, or to an attribute or key that is not there.
func (l *Lookup) leadsNowhere(ctx context.Context, ref lang.Reference) bool {
	v, ok, err := l.scope.Value(ctx, ref.Address)
	if err != nil || !ok {
		return err != nil
	}
	v, _ = v.Unmark()
	return ref.Attribute != "" && v.Type().IsObjectType() && !v.Type().HasAttribute(ref.Attribute)
}

// missing evaluates the expressions of a resource, since those decide what a missing key means.
func (l *Lookup) missing(ctx context.Context, r *resource.Resource, parsed *resource.Expressions) diag.Diagnostics {
	v := &Evaluator{Ctx: ctx, Scope: l.scope}
	resolve := func(addr lang.Address) (cty.Value, bool) {
		if addr.Mode == v1alpha1.ModeEphemeral {
			return cty.DynamicVal, true // it is not opened
		}
		if found, ok := v.Resolve(addr); ok {
			return found, true
		}
		return cty.DynamicVal, true // v holds why there is none
	}
	at := l.scope.EvaluationContext(r)
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

// missingConfig says what is missing of the ProviderConfig of a resource. Other errors are left to whoever uses it.
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
