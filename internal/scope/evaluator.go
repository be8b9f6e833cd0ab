package scope

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
)

// Evaluator provides the values of a scope to expressions and records the addresses that could not be read. The result
// of an evaluation with such an error must not be used.
type Evaluator struct {
	Ctx   context.Context //nolint:containedctx // it lives as long as one call
	Scope *Scope
	// Partly is true if what cannot be read is unknown: missing objects, those that were never applied or that the user
	// may not read, and ephemeral resources, which are not opened.
	Partly bool
	Err    error
	// failed lists the errors that Err joins.
	failed []failedReference
}

type failedReference struct {
	addr lang.Address
	err  error
}

// Resolve returns the value of an address for an expression, and records an error.
func (l *Evaluator) Resolve(addr lang.Address) (cty.Value, bool) {
	if l.Partly && addr.Mode == v1alpha1.ModeEphemeral {
		return cty.DynamicVal, true
	}
	v, ok, err := l.Scope.Value(l.Ctx, addr)
	if l.Partly && !ok && (err == nil || unreadable(err)) {
		return cty.DynamicVal, true
	}
	l.Scope.NoteSecrets(v)
	if err != nil {
		l.failed = append(l.failed, failedReference{addr, err})
	}
	l.Err = errors.Join(l.Err, err)
	return v, ok
}

// unreadable reports whether an error is about the referenced object, and not about the server.
func unreadable(err error) bool {
	_, failed := errors.AsType[*diag.Failure](err)
	_, absent := errors.AsType[*AbsentError](err)
	return failed || absent || IsForbidden(err)
}

// Unresolved returns a *diag.Failure with the unreadable addresses and the positions of their references, or nil
// without errors. It returns errors that may be transient unchanged, for the caller to classify.
func (l *Evaluator) Unresolved(refs []lang.Reference) error {
	var diags diag.Diagnostics
	for _, f := range l.failed {
		if failure, ok := errors.AsType[*diag.Failure](f.err); ok && f.addr.Named() {
			diags = append(diags, failure.Diagnostics...)
			continue
		}
		summary := "Reference to a missing object"
		if _, ok := errors.AsType[*ForbiddenError](f.err); ok {
			summary = "Reference without the right to read"
		} else if _, ok := errors.AsType[*AbsentError](f.err); !ok {
			return l.Err
		}
		for _, ref := range refs {
			if ref.Address == f.addr {
				diags = append(diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: summary,
					Attribute: ref.Field, Detail: f.err.Error()})
			}
		}
	}
	if len(diags) == 0 {
		return l.Err
	}
	return &diag.Failure{Operation: "evaluate expressions", Diagnostics: diags}
}

// Arguments evaluates the spec of a data source, an ephemeral resource or an action after its preconditions. During
// planning, the result may be partly unknown. open is true if a precondition is unknown.
func (l *Evaluator) Arguments(r *resource.Resource) (arguments cty.Value, open bool, err error) {
	if open, err = l.Holds(r, resource.Preconditions, cty.NilVal); err != nil {
		return cty.NilVal, open, err
	}
	if arguments, err = l.spec(r); err != nil {
		return cty.NilVal, open, err
	}
	if err := checkArguments(r, arguments); err != nil {
		return cty.NilVal, open, err
	}
	if l.Scope.planned == nil && !Known(arguments) {
		return cty.NilVal, open, fmt.Errorf("a value that %s refers to is still not known", r.Address)
	}
	return arguments, open, nil
}

// Known reports whether a value is wholly known.
func Known(v cty.Value) bool {
	return lang.WithoutMarks(v).IsWhollyKnown()
}

// Holds evaluates conditions of a resource; see resource.Holds.
func (l *Evaluator) Holds(r *resource.Resource, which string, self cty.Value) (open bool, err error) {
	if err := l.mayReadKeys(r); err != nil {
		return false, err
	}
	own := r.Address
	own.Namespace = r.Ref.Namespace
	if self, err = l.Scope.guarded(l.Ctx, own.In(l.Scope.namespace), self); err != nil {
		return false, err
	}
	at, err := l.Scope.EvaluationContext(l.Ctx, r)
	if err != nil {
		return false, err
	}
	open, err = resource.Holds(r, which, at, l.Resolve, self)
	if l.Err != nil {
		return open, l.Unresolved(resource.CheckReferences(r, which))
	}
	if err != nil && l.Ctx.Err() != nil {
		return open, l.Ctx.Err() // l.Ctx ended the evaluation
	}
	return open, err
}

// spec evaluates the spec of a resource. It returns an error, and not an unknown value, if a value could not be read.
func (l *Evaluator) spec(r *resource.Resource) (cty.Value, error) {
	parsed := r.Parse()
	if diag.HasErrors(parsed.ConfigDiagnostics) {
		return cty.NilVal, &diag.Failure{Operation: "read spec", Diagnostics: slices.Clone(parsed.ConfigDiagnostics)}
	}
	if err := l.mayReadKeys(r); err != nil {
		return cty.NilVal, err
	}
	at, err := l.Scope.EvaluationContext(l.Ctx, r)
	if err != nil {
		return cty.NilVal, err
	}
	v, diags := parsed.Config.With(at).Evaluate(l.Resolve)
	l.Scope.NoteSecretAttributes(r.Schema.Block, v)
	if l.Err != nil {
		return cty.NilVal, l.Unresolved(parsed.Config.References())
	}
	if diag.HasErrors(diags) && l.Ctx.Err() != nil {
		return cty.NilVal, l.Ctx.Err() // l.Ctx ended the evaluation
	}
	if diag.HasErrors(diags) {
		return cty.NilVal, &diag.Failure{Kind: diag.Unevaluated, Operation: "evaluate spec", Diagnostics: diags}
	}
	return v, nil
}

// mayReadKeys returns an error if each.key and each.value, or the files of a Module, come from a ConfigMap that the
// plan's requester may not get.
func (l *Evaluator) mayReadKeys(r *resource.Resource) error {
	keys := resourceset.SourceOf(r.Object)
	if keys == "" {
		return nil
	}
	err := l.Scope.MayRead(l.Ctx, store.Right{Namespace: r.Ref.Namespace, Resource: "configmaps", Name: keys})
	if !IsForbidden(err) {
		return err
	}
	what := "keys of the ResourceSet"
	if r.Address.Module != "" {
		what = "files of the Module"
	}
	return &diag.Failure{Operation: "evaluate expressions", Diagnostics: diag.Diagnostics{{
		Severity: v1alpha1.SeverityError, Summary: "Reference without the right to read",
		Detail: fmt.Sprintf("The %s come from the ConfigMap %q, and %s.", what, keys, err),
	}}}
}

// Config evaluates a resource's configuration. It is unknown where the scope's values are.
func (l *Evaluator) Config(r *resource.Resource, prior instance.State) (instance.Config, error) {
	written, err := l.spec(r)
	if err != nil {
		return instance.Config{}, err
	}
	config := instance.Config{Written: written, Effective: written}
	if len(r.Lifecycle.IgnoreChanges) == 0 || !prior.Exists() {
		return config, nil
	}
	config.Ignored = r.Lifecycle.IgnoreChanges
	config.Effective, err = plan.IgnoreChanges(r.Schema.Block, written, prior.Value, r.Lifecycle.IgnoreChanges)
	return config, err
}
