package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/plan"

	"github.com/zclconf/go-cty/cty"
)

// evaluator adapts a scope to what evaluates expressions, and keeps what could not be read: that is not unknown, and nothing may
// be made of it.
type evaluator struct {
	ctx   context.Context //nolint:containedctx // it lives as long as one call
	scope *scope
	err   error
	// failed holds what err is made of.
	failed []failedReference
}

type failedReference struct {
	addr lang.Address
	err  error
}

func (l *evaluator) resolve(addr lang.Address) (cty.Value, bool) {
	v, ok, err := l.scope.value(l.ctx, addr)
	l.scope.noteSecrets(v)
	if err != nil {
		l.failed = append(l.failed, failedReference{addr, err})
	}
	l.err = errors.Join(l.err, err)
	return v, ok
}

// unresolved says what could not be read, and where it is referred to; nil when all could. What may pass stays as it is, since
// others look at it.
func (l *evaluator) unresolved(refs []lang.Reference) error {
	var diags diag.Diagnostics
	for _, f := range l.failed {
		summary := "Reference to something that is not there"
		if _, ok := errors.AsType[*ForbiddenError](f.err); ok {
			summary = "Reference to something that may not be read"
		} else if _, ok := errors.AsType[*absentError](f.err); !ok {
			return l.err
		}
		for _, ref := range refs {
			if ref.Address == f.addr {
				diags = append(diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: summary, Attribute: ref.Field, Detail: f.err.Error()})
			}
		}
	}
	if len(diags) == 0 {
		return l.err
	}
	return &diag.Failure{Operation: "evaluate expressions", Diagnostics: diags}
}

// config evaluates the spec of a data source, an ephemeral resource or an action, once its preconditions hold. While
// planning it is unknown in parts; open is true when it cannot be told yet whether a precondition holds.
func (l *evaluator) config(r *resource) (config cty.Value, open bool, err error) {
	if open, err = l.holds(r, preconditions, cty.NilVal); err != nil {
		return cty.NilVal, open, err
	}
	parsed, diags := lang.ConfigOptions{
		Functions: l.scope.functions(), Namespace: r.ref.Namespace, Ephemeral: r.mode == v1alpha1.ModeEphemeral, Context: l.scope.evaluationContext(r),
	}.Parse(r.spec(), r.schema.Block)
	if diag.HasErrors(diags) {
		return cty.NilVal, open, &diag.Failure{Operation: "read spec", Diagnostics: diags}
	}
	config, diags = parsed.Evaluate(l.resolve)
	l.scope.noteSecretAttributes(r.schema.Block, config)
	if l.err != nil {
		return cty.NilVal, open, l.unresolved(parsed.References()) // what could not be read is not unknown: nothing may be made of it
	}
	if diag.HasErrors(diags) {
		return cty.NilVal, open, &diag.Failure{Operation: "evaluate spec", Diagnostics: diags}
	}
	if err := checkArguments(r, config); err != nil {
		return cty.NilVal, open, err
	}
	if l.scope.planned == nil && !known(config) {
		return cty.NilVal, open, fmt.Errorf("a value that %s refers to is still not known", r.addr)
	}
	return config, open, nil
}

func known(v cty.Value) bool {
	v, _ = v.UnmarkDeep()
	return v.IsWhollyKnown()
}

// holds checks conditions of a resource; see the function of that name.
func (l *evaluator) holds(r *resource, which string, self cty.Value) (open bool, err error) {
	options := lang.ExpressionOptions{Functions: l.scope.functions(), Context: l.scope.evaluationContext(r)}
	own := r.addr
	own.Namespace = r.ref.Namespace
	if self, err = l.scope.guarded(l.ctx, own.In(l.scope.namespace), self); err != nil {
		return false, err
	}
	open, err = holds(r, which, options, l.resolve, self)
	if l.err != nil {
		checks, _ := checksOf(r, which, options)
		return open, l.unresolved(references(checks))
	}
	return open, err
}

// evaluate works out a resource's configuration, with unknown values where the scope has them.
func (l *evaluator) evaluate(r *resource, prior instance.State) (instance.Config, error) {
	parsed, diags := lang.ConfigOptions{Functions: l.scope.functions(), Context: l.scope.evaluationContext(r)}.Parse(r.spec(), r.schema.Block)
	if diag.HasErrors(diags) {
		return instance.Config{}, &diag.Failure{Operation: "read spec", Diagnostics: diags}
	}
	written, diags := parsed.Evaluate(l.resolve)
	l.scope.noteSecretAttributes(r.schema.Block, written)
	if l.err != nil {
		// What could not be read is not unknown: a plan must not be made of it.
		return instance.Config{}, l.unresolved(parsed.References())
	}
	if diag.HasErrors(diags) {
		return instance.Config{}, &diag.Failure{Operation: "evaluate spec", Diagnostics: diags}
	}
	config := instance.Config{Written: written, Effective: written}
	if len(r.lifecycle.IgnoreChanges) == 0 || !prior.Exists() {
		return config, nil
	}
	var err error
	config.Ignored = r.lifecycle.IgnoreChanges
	config.Effective, err = plan.IgnoreChanges(r.schema.Block, written, prior.Value, r.lifecycle.IgnoreChanges)
	return config, err
}
