package planning

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// loadSurvey loads the objects that a plan visits, and those that their checks need. If these are many, it surveys them in
// pages and stores the changes. It tries again if an object changes meanwhile. The last attempt tolerates that.
func (a *Planner) loadSurvey(ctx context.Context, po *v1alpha1.Plan) (*survey, error) {
	for range loadAttempts - 1 {
		if s, err := a.loadSelected(ctx, po, exact); !errors.Is(err, errOutdated) {
			return s, err
		}
	}
	return a.loadSelected(ctx, po, tolerant)
}

// loadAttempts is the number of attempts to load objects that do not change during the load.
const loadAttempts = 5

// tolerance says what a load does with objects that changed after the index was read.
type tolerance bool

const (
	// exact makes the load return errOutdated.
	exact tolerance = false
	// tolerant makes it return nodes whose field edited is set.
	tolerant tolerance = true
)

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

// loadSelected loads the objects that outline.selectNodes selects, or surveys them in pages. It returns errOutdated if an
// object changed meanwhile.
func (a *Planner) loadSelected(ctx context.Context, po *v1alpha1.Plan, t tolerance) (*survey, error) {
	s, err := a.outlined(ctx, po)
	if err != nil {
		return nil, err
	}
	s.tolerance = t
	if err := a.noteProblems(ctx, po, s); err != nil || len(s.diags) > 0 {
		return s, err
	}
	if err := s.outlineScope(); err != nil {
		return nil, err
	}
	if len(s.diags) > 0 {
		return s, nil
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
	if s.nodes, err = a.loadNodes(ctx, po, s.outline.view, s.outline.selectNodes(), s.tolerance); err != nil {
		return err
	}
	for _, n := range s.nodes {
		if err := n.configure(s.outline.configs); err != nil {
			return err
		}
	}
	return nil
}

// outlined returns a survey without nodes, but with the outline of the namespace from the index. Its diagnostics are about
// documents of a speculative plan whose provider is not ready.
func (a *Planner) outlined(ctx context.Context, po *v1alpha1.Plan) (*survey, error) {
	view, unready, err := a.view(ctx, po)
	if err != nil {
		return nil, err
	}
	s, lookup := a.newSurvey(ctx, po)
	s.diags = unready
	broken := func(refs []lang.Reference) bool { return lookup.Broken(ctx, refs) }
	s.outline = newOutline(view, &po.Spec, a.ProviderConfigs(ctx, po), a.Catalog, broken)
	return s, nil
}

// view returns the view of a plan's namespace with the documents of a speculative plan, and an error for each document whose
// provider is not ready.
func (a *Planner) view(ctx context.Context, po *v1alpha1.Plan) (view *index.View, unready diag.Diagnostics, err error) {
	if view, err = a.Index.View(ctx, po.Namespace); err != nil {
		return nil, nil, err
	}
	if o, ok := a.Objects.(*overlay); ok {
		unready = o.applyTo(view, po.Namespace)
	}
	view.ExpandReferences()
	return view, unready, nil
}

// loadNodes loads the objects with some slots and their records, several at once; see load.
func (a *Planner) loadNodes(ctx context.Context, po *v1alpha1.Plan, view *index.View, slots []int, t tolerance) ([]*node, error) {
	nodes := make([]*node, len(slots))
	tracker := graph.NewTracker(len(slots), func(int) []int { return nil })
	err := graph.Run(ctx, tracker, loadWidth, func(ctx context.Context, k int) (bool, error) {
		n, err := a.load(ctx, po, view, slots[k], t)
		nodes[k] = n
		return err == nil, err
	})
	return nodes, err
}

// loadWidth is the number of objects that a survey loads at once.
const loadWidth = 8

// load loads the object with a slot and its record. If the object or the record is another one than in the view, apart from
// the object's status, exact returns errOutdated. With tolerant, a gone or edited object is replaced by one without a spec,
// whose change Propose takes out of the plan.
func (a *Planner) load(ctx context.Context, po *v1alpha1.Plan, view *index.View, slot int, t tolerance) (*node, error) {
	known := view.Nodes[slot]
	r, err := a.loadObject(ctx, po, known.Object)
	replaced := t == tolerant && errors.Is(err, errOutdated)
	if replaced {
		r, err = a.withoutSpec(known.Object, po.Namespace)
	}
	if err != nil {
		return nil, err
	}
	rec, err := a.Ledger.Instance(ctx, known.Object.Ref(po.Namespace))
	if err != nil {
		return nil, err
	}
	recorded := int64(0)
	if known.Record != nil {
		recorded = known.Record.Revision
	}
	edited := replaced || rec.Revision() != recorded
	if edited && t == exact {
		return nil, errOutdated
	}
	n := nodeOf(po, r, rec)
	n.slot, n.edited = slot, edited
	return n, nil
}

// loadObject loads an object. It returns errOutdated if the object has another spec, deletion mark or label than its entry.
func (a *Planner) loadObject(ctx context.Context, po *v1alpha1.Plan, known *index.Object) (*resource.Resource, error) {
	obj, err := a.Objects.Get(ctx, known.Ref(po.Namespace))
	if errors.Is(err, store.ErrGone) {
		return nil, errOutdated
	}
	if err != nil {
		return nil, err
	}
	r, err := resource.Of(obj, a.Catalog)
	if err != nil { // the provider is no longer ready
		return nil, fmt.Errorf("%w: %w", errOutdated, err)
	}
	relabelled := !known.Has(index.Overlaid) && !maps.Equal(obj.GetLabels(), known.Labels)
	if r.Ref.Generation != known.Generation || r.Deleting != known.Has(index.Deleting) || relabelled {
		return nil, errOutdated
	}
	return r, nil
}

// withoutSpec returns what the index knows of an object. It has no generation, so the object is never the same.
func (a *Planner) withoutSpec(known *index.Object, namespace string) (*resource.Resource, error) {
	r, err := resource.Of(outlineOf(known, namespace), a.Catalog)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOutdated, err)
	}
	r.Ref, r.Deleting = known.Ref(namespace), known.Has(index.Deleting)
	r.Ref.Generation = 0
	return r, nil
}

// outlineOf returns an object with the kind, the names and the labels of an entry.
func outlineOf(known *index.Object, namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(known.APIVersion)
	u.SetKind(known.Kind.Kind)
	u.SetNamespace(namespace)
	u.SetName(known.Name)
	u.SetUID(known.UID)
	u.SetLabels(known.Labels)
	return u
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
