package activities

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"k8s.io/apimachinery/pkg/types"
)

// Why a data source is read only while the plan is applied, in the terms of Terraform's JSON plan.
const (
	readConfigUnknown     = "read_because_config_unknown"
	readDependencyPending = "read_because_dependency_pending"
)

// askData reads a data source, or plans to read it when the plan is applied, and returns what it holds as far as is
// known. What was read now is recorded once the plan is published.
func (pr *proposal) askData(ctx context.Context, c *ledger.Change, r *resource) (cty.Value, error) {
	c.ProviderConfig = "" // an earlier attempt may have left it
	if r.deleting || pr.plan.Spec.Destroy {
		return pr.leaveData(ctx, c, r)
	}
	look := &evaluator{ctx: ctx, scope: pr.scope}
	config, open, err := look.config(r)
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
	loan, err := pr.scopeFor(true).acquire(ctx, r, slotAndRate)
	if err != nil {
		return cty.NilVal, err
	}
	defer loan.release()
	c.ProviderConfig = loan.config()
	source, err := loan.dataSource(pr.Activities, r)
	if err != nil {
		return cty.NilVal, err
	}
	later := ""
	switch {
	case !known(config), !loan.known:
		later = readConfigUnknown
	case pending || open:
		later = readDependencyPending
	}
	v, diags := source.Unread(config), diag.Diagnostics(nil)
	if later == "" {
		var read cty.Value
		read, diags, err = source.Read(ctx, config)
		if _, put := errors.AsType[*instance.DeferredError](err); put {
			later, err = readDependencyPending, nil
		} else {
			v = read
		}
	} else {
		diags, err = source.Validate(ctx, config)
	}
	if err != nil {
		return cty.NilVal, err
	}
	v = lang.MarkSensitive(r.schema.Block, v)
	if open, err = look.holds(r, postconditions, v); err != nil {
		return cty.NilVal, err
	}
	if open && later == "" {
		// It cannot be told yet whether it is what it should be, and nobody may build on it until then.
		later, v = readDependencyPending, lang.MarkSensitive(r.schema.Block, source.Unread(config))
	}
	c.Diagnostics = lang.WithAddress(diags, r.addr)
	before, p := v, &instance.Planned{Action: v1alpha1.ActionNoOp, Value: v}
	if later != "" {
		before = cty.NullVal(r.schema.Block.ImpliedType())
		p.Action, p.Reason = v1alpha1.ActionRead, later
	}
	return v, describeChange(c, r.schema.Block, instance.State{Value: before}, p)
}

// keptData says whether what is recorded of a data source was read with the same arguments, so that a plan that is to read
// nothing need not read it.
func (pr *proposal) keptData(ctx context.Context, r *resource, config cty.Value) (bool, error) {
	rec, err := pr.Ledger.Instance(ctx, r.ref)
	if err != nil || !rec.Exists() || rec.Object.Generation != r.ref.Generation || rec.SchemaVersion != r.schema.Version || !known(config) {
		return false, err
	}
	v, err := instance.Recorded(&rec.State, r.schema)
	unread := (&instance.DataSource{Schema: r.schema}).Unread(config)
	return err == nil && len(plan.CheckCompatible(r.schema.Block, unread, v)) == 0, err
}

