package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/types"
)

// This file is the oracle of the surveys: a survey of all objects, which needs no index.

// loadAll loads all objects of the plan's namespace with their records.
func (a *Planner) loadAll(ctx context.Context, po *v1alpha1.Plan) (*survey, error) {
	records := map[types.UID]*ledger.Instance{}
	for rec, err := range a.Ledger.Instances(ctx, po.Namespace) {
		if err != nil {
			return nil, err
		}
		records[rec.Object.UID] = rec
	}
	s, _ := a.newSurvey(ctx, po)
	s.sets, s.modules = setsIn(ctx, a.Sources, po.Namespace, &s.setsFailed), modulesIn(ctx, a.Sources, po.Namespace, &s.setsFailed)
	configs := a.ProviderConfigs(ctx, po)
	for obj, err := range a.Objects.List(ctx, po.Namespace) {
		if problem, ok := errors.AsType[*store.SetError](err); ok {
			s.diags = append(s.diags, unknownInstances(problem.Kind, map[string]string{problem.Name: problem.Problem})...)
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		r, err := resource.Of(obj, a.Catalog)
		if err != nil {
			s.diags = append(s.diags, notReady(obj, err))
			continue
		}
		if resourceset.KeysUnknown(obj) { // no plan changes it
			delete(records, r.Ref.UID)
			continue
		}
		n, err := newNode(po, r, records[r.Ref.UID], configs)
		if err != nil {
			return nil, err
		}
		delete(records, r.Ref.UID)
		s.nodes = append(s.nodes, n)
	}
	if err := a.noteHidden(ctx, s, records); err != nil {
		return nil, err
	}
	return s, cmp.Or(s.setsFailed, a.dropData(ctx, po.Namespace, records))
}

// noteHidden adds an error for each record of an instance that left its set while an instance of another set has its
// address. No plan would destroy the infrastructure of this record. records are those without an object. If the other
// instance left its set, too, the plan destroys that one, and the next plan finds the record.
func (a *Planner) noteHidden(ctx context.Context, s *survey, records map[types.UID]*ledger.Instance) error {
	leaving := map[lang.Address]bool{}
	for _, n := range s.nodes {
		if resourceset.IsLeaving(n.Object) {
			leaving[n.Address] = true
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(records)) {
		addr := resource.AddressOf(records[uid].Object.Kind, records[uid].Object.Name)
		if records[uid].Object.Set == "" || leaving[addr] || !records[uid].Mode.HasInfrastructure() {
			continue
		}
		rec, err := a.Ledger.Instance(ctx, records[uid].Object) // another plan may have ended meanwhile
		if err != nil {
			return err
		}
		if rec.Living() || rec.Intent != nil {
			s.diags = append(s.diags, lang.Problem(addr, "", "Ambiguous address", fmt.Sprintf(
				"%s left the ResourceSet %q and still has infrastructure, and another ResourceSet has an instance with this address. Rename the template of the other one, apply a plan that destroys the infrastructure, and take the name then.",
				addr, rec.Object.Set)))
		}
	}
	return nil
}
