package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
)

const (
	// maxEvaluated is the maximum size, in bytes, of the value of an Evaluation.
	maxEvaluated = 1 << 20
	// maxAddresses is the maximum number of objects that the expression may refer to. Each object needs an access
	// check.
	maxAddresses = 200
)

// Evaluate evaluates an expression over the recorded values with the rights of who, and writes the result to e.Status.
// Errors in the expression are diagnostics in that status. Evaluate returns an error only if the server fails.
func (a *Queries) Evaluate(ctx context.Context, who v1alpha1.Identity, e *v1alpha1.Evaluation) error {
	// A scope without a namespace checks access to each object, including objects in the evaluation's own namespace.
	s := a.ScopeOf(&who, "", nil)
	s.Home = e.Namespace
	ev := &consoleEvaluator{Scope: s, values: map[lang.Address]cty.Value{}}
	v, diags, err := ev.evaluate(ctx, e.Spec.Expression, true)
	if err != nil {
		return fmt.Errorf("evaluate expression: %w", err)
	}
	e.Status = v1alpha1.EvaluationStatus{Diagnostics: s.MaskAll(diags)}
	if diag.HasErrors(diags) {
		return nil
	}
	e.Status.Sensitive = v.ContainsMarked()
	if !e.Status.Sensitive && v.Type() != cty.DynamicPseudoType {
		e.Status.Type = lang.TypeText(v.Type())
	}
	e.Status.Value, err = lang.FormatHCL(v, maxEvaluated)
	if errors.Is(err, lang.ErrTooLong) {
		e.Status = v1alpha1.EvaluationStatus{Diagnostics: diag.Diagnostics{{Severity: v1alpha1.SeverityError,
			Summary: "Value too large",
			Detail:  fmt.Sprintf("The value has more than %d MiB of text. Evaluate a part of it.", maxEvaluated>>20)}}}
		return nil
	}
	return err
}

// consoleEvaluator evaluates one expression.
type consoleEvaluator struct {
	*scope.Scope
	// values maps the addresses in the expression to their values.
	values map[lang.Address]cty.Value
	diags  diag.Diagnostics
}

// evaluate evaluates a text. If bare is true, it is an expression even without "${" and "}" around it.
func (ev *consoleEvaluator) evaluate(ctx context.Context, text string, bare bool) (cty.Value, diag.Diagnostics, error) {
	expr, diags := lang.ParseExpression(text, "",
		lang.ExpressionOptions{Functions: ev.Functions(), Namespace: ev.Home, Bare: bare, Budget: lang.BudgetOf(ctx)})
	if diag.HasErrors(diags) {
		return cty.NilVal, diags, nil
	}
	if n := len(expr.Addresses()); n > maxAddresses {
		return cty.NilVal, diag.Diagnostics{{Severity: v1alpha1.SeverityError, Summary: "Too many references",
			Detail: fmt.Sprintf("The expression refers to %d objects, and the limit is %d. Evaluate it in parts.", n,
				maxAddresses)}}, nil
	}
	for _, r := range expr.References() {
		if err := ev.read(ctx, r); err != nil {
			return cty.NilVal, nil, err
		}
	}
	if len(ev.diags) > 0 {
		return cty.NilVal, append(diags, ev.diags...), nil
	}
	v, more := expr.With(lang.EvaluationContext{Budget: lang.BudgetOf(ctx)}).Evaluate(
		func(a lang.Address) (cty.Value, bool) { v, ok := ev.values[a]; return v, ok }, cty.NilVal)
	return v, append(diags, more...), nil
}

// read reads the object of a reference, or reports why it has no value.
func (ev *consoleEvaluator) read(ctx context.Context, r lang.Reference) error {
	if _, done := ev.values[r.Address]; done {
		return ev.check(ctx, r, true)
	}
	full := r.Address
	if full.Namespace == "" {
		full.Namespace = ev.Home
	}
	var v cty.Value
	var err error
	switch {
	case full.Mode == v1alpha1.ModeEphemeral:
		err = &ephemeralError{}
	case full.Stored():
		v, err = ev.Keys(ctx, full)
		// Omit the address, which the reference already shows.
		if absent, ok := errors.AsType[*scope.AbsentError](err); ok {
			err = absent
		}
		if forbidden, ok := errors.AsType[*scope.ForbiddenError](err); ok {
			err = forbidden
		}
	case full.IsModuleOutput():
		v, err = ev.ModuleOutput(ctx, full)
	case ev.Block(full) != nil:
		v, err = ev.resourceOrSet(ctx, full)
	}
	if f, ok := errors.AsType[*diag.Failure](err); ok && full.IsModuleOutput() {
		ev.diags = append(ev.diags, f.Diagnostics...)
		return nil
	}
	if summary := problemOf(err); summary != "" {
		ev.report(r, summary, err)
		return nil
	}
	if err != nil {
		return err
	}
	if v != cty.NilVal {
		ev.values[r.Address] = v
		ev.NoteSecrets(v)
	}
	return ev.check(ctx, r, v != cty.NilVal)
}

// unreadableError is the error for a record that does not fit the installed provider's schema.
type unreadableError struct{ error }