// leaveData is the change of a data source that the plan has no business with: there is nothing to destroy.
func (pr *proposal) leaveData(ctx context.Context, c *ledger.Change, r *resource) (cty.Value, error) {
	v := cty.NullVal(r.schema.Block.ImpliedType())
	rec, err := pr.Ledger.Instance(ctx, r.ref)
	if err != nil {
		return cty.NilVal, err
	}
	c.ProviderConfig = rec.ProviderConfig
	if rec.Exists() && rec.SchemaVersion == r.schema.Version {
		if v, err = instance.Recorded(&rec.State, r.schema); err != nil {
			return cty.NilVal, err
		}
	}
	p := &instance.Planned{Action: v1alpha1.ActionNoOp, Value: v}
	return lang.MarkSensitive(r.schema.Block, v), describeChange(c, r.schema.Block, instance.State{Value: v}, p)
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

// dataSource is the data source that an object stands for.
func (l *configuredProvider) dataSource(a *Activities, r *resource) (*instance.DataSource, error) {
	d := &instance.DataSource{Name: r.addr.Type, Schema: r.schema, Provider: l.ProviderServer, Deferral: true}
	if r.entry.Schema.Meta == nil {
		return d, nil
	}
	var err error
	d.MetaBlock = r.entry.Schema.Meta.Block
	d.Meta, err = a.Catalog.Meta(r.entry, l.cfg)
	return d, err
}

// readData reads a data source that could not be read when the plan was made.
func (s *stepRun) readData(ctx context.Context) error {
	c, r := s.change, s.resource
	ctx, done := s.active.withCancel(ctx)
	defer done()
	defer s.openScope(ctx, r)()
	look := &evaluator{ctx: ctx, scope: s.scope}
	config, _, err := look.config(r)
	if err != nil {
		return s.retryable(err, true)
	}
	if err := s.checkApproved(r, (&instance.DataSource{Schema: r.schema}).Unread(config)); err != nil {
		return err
	}
	loan, err := s.scope.acquire(ctx, r, slotAndRate)
	if err != nil {
		return s.retryable(err, true)
	}
	defer loan.release()
	if loan.config() != c.ProviderConfig {
		return &staleError{fmt.Sprintf("it would be read with the ProviderConfig %q, and the plan was made with %q", loan.config(), c.ProviderConfig)}
	}
	if err := s.checkProviderConfig(ctx, loan.cfg); err != nil {
		return err
	}
	source, err := loan.dataSource(s.Activities, r)
	if err != nil {
		return err
	}
	source.Deferral = false // there is no later any more
	v, diags, err := source.Read(ctx, config)
	s.warnings = append(s.warnings, warningsOf(diags)...)
	if err != nil {
		return s.retryable(err, true)
	}
	if _, err := look.holds(r, postconditions, lang.MarkSensitive(r.schema.Block, v)); err != nil {
		return err // and nobody builds on it
	}
	if err := s.recordData(ctx, s.plan.UID, c, r, v); err != nil {
		return err
	}
	s.after = &v
	return nil
}

// recordData writes what a data source holds to the ledger and to the status of its object, if that is still there.
func (a *Activities) recordData(ctx context.Context, planUID types.UID, c *ledger.Change, r *resource, v cty.Value) error {
	plain, _ := v.UnmarkDeep()
	if plain.IsNull() {
		return nil // it was left alone and never read
	}
	raw, err := ctyjson.Marshal(plain, r.schema.Block.ImpliedType())
	if err != nil {
		return fmt.Errorf("encode %s: %w", r.addr, err)
	}
	sensitive, err := instance.SensitivePaths(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", r.addr, err)
	}
	state := ledger.State{
		Type: r.addr.Type, ProviderConfig: c.ProviderConfig, ProviderVersion: r.entry.Package.Version, SchemaVersion: r.schema.Version,
		Attributes: raw, Sensitive: sensitive, Dependencies: c.Dependencies,
	}
	for attempt := 1; ; attempt++ {
		rec, err := a.Ledger.Instance(ctx, c.Object)
		if err != nil {
			return err
		}
		if rec.Exists() && rec.Object.Generation == c.Object.Generation && reflect.DeepEqual(rec.State, state) && statusOf(r.obj).good() {
			return nil // most data sources say the same each time, and nobody should have to hear of that
		}
		rec.Object, rec.Mode, rec.Provider, rec.Plan, rec.State = c.Object, v1alpha1.ModeData, r.entry.Name, planUID, state
		err = a.Ledger.Save(ctx, rec)
		if errors.Is(err, ledger.ErrConflict) && attempt < attempts {
			continue // another plan read it, too; who comes last knows best
		}
		if err != nil {
			return err
		}
		break
	}
	return a.writeStatus(ctx, c.Object, func(s *status) {
		s.attributes = plan.Attributes(r.schema.Block, v)
		s.ready(c.Object.Generation, "The data source was read.")
	})
}

// dropData removes those of the records without an object that are of data sources and actions: they have no infrastructure
// that would have to be destroyed first.
func (a *Activities) dropData(ctx context.Context, namespace string, orphans map[types.UID]*ledger.Instance) error {
	for _, rec := range orphans {
		if rec.Object.Namespace != namespace || rec.Mode != v1alpha1.ModeData && rec.Mode != v1alpha1.ModeAction {
			continue
		}
		if _, ok := a.Catalog.Get(rec.Provider); !ok {
			continue // its objects cannot be read, so nothing is known of them
		}
		if _, err := a.Objects.Get(ctx, rec.Object); !errors.Is(err, ErrGone) {
			continue // or they cannot be read now; the next plan looks again
		}
		if err := a.Ledger.Forget(ctx, rec); err != nil && !errors.Is(err, ledger.ErrConflict) {
			return err
		}
	}
	return nil
}
