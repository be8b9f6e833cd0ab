package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/types"
)

// node is an object of the namespace during a survey.
type node struct {
	*resource.Resource
	record *ledger.Instance
	// wanted is false if the plan destroys the object's infrastructure.
	wanted bool
	resource.Expressions
	// configVersion is the version of the ProviderConfig; see scope.VersionOfConfig.
	configVersion string
	// config is the ProviderConfig; nil if there is none.
	config *scope.ProviderConfigRef
	// account has the arguments of config and their writers, if these may contribute; see survey.configWriters.
	account *ledger.Account
	// takenBack are users with what they wrote and what is now as it was last applied.
	takenBack []v1alpha1.Contributor
	// providerConfig is the ProviderConfig if it has references. inherited lists the DependsOn that only the
	// ProviderConfig refers to.
	providerConfig *scope.ProviderConfigRef
	inherited      []lang.Address
	// requires lists the addresses that the recorded state refers to.
	requires []lang.Address
	// externalVersions holds the versions of dependencies that are not resources; see findExternalVersions.
	externalVersions map[string]string
	// createsFirst is true if a replace must create before it destroys.
	createsFirst bool
	// expanded is true if the references to sets are replaced by those to their instances. wholeSets are the addresses of these sets.
	// waits is true if one is to an output of a Module that is not known yet.
	expanded, waits bool
	wholeSets       []lang.Address
	// edited is true if the object or its record changed after the outline of the survey was made.
	edited bool
	// slot is the node's slot in the outline of the survey.
	slot int
	// movedFrom is the node whose record moves to this one. The other node's movedTo is this node.
	movedFrom, movedTo *node
}

// loadSurvey loads the objects that the survey of a plan needs. With an index, it loads only the objects that the plan
// visits, and those that their checks need. If these are many, it surveys them in pages and stores the changes. Otherwise
// the diagnostics of the result are about objects whose provider is not ready.
func (a *Planner) loadSurvey(ctx context.Context, po *v1alpha1.Plan) (*survey, error) {
	for attempt := 0; a.Index != nil && attempt < loadAttempts; attempt++ {
		s, err := a.loadSelected(ctx, po)
		if _, full := errors.AsType[errFull](err); full {
			break
		}
		if !errors.Is(err, errOutdated) {
			return s, err
		}
	}
	return a.loadAll(ctx, po)
}

// loadAttempts is the number of attempts to load objects that do not change during the load.
const loadAttempts = 5

// errOutdated is the error if an object or its record changed after the index was read.
var errOutdated = errors.New("an object changed during the survey")

func (a *Planner) newSurvey(ctx context.Context, po *v1alpha1.Plan) (*survey, *scope.Lookup) {
	lookup := a.Lookup(ctx, po)
	s := &survey{spec: &po.Spec, leftFiles: a.leftFiles, hasModule: func(path string) bool { return hasModule(ctx, a.Sets, po.Namespace, path) }, missing: func(n *node) diag.Diagnostics { return lookup.Missing(ctx, n.Resource) }}
	if !po.Spec.Speculative {
		s.writers = newWriters(ctx, a.NewScope(po, po.Namespace, nil), a.Logger, po.Namespace)
		s.accounts = newAccounts(s.writers, a.Ledger)
	}
	return s, lookup
}

