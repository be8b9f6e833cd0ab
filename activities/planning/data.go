package planning

import (
	"context"
	"errors"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/types"
)

// Why a data source is read only while the plan is applied, in the terms of Terraform's JSON plan.
const (
	readConfigUnknown     = "read_because_config_unknown"
	readDependencyPending = "read_because_dependency_pending"
)

// askData reads a data source, or plans to read it when the plan is applied, and returns what it holds as far as is
// known. What was read now is recorded once the plan is published.
func (pr *proposal) askData(ctx context.Context, c *ledger.Change, r *resource.Resource) (cty.Value, error) {
	c.ProviderConfig = "" // an earlier attempt may have left it
	if r.Deleting || pr.plan.Spec.Destroy {
		return pr.leaveData(ctx, c, r)
	}
	evaluator := &scope.Evaluator{Ctx: ctx, Scope: pr.scope}
	config, open, err := evaluator.Arguments(r)
	if err != nil {
		return cty.NilVal, err
	}
	pending, err := pr.pending(ctx, c)
	if err != nil {
		return cty.NilVal, err
	}
	if pr.plan.Spec.Refresh == v1alpha1.RefreshNone && !pending && !open {
		kept, err := pr.keptData(ctx, r, config)
		if err != nil {
			return cty.NilVal, err
		}
		if kept {
			return pr.leaveData(ctx, c, r)
		}
	}
	configured, err := pr.scopeFor(true).Acquire(ctx, r, session.SlotAndRate)
	if err != nil {
		return cty.NilVal, err
	}
	defer configured.Release()
	c.ProviderConfig = configured.ConfigName()
	source, err := pr.scope.DataSource(configured, r)
	if err != nil {
		return cty.NilVal, err
	}
	later := ""
	switch {
	case !scope.Known(config), !configured.Known:
		later = readConfigUnknown
	case pending || open:
		later = readDependencyPending
	}
	v, later, diags, err := readData(ctx, source, config, later)
	if err != nil {
		return cty.NilVal, err
	}
	v = lang.MarkSensitive(r.Schema.Block, v)
	if open, err = evaluator.Holds(r, resource.Postconditions, v); err != nil {
		return cty.NilVal, err
	}
	if open && later == "" {
		// It cannot be told yet whether it is what it should be, and nobody may build on it until then.
		later, v = readDependencyPending, lang.MarkSensitive(r.Schema.Block, source.Unread(config))
	}
	c.Diagnostics = lang.WithAddress(diags, r.Address)
	before, p := v, &instance.Planned{Action: v1alpha1.ActionNoOp, Value: v}
	if later != "" {
		before = cty.NullVal(r.Schema.Block.ImpliedType())
		p.Action, p.Reason = v1alpha1.ActionRead, later
	}
	return v, describeChange(c, r.Schema.Block, instance.State{Value: before}, p)
}

// readData reads a data source, or validates its arguments when a reason to read it later is given. The reason that it returns is that one,
// or that the provider put the read off.
func readData(ctx context.Context, source *instance.DataSource, config cty.Value, reason string) (v cty.Value, later string, diags diag.Diagnostics, err error) {
	if reason != "" {
		diags, err = source.Validate(ctx, config)
		return source.Unread(config), reason, diags, err
	}
	v, diags, err = source.Read(ctx, config)
	if _, deferred := errors.AsType[*instance.DeferredError](err); deferred {
		return source.Unread(config), readDependencyPending, diags, nil
	}
	return v, "", diags, err
}

// keptData says whether what is recorded of a data source was read with the same arguments, so that a plan that is to read
// nothing need not read it.
func (pr *proposal) keptData(ctx context.Context, r *resource.Resource, config cty.Value) (bool, error) {
	rec, err := pr.Ledger.Instance(ctx, r.Ref)
	if err != nil || !rec.Exists() || rec.Object.Generation != r.Ref.Generation || rec.SchemaVersion != r.Schema.Version || !scope.Known(config) {
		return false, err
	}
	v, err := instance.Recorded(&rec.State, r.Schema)
	unread := (&instance.DataSource{Schema: r.Schema}).Unread(config)
	return err == nil && len(plan.CheckCompatible(r.Schema.Block, unread, v)) == 0, err
}

// leaveData is the change of a data source that the plan has no business with: there is nothing to destroy.
func (pr *proposal) leaveData(ctx context.Context, c *ledger.Change, r *resource.Resource) (cty.Value, error) {
	v := cty.NullVal(r.Schema.Block.ImpliedType())
	rec, err := pr.Ledger.Instance(ctx, r.Ref)
	if err != nil {
		return cty.NilVal, err
	}
	c.ProviderConfig = rec.ProviderConfig
	if rec.Exists() && rec.SchemaVersion == r.Schema.Version {
		if v, err = instance.Recorded(&rec.State, r.Schema); err != nil {
			return cty.NilVal, err
		}
	}
	p := &instance.Planned{Action: v1alpha1.ActionNoOp, Value: v}
	return lang.MarkSensitive(r.Schema.Block, v), describeChange(c, r.Schema.Block, instance.State{Value: v}, p)
}

// pending says whether the plan is to change something that the data source depends on, by lifecycle.dependsOn or because
// its spec refers to it, or that another data source does which it depends on. A read would say what was there before, also when all
// values are known: https://developer.hashicorp.com/terraform/language/data-sources#data-resource-behavior
func (pr *proposal) pending(ctx context.Context, c *ledger.Change) (bool, error) {
	for _, d := range c.ReadAfter {
		if pending, err := pr.changes(ctx, d); err != nil || pending {
			return pending, err
		}
	}
	return false, nil
}

// changes says whether a change that was closed does something; of a data source, whether one does that it waits for. It looks at
// each change once.
func (pr *proposal) changes(ctx context.Context, index int32) (bool, error) {
	pr.mu.Lock()
	does, known := pr.does[index]
	pr.mu.Unlock()
	if known {
		return does, nil
	}
	c, err := pr.Ledger.Change(ctx, pr.plan.UID, index)
	if err != nil {
		return false, err
	}
	does = c.Mode != v1alpha1.ModeData && c.Action != v1alpha1.ActionNoOp
	for k := 0; k < len(c.ReadAfter) && !does; k++ {
		if does, err = pr.changes(ctx, c.ReadAfter[k]); err != nil {
			return false, err
		}
	}
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.does == nil {
		pr.does = map[int32]bool{}
	}
	pr.does[index] = does
	return does, nil
}

// dropData removes those of the records without an object that are of data sources and actions: they have no infrastructure
// that would have to be destroyed first.
func (a *Planner) dropData(ctx context.Context, namespace string, orphans map[types.UID]*ledger.Instance) error {
	for _, rec := range orphans {
		if rec.Object.Namespace != namespace || rec.Mode != v1alpha1.ModeData && rec.Mode != v1alpha1.ModeAction {
			continue
		}
		if _, ok := a.Catalog.Get(rec.Provider); !ok {
			continue // its objects cannot be read, so nothing is known of them
		}
		if _, err := a.Objects.Get(ctx, rec.Object); !errors.Is(err, store.ErrGone) {
			continue // or they cannot be read now; the next plan looks again
		}
		if err := a.Ledger.Forget(ctx, rec); err != nil && !errors.Is(err, ledger.ErrConflict) {
			return err
		}
	}
	return nil
}