// problemOf returns the summary for an error about a reference, or "" for an error of the server.
func problemOf(err error) string {
	switch {
	case scope.IsForbidden(err):
		return "Reference without the right to read"
	case is[*scope.AbsentError](err):
		return "Reference to a missing resource"
	case is[*unreadableError](err):
		return "Recorded value cannot be read"
	case is[*ephemeralError](err):
		return "Ephemeral values are not recorded"
	}
	return ""
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// ephemeralError is the error for a reference to an ephemeral resource.
type ephemeralError struct{}

func (*ephemeralError) Error() string {
	return "the value of an ephemeral resource is never recorded, and an evaluation opens none; refer to something else"
}

func (ev *consoleEvaluator) report(r lang.Reference, summary string, err error) {
	for _, d := range diag.FromErrors(v1alpha1.SeverityError, summary, []error{err}) {
		d.Attribute = r.Field
		ev.diags = append(ev.diags, d)
	}
}

// resourceOrSet returns the value of a resource, or of a ResourceSet with all its instances.
func (ev *consoleEvaluator) resourceOrSet(ctx context.Context, addr lang.Address) (cty.Value, error) {
	v, err := ev.resource(ctx, addr)
	if err != nil || v != cty.NilVal {
		return v, err
	}
	set, err := scope.SetAt(ctx, ev.Sources, addr.Namespace, addr)
	if err != nil || set == nil {
		return cty.NilVal, err
	}
	items, attrs := make([]cty.Value, set.Len()), make(map[string]cty.Value, set.Len())
	for i := range items {
		key := set.Key(i)
		if items[i], err = ev.resource(ctx, addr.Instance(key)); err != nil {
			return cty.NilVal, err
		}
		if items[i] == cty.NilVal {
			items[i] = lang.Unknown(ev.Block(addr))
		}
		attrs[key.Text()] = items[i]
	}
	if set.Repeats == lang.RepeatCount {
		return cty.TupleVal(items), nil
	}
	return cty.ObjectVal(attrs), nil
}

// resource returns the recorded value of a resource or data source. It returns an unknown value before the first apply,
// and NilVal if the object does not exist. It withholds sensitive values from a user who may not read the state.
func (ev *consoleEvaluator) resource(ctx context.Context, addr lang.Address) (cty.Value, error) {
	v := cty.NilVal
	for r, err := range ev.Resources(ctx, addr) {
		if err != nil {
			return cty.NilVal, err
		}
		rec, err := ev.Ledger.Instance(ctx, r.Ref)
		if err != nil {
			return cty.NilVal, err
		}
		if !rec.Exists() {
			if v == cty.NilVal {
				v = lang.Unknown(r.Schema.Block)
			}
			continue
		}
		if v, err = instance.Recorded(&rec.State, r.Schema); err != nil {
			return cty.NilVal, &unreadableError{err}
		}
		v = lang.MarkSensitive(r.Schema.Block, v)
		if !v.ContainsMarked() {
			return v, nil
		}
		plural, err := ev.Objects.Plural(r.Ref)
		if err != nil {
			return cty.NilVal, err
		}
		err = ev.MayRead(ctx, store.Right{Namespace: addr.Namespace, Group: v1alpha1.ProviderGroup(r.Entry.Name),
			Resource: plural + "/state", Name: addr.ObjectName()})
		if scope.IsForbidden(err) {
			return lang.Withhold(v)
		}
		return v, err
	}
	return v, nil
}

// check reports a type, object or attribute that does not exist, and suggests a similar name.
func (ev *consoleEvaluator) check(ctx context.Context, r lang.Reference, exists bool) error {
	var failed error
	ev.diags = append(ev.diags, lang.CheckReferences([]lang.Reference{r}, lang.Catalog{
		Block:  ev.Block,
		Exists: func(lang.Address) bool { return exists },
		Repeats: func(addr lang.Address) lang.Repetition {
			set, err := scope.SetAt(ctx, ev.Sources, ev.Home, addr)
			if err != nil || set == nil {
				return ""
			}
			return set.Repeats
		},
		Types: ev.Catalog.TypeNamesOf,
		Names: func(a lang.Address) []string {
			names, err := ev.names(ctx, a)
			failed = err
			return names
		},
	})...)
	return failed
}

// names lists the objects of a type, if the user may read all of them.
func (ev *consoleEvaluator) names(ctx context.Context, of lang.Address) ([]string, error) {
	for _, provider := range ev.Catalog.ProvidersOf(of.Mode, of.Type) {
		group := v1alpha1.ProviderGroup(provider)
		plural, err := ev.Objects.Plural(v1alpha1.ObjectReference{APIVersion: group + "/" + v1alpha1.ResourceVersion,
			Kind: of.Kind(), Namespace: ev.Home})
		if err != nil {
			return nil, err
		}
		err = ev.MayRead(ctx, store.Right{Namespace: ev.Home, Group: group, Resource: plural, Name: ""})
		if scope.IsForbidden(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	view, err := ev.Index.View(ctx, ev.Home)
	if err != nil {
		return nil, err
	}
	return view.Names(of.Mode, of.Type), nil
}
