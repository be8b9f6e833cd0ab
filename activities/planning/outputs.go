package planning

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resourceset"
)

// This file finds the outputs of Modules whose values a plan changes.

const (
	// maxOutputs is the maximum number of outputs of a Plan, and maxOutputBytes that of bytes in their values.
	maxOutputs     = 100
	maxOutputBytes = 64 << 10
	// maxOutputChanges is the maximum number of changes of a plan whose outputs are evaluated, and maxBehind that of
	// resources behind one output.
	maxOutputChanges = 10_000
	maxBehind        = 1_000
)

// noteOutput notes a change on which the value of an output may depend.
func (t *totals) noteOutput(c *ledger.Change) {
	addr, err := lang.ParseAddress(c.Address)
	if err == nil && c.Deposed == "" && len(c.Planned) > 0 && len(t.planned) <= maxOutputChanges {
		t.planned[addr] = c.Index
	}
}

// outputs returns the outputs that the changes of a plan change, of the Modules with such changes, sorted. planned has
// the indexes of the changes. Those that cannot be evaluated are left out: who refers to them gets the reason.
func (a *Planner) outputs(ctx context.Context, po *v1alpha1.Plan,
	planned map[lang.Address]int32) (out []v1alpha1.PlanOutput, err error) {
	names, touched := map[string]bool{}, map[lang.Address]bool{}
	for addr := range planned {
		set, _, _ := addr.Set()
		touched[addr], touched[set] = true, true
		if addr.Module != "" {
			names[v1alpha1.RootModule(addr.Module)] = true
		}
	}
	if len(names) == 0 || len(planned) > maxOutputChanges || po.Spec.Destroy || po.Spec.RefreshOnly {
		return nil, nil
	}
	var failed error
	module := modulesIn(ctx, a.Sources, po.Namespace, &failed)
	before := a.ScopeOf(po.Status.RequestedBy, po.Namespace,
		func(lang.Address) (cty.Value, bool) { return cty.NilVal, false })
	after := a.ScopeOf(po.Status.RequestedBy, po.Namespace, func(addr lang.Address) (cty.Value, bool) {
		i, ok := planned[addr]
		if !ok {
			return cty.NilVal, false
		}
		v, err := a.plannedAt(ctx, po.UID, i, addr)
		if err != nil {
			failed = errors.Join(failed, err)
			return cty.DynamicVal, true
		}
		return v, true
	})
	defer func() {
		closing := context.WithoutCancel(ctx)
		err = errors.Join(err, before.Close(closing), after.Close(closing))
	}()
	size := 0
	for _, name := range slices.Sorted(maps.Keys(names)) {
		m := module(name)
		if m == nil || m.Problem != "" || m.Deleting != nil {
			continue
		}
		for _, output := range slices.Sorted(maps.Keys(m.Outputs)) {
			addr := lang.OutputOf("", name, output)
			behind := resourceset.Behind(addr, module)
			if !slices.ContainsFunc(behind, func(a lang.Address) bool { return touched[a] }) ||
				resourcesBehind(behind, module) > maxBehind {
				continue
			}
			now, found, err := after.Value(ctx, addr)
			if err != nil || !found {
				continue
			}
			was, found, err := before.Value(ctx, addr)
			if err != nil || !found {
				was = cty.DynamicVal
			}
			if o := outputChange(was, now, &size); o != nil && len(out) < maxOutputs {
				o.Module, o.Name = name, output
				out = append(out, *o)
			}
		}
	}
	return out, errors.Join(failed, ctx.Err())
}

// resourcesBehind counts the resources behind an output.
func resourcesBehind(behind []lang.Address, module func(string) *resourceset.Module) (n int) {
	for _, addr := range behind {
		n++
		if addr.Module == "" {
			continue
		}
		if m := module(v1alpha1.RootModule(addr.Module)); m != nil && m.Expansion != nil {
			if block := m.BlockAt(addr); block != nil {
				n += block.Len()
			}
		}
	}
	return n
}

// plannedAt returns the planned value of a change.
func (a *Planner) plannedAt(ctx context.Context, plan types.UID, i int32, addr lang.Address) (cty.Value, error) {
	c, err := a.Ledger.Change(ctx, plan, i)
	if err != nil {
		return cty.NilVal, err
	}
	provider, _ := v1alpha1.ProviderOfGroup(kschema.FromAPIVersionAndKind(c.Object.APIVersion, c.Object.Kind).Group)
	e, _ := a.Catalog.Get(provider)
	of := e.Type(addr.Mode, addr.Type)
	if of == nil { // the Provider was removed meanwhile
		return cty.DynamicVal, nil
	}
	v, err := changes.PlannedValue(c, of.Block)
	if err != nil {
		return cty.NilVal, err
	}
	return lang.MarkSensitive(of.Block, v), nil
}

// outputChange returns what a plan says about an output, given its values; nil if they are equal. size counts the bytes
// of all values.
func outputChange(before, after cty.Value, size *int) *v1alpha1.PlanOutput {
	o := &v1alpha1.PlanOutput{Sensitive: before.ContainsMarked() || after.ContainsMarked()}
	before, _ = before.UnmarkDeep()
	after, _ = after.UnmarkDeep()
	o.AfterUnknown = !after.IsWhollyKnown()
	switch {
	case !o.AfterUnknown && before.RawEquals(after), after.IsKnown() && after.IsNull() && !before.IsWhollyKnown():
		return nil
	case o.Sensitive:
		return o
	}
	encode := func(v cty.Value) *v1alpha1.JSON {
		if !v.IsWhollyKnown() {
			return nil
		}
		raw, err := ctyjson.Marshal(v, v.Type())
		if *size += len(raw); err != nil || *size > maxOutputBytes {
			return nil
		}
		return &v1alpha1.JSON{Raw: raw}
	}
	o.Before, o.After = encode(before), encode(after)
	return o
}
