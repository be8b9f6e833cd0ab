package planning

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// This file finds the errors because of which no plan of a namespace is possible. Without the objects that they are
// about, further errors about addresses and types would be false.

// noteProblems adds these errors to a survey.
func (s *survey) noteProblems(ctx context.Context) error {
	view := s.View
	unready, err := s.planner.unready(ctx, s.outline)
	s.diags = slices.Concat(s.diags, unready,
		unknownInstances(kindSet, view.Problems), unknownInstances(kindModule, view.ModuleProblems))
	if err != nil || len(s.diags) > 0 {
		return err
	}
	hidden, err := s.planner.hidden(ctx, view)
	if err != nil {
		return err
	}
	s.diags = append(duplicates(view), hidden...)
	if view.TooManyWhole {
		s.diags = append(s.diags, v1alpha1.Diagnostic{
			Severity: v1alpha1.SeverityError, Summary: "Too many references to whole ResourceSets",
			Detail: fmt.Sprintf("Each object that refers to a whole ResourceSet depends on all its instances, and a namespace has at most %d such dependencies. "+
				"Refer to single instances, as in sim_network.net[count.index], or split the sets.", index.MaxWhole)})
	}
	return nil
}

// unready returns an error for each object whose provider is not ready, or lacks its type.
func (a *Planner) unready(ctx context.Context, o *outline) (out diag.Diagnostics, err error) {
	for _, known := range o.unreadyObjects() {
		u := outlineOf(known, o.namespace)
		_, reason := resource.Of(u, a.Catalog)
		if reason == nil { // the index could not decode the lifecycle, or read the object before the provider was ready
			if u, err = a.Objects.Get(ctx, known.Ref(o.namespace)); err == nil {
				_, reason = resource.Of(u, a.Catalog)
			}
			if store.IgnoreGone(err) != nil {
				return nil, err
			}
		}
		if reason == nil {
			return nil, errOutdated
		}
		out = append(out, notReady(u, reason))
	}
	return out, nil
}

// unreadyObjects returns the objects whose provider is not ready, in the order of a list.
func (o *outline) unreadyObjects() (out []*index.Object) {
	slots := slices.Clone(o.unready)
	slices.SortFunc(slots, o.before)
	for _, i := range slots {
		out = append(out, o.Nodes[i].Object)
	}
	for _, twin := range o.Duplicates {
		if _, ok := o.catalog.Get(twin.Provider); !ok || twin.Has(index.Unready) {
			out = append(out, twin)
		}
	}
	return out
}

// notReady returns the error for an object that resource.Of cannot decode.
func notReady(u *unstructured.Unstructured, reason error) v1alpha1.Diagnostic {
	return lang.Problem(resource.AddressOf(u.GetKind(), u.GetName()), "", "Provider not ready", reason.Error())
}

const summaryAmbiguous = "Ambiguous address"

// duplicates returns an error for each address that several objects or ResourceSets have.
func duplicates(view *index.View) (out diag.Diagnostics) {
	for _, o := range view.Duplicates {
		first, second := o.Provider, o.Provider
		if slot, ok := view.Slot(o.Address()); ok {
			first = view.Nodes[slot].Object.Provider
		}
		if first > second {
			first, second = second, first
		}
		out = append(out, lang.Problem(o.Address(), "", summaryAmbiguous, fmt.Sprintf(
			"%s of the provider %q and of the provider %q have the same address. Rename one of the objects.",
			o.Address(), first, second)))
	}
	for _, addr := range view.Hiding() {
		out = append(out, lang.Problem(addr, "", summaryAmbiguous, fmt.Sprintf(
			"%s is an object, and the template of a ResourceSet, too. Rename one of them.", addr)))
	}
	for _, addr := range slices.SortedFunc(maps.Keys(view.Shared), lang.Address.Compare) {
		names := view.Shared[addr]
		out = append(out, lang.Problem(addr, "", summaryAmbiguous, fmt.Sprintf(
			"The templates of the ResourceSets %q and %q have the same address. Rename one of them.", names[0],
			names[1])))
	}
	return out
}

// hidden returns an error for each instance that left its set while an instance of another set has its address. No plan
// would destroy the infrastructure of such an instance. If the other instance left its set, too, the plan destroys that
// one, and the next plan finds the hidden one.
func (a *Planner) hidden(ctx context.Context, view *index.View) (out diag.Diagnostics, err error) {
	for _, ref := range view.Hidden {
		addr := resource.AddressOf(ref.Kind, ref.Name)
		slot, ok := view.Slot(addr)
		if !ok {
			continue
		}
		other, err := a.Objects.Get(ctx, view.Nodes[slot].Object.Ref(ref.Namespace))
		if errors.Is(err, store.ErrGone) {
			return nil, errOutdated
		}
		if err != nil {
			return nil, err
		}
		rec, err := a.Ledger.Instance(ctx, ref) // another plan may have ended meanwhile
		if err != nil {
			return nil, err
		}
		if resourceset.IsLeaving(other) || !rec.Living() && rec.Intent == nil {
			continue
		}
		out = append(out, lang.Problem(addr, "", summaryAmbiguous, fmt.Sprintf(
			"%s left the ResourceSet %q and still has infrastructure, and another ResourceSet has an instance with this address. Rename the template of the other one, apply a plan that destroys the infrastructure, and take the name then.",
			addr, ref.Set)))
	}
	return out, nil
}

// unknownInstances returns an error for each ResourceSet, or each Module, whose instances are not known. Otherwise, a
// plan would destroy the existing instances.
func unknownInstances(kind string, problems map[string]string) (out diag.Diagnostics) {
	rest := "without its keys"
	if kind == kindModule {
		rest = "until they are known"
	}
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		d := v1alpha1.Diagnostic{
			Severity: v1alpha1.SeverityError, Summary: fmt.Sprintf("Instances of a %s are not known", kind),
			Detail: fmt.Sprintf("%s %q: %s. No plan of the namespace is possible %s.", kind, name,
				strings.TrimSuffix(problems[name], "."), rest)}
		if kind == kindModule { // the server withholds the text from readers of the plan who may not read the files
			d.Address = v1alpha1.ModulePath("", name, nil)
		}
		out = append(out, d)
	}
	return out
}
