package planning

import (
	"context"
	"errors"
	"slices"

	"github.com/hykube/hykube/activities/changes"
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

// The action reasons of a data source that is read during the apply, with the names of Terraform's JSON plan.
const (
	readConfigUnknown     = "read_because_config_unknown"
	readDependencyPending = "read_because_dependency_pending"
)

// planDataSource plans a data source.
func (pr *proposal) planDataSource(ctx context.Context, c *ledger.Change, r *resource.Resource) (*expected, error) {
	rec, err := pr.Ledger.Instance(ctx, r.Ref)
	if err != nil {
		return nil, err
	}
	v, err := pr.readOrPlanData(ctx, c, r)
	recorded := recordedValue(&rec.State, r.Schema)
	return &expected{recorded: recorded, prior: recorded, planned: v}, err
}

// readOrPlanData reads a data source, or plans to read it during the apply. It returns the value, which may be partly
// unknown. The value is recorded when the plan is published.
func (pr *proposal) readOrPlanData(ctx context.Context, c *ledger.Change, r *resource.Resource) (cty.Value, error) {
	c.ProviderConfig = "" // an earlier attempt may have set it
	if r.Deleting || pr.plan.Spec.Destroy {
		return pr.keepData(ctx, c, r)
	}
	evaluator := &scope.Evaluator{Ctx: ctx, Scope: pr.scope.WrittenBy(c.Contributors)}
	config, open, err := evaluator.Arguments(r)
	if err != nil {
		return cty.NilVal, err
	}
	pending, err := pr.pending(ctx, c, r)
	if err != nil {
		return cty.NilVal, err
	}
	if pr.plan.Spec.Refresh == v1alpha1.RefreshNone && !pending && !open {
		kept, err := pr.hasCurrentData(ctx, r, config)
		if err != nil {
			return cty.NilVal, err
		}
		if kept {
			return pr.keepData(ctx, c, r)
		}
	}
	configured, err := pr.scopeFor(true).Acquire(ctx, r, session.SlotAndRate)
	if err != nil {
		return cty.NilVal, err
	}
	defer configured.Release()
	c.ProviderConfig = configured.ConfigName()
	bind(c, configured)
	ctx = pr.withAnswers(ctx, c, r, configured)
	source, err := pr.scope.DataSource(ctx, configured, r)
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
		// A postcondition is unknown, so dependants must wait for the read during the apply.
		later, v = readDependencyPending, lang.MarkSensitive(r.Schema.Block, source.Unread(config))
	}
	c.Diagnostics = lang.WithAddress(diags, r.Address)
	return v, pr.describeData(c, r, v, later)
}

// describeData describes the change of a data source. later is the reason to read it during the apply, or "" if the
// plan has read it.
func (pr *proposal) describeData(c *ledger.Change, r *resource.Resource, v cty.Value, later string) error {
	if later != "" {
		before := instance.State{Value: cty.NullVal(r.Schema.Block.ImpliedType())}
		return describeChange(c, r.Schema.Block, before,
			&instance.Planned{Action: v1alpha1.ActionRead, Value: v, Reason: later})
	}
	if _, err := changes.DataState(pr.Ledger, c, r, v); err != nil {
		return err
	}
	return describeChange(c, r.Schema.Block, instance.State{Value: v},
		&instance.Planned{Action: v1alpha1.ActionNoOp, Value: v})
}