// hasModule reports whether a namespace has the instance of a module with a path.
func hasModule(ctx context.Context, from scope.Sets, namespace, path string) bool {
	if from == nil {
		return false
	}
	m, err := from.Module(ctx, namespace, v1alpha1.RootModule(path))
	return err == nil && m != nil && m.Expansion != nil && m.Expansion.InstanceAt(path) != nil
}

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
		if s.noteProblem(err) {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		r, err := resource.Of(obj, a.Catalog)
		if err != nil {
			s.diags = append(s.diags, lang.Problem(resource.AddressOf(obj.GetKind(), obj.GetName()), "", "Provider not ready", err.Error()))
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

// loadSelected loads the objects that outline.selectNodes selects, or surveys them in pages. It returns an errFull if the
// survey must load all objects, and errOutdated if an object changed meanwhile.
func (a *Planner) loadSelected(ctx context.Context, po *v1alpha1.Plan) (*survey, error) {
	s, err := a.outlined(ctx, po)
	if err != nil {
		return nil, err
	}
	s.noteProblems(kindSet, s.outline.view.Problems)
	s.noteProblems(kindModule, s.outline.view.ModuleProblems)
	if s.outline.view.TooManyWhole {
		s.diags = append(s.diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "Too many references to whole ResourceSets",
			Detail: fmt.Sprintf("Each object that refers to a whole ResourceSet depends on all its instances, and a namespace has at most %d such dependencies. "+
				"Refer to single instances, as in sim_network.net[count.index], or split the sets.", index.MaxWhole)})
	}
	if len(s.diags) > 0 {
		return s, nil
	}
	if err := s.outlineScope(); err != nil {
		return nil, err
	}
	s.selectVisited()
	s.outline.selectChecked()
	if p := s.inPages(a, po); p != nil {
		err = p.store(ctx)
	} else {
		err = a.loadOutlined(ctx, po, s)
	}
	if err != nil {
		return nil, err
	}
	lost := make(map[types.UID]*ledger.Instance, len(s.outline.view.Lost))
	for _, uid := range s.outline.view.Lost {
		if lost[uid], err = a.Ledger.Instance(ctx, v1alpha1.ObjectReference{Namespace: po.Namespace, UID: uid}); err != nil {
			return nil, err
		}
	}
	return s, a.dropData(ctx, po.Namespace, lost)
}

// loadOutlined loads the objects that outline.selectNodes selects.
func (a *Planner) loadOutlined(ctx context.Context, po *v1alpha1.Plan, s *survey) error {
	var err error
	if s.nodes, err = a.loadNodes(ctx, po, s.outline.view, s.outline.selectNodes(), false); err != nil {
		return err
	}
	for _, n := range s.nodes {
		if err := n.configure(s.outline.configs); err != nil {
			return err
		}
	}
	return nil
}

// outlined returns a survey without nodes, but with the outline of the namespace from the index. It returns an errFull
// if the index does not suffice.
func (a *Planner) outlined(ctx context.Context, po *v1alpha1.Plan) (*survey, error) {
	view, err := a.view(ctx, po)
	if err != nil {
		return nil, err
	}
	s, lookup := a.newSurvey(ctx, po)
	configs := a.ProviderConfigs(ctx, po)
	broken := func(refs []lang.Reference) bool { return lookup.Broken(ctx, refs) }
	s.outline, err = newOutline(view, &po.Spec, configs, a.Catalog, broken)
	return s, err
}

// view returns the view of a plan's namespace with the documents of a speculative plan. It returns an errFull if the index does not
// suffice.
func (a *Planner) view(ctx context.Context, po *v1alpha1.Plan) (*index.View, error) {
	view, err := a.Index.View(ctx, po.Namespace)
	if err != nil && ctx.Err() == nil { // an object of another namespace may be the reason
		a.Logger.Warn("refresh the index for a plan", "namespace", po.Namespace, "plan", po.Name, "error", err)
		return nil, errFull{err.Error()}
	}
	if err != nil {
		return nil, err
	}
	if o, ok := a.Objects.(*overlay); ok {
		if err := o.applyTo(view, po.Namespace); err != nil {
			return nil, err
		}
	}
	view.ExpandReferences()
	return view, nil
}

// loadNodes loads the objects with some slots and their records, several at once; see load.
func (a *Planner) loadNodes(ctx context.Context, po *v1alpha1.Plan, view *index.View, slots []int, anyRevision bool) ([]*node, error) {
	nodes := make([]*node, len(slots))
	tracker := graph.NewTracker(len(slots), func(int) []int { return nil })
	err := graph.Run(ctx, tracker, loadWidth, func(ctx context.Context, k int) (bool, error) {
		n, err := a.load(ctx, po, view, slots[k], anyRevision)
		nodes[k] = n
		return err == nil, err
	})
	return nodes, err
}

// loadWidth is the number of objects that a survey loads at once.
const loadWidth = 8

// load loads the object with a slot and its record. If these are newer than in the view, it returns errOutdated. With
// anyRevision, it instead returns a node whose field edited is set.
func (a *Planner) load(ctx context.Context, po *v1alpha1.Plan, view *index.View, slot int, anyRevision bool) (*node, error) {
	known := view.Nodes[slot]
	ref := known.Object.Ref(po.Namespace)
	obj, err := a.Objects.Get(ctx, ref)
	if errors.Is(err, store.ErrGone) {
		return nil, errOutdated
	}
	if err != nil {
		return nil, err
	}
	r, err := resource.Of(obj, a.Catalog)
	if err != nil {
		return nil, errFull{err.Error()}
	}
	rec, err := a.Ledger.Instance(ctx, ref)
	if err != nil {
		return nil, err
	}
	recorded := int64(0)
	if known.Record != nil {
		recorded = known.Record.Revision
	}
	read := strconv.FormatInt(known.Object.Revision, 10)
	outdated := !known.Object.Has(index.Overlaid) && obj.GetResourceVersion() != read || rec.Revision() != recorded
	if outdated && !anyRevision {
		return nil, errOutdated
	}
	n := nodeOf(po, r, rec)
	n.slot = slot
	n.edited = r.Ref.Generation != known.Object.Generation || rec.Revision() != recorded
	return n, nil
}

func newNode(po *v1alpha1.Plan, r *resource.Resource, rec *ledger.Instance, configs *scope.ProviderConfigs) (*node, error) {
	n := nodeOf(po, r, rec)
	return n, n.configure(configs)
}

// nodeOf returns the node of an object with its record, which may be nil. The caller adds the ProviderConfig with configure.
func nodeOf(po *v1alpha1.Plan, r *resource.Resource, rec *ledger.Instance) *node {
	n := &node{Resource: r, record: rec, wanted: !r.Deleting && !po.Spec.Destroy}
	if n.record == nil {
		n.record = &ledger.Instance{Object: r.Ref}
	}
	for _, s := range n.record.Dependencies {
		if addr, err := lang.ParseAddress(s); err == nil {
			n.requires = append(n.requires, addr)
		}
	}
	// a resource that is only read needs no configuration
	if n.wanted && (!po.Spec.RefreshOnly || n.Mode != v1alpha1.ModeManaged) {
		n.Expressions = *n.Parse()
	}
	return n
}