// readData reads a data source. If reason is not empty, it only validates the arguments. later is the reason to read
// during the apply: the given one, or that the provider deferred the read.
func readData(ctx context.Context, source *instance.DataSource, config cty.Value,
	reason string) (v cty.Value, later string, diags diag.Diagnostics, err error) {
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

// hasCurrentData reports whether the recorded value of a data source was read with the same arguments. A plan without
// refresh then need not read it.
func (pr *proposal) hasCurrentData(ctx context.Context, r *resource.Resource, config cty.Value) (bool, error) {
	rec, err := pr.Ledger.Instance(ctx, r.Ref)
	if err != nil || !rec.Exists() || rec.Object.Generation != r.Ref.Generation ||
		rec.SchemaVersion != r.Schema.Version || !scope.Known(config) {
		return false, err
	}
	v, err := instance.Recorded(&rec.State, r.Schema)
	unread := (&instance.DataSource{Schema: r.Schema}).Unread(config)
	return err == nil && len(plan.CheckCompatible(r.Schema.Block, unread, v)) == 0, err
}

// keepData returns the change of a data source that the plan does not read: a NoOp with the recorded value.
func (pr *proposal) keepData(ctx context.Context, c *ledger.Change, r *resource.Resource) (cty.Value, error) {
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

// pending reports whether the plan changes a resource that the data source depends on, by a reference or by
// lifecycle.dependsOn. A read now would return outdated data, even if all arguments are known:
// https://developer.hashicorp.com/terraform/language/data-sources#data-resource-behavior As in Terraform, another data
// source does not count. Indirect dependencies, and those through variables, local values and outputs of a Module,
// count only for conditions, which their changes may make true.
func (pr *proposal) pending(ctx context.Context, c *ledger.Change, r *resource.Resource) (bool, error) {
	queue := slices.Clone(c.ReadAfter)
	conditions := len(r.Lifecycle.Preconditions)+len(r.Lifecycle.Postconditions) > 0
	if conditions {
		queue = slices.Clone(c.DependsOn)
	} else {
		queue = slices.DeleteFunc(queue, func(d int32) bool {
			a, err := lang.ParseAddress(pr.briefOf(d).Address)
			return err == nil && !r.Names(a)
		})
	}
	seen := map[int32]bool{}
	for ; len(queue) > 0; queue = queue[1:] {
		d := queue[0]
		if seen[d] {
			continue
		}
		seen[d] = true
		if effect, err := pr.hasEffect(ctx, d); err != nil || effect {
			return effect, err
		}
		if conditions {
			queue = append(queue, pr.briefOf(d).DependsOn...)
		}
	}
	return false, nil
}

// hasEffect reports whether a planned change affects infrastructure. Data sources have none, and neither has the record
// of a resource that is gone or has drifted. It examines each change once.
func (pr *proposal) hasEffect(ctx context.Context, index int32) (bool, error) {
	pr.mu.Lock()
	effect, known := pr.effects[index]
	pr.mu.Unlock()
	if known {
		return effect, nil
	}
	c, err := pr.Ledger.Change(ctx, pr.plan.UID, index)
	if err != nil {
		return false, err
	}
	switch {
	case c.Mode == v1alpha1.ModeData, c.Action == v1alpha1.ActionNoOp, c.Action == v1alpha1.ActionRead:
	case c.Action == v1alpha1.ActionForget && c.ActionReason == plan.ReasonGone:
	default:
		effect = true
	}
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.effects == nil {
		pr.effects = map[int32]bool{}
	}
	pr.effects[index] = effect
	return effect, nil
}

// dropData removes the records of data sources and actions without an object. No destroy must precede that, because
// they have no infrastructure.
func (a *Planner) dropData(ctx context.Context, namespace string, orphans map[types.UID]*ledger.Instance) error {
	for _, rec := range orphans {
		if rec.Object.Namespace != namespace || rec.Mode.HasInfrastructure() {
			continue
		}
		if _, ok := a.Catalog.Get(rec.Provider); !ok {
			continue // its objects cannot be read, so their existence is unknown
		}
		if _, err := a.Objects.Get(ctx, rec.Object); !errors.Is(err, store.ErrGone) {
			continue // the object exists, or cannot be read now
		}
		if err := a.Ledger.Forget(ctx, rec); err != nil && !errors.Is(err, ledger.ErrConflict) {
			return err
		}
	}
	return nil
}
