package planning

import (
	"context"
	"errors"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/workflows"

	"k8s.io/apimachinery/pkg/types"
)

// Survey lists the objects in a plan's scope, resolves their references, and selects those that the plan visits. It
// stores an open change for each of these, in dependency order.
func (a *Planner) Survey(ctx context.Context, p workflows.Plan) (workflows.Surveyed, error) {
	po, err := a.readPlan(ctx, p)
	if err == nil && po.ApprovalFollows() {
		return workflows.Surveyed{Published: true}, nil
	}
	if err == nil {
		err = unpublished(po, p)
	}
	if err != nil {
		return workflows.Surveyed{}, err
	}
	if po.PlanFailed() { // an earlier attempt recorded the reason
		return workflows.Surveyed{Invalid: true}, nil
	}
	if a, err = a.withOverlay(ctx, po); err != nil {
		return workflows.Surveyed{}, err
	}
	if err := a.Ledger.DropPlan(ctx, po.UID); err != nil {
		return workflows.Surveyed{}, err
	}
	s, err := a.survey(ctx, po)
	if err != nil {
		return workflows.Surveyed{}, err
	}
	if diag.HasErrors(s.diags) {
		return workflows.Surveyed{Invalid: true}, a.failPlan(ctx, p, diag.Summarize(s.diags), s.diags)
	}
	a.decoders.keep(po.UID, a.Catalog, s.stored.parsed)
	slices.Sort(s.stored.providers)
	return workflows.Surveyed{
		Resources: s.inScope, Visited: s.stored.visited, Recorded: s.recorded, ReadTo: s.readTo, Whole: s.stored.whole,
		Providers: s.stored.providers,
	}, nil
}

// survey selects the objects that a plan visits with the index. It loads them in pages and checks them.
type survey struct {
	*visits
	page
	planner *Planner
	plan    *v1alpha1.Plan
	diags   diag.Diagnostics
	// leftFiles reports whether an object is no longer in the plan's files. Such an object is planned as if it were
	// marked for deletion.
	leftFiles func(v1alpha1.ObjectReference) bool
	// missing checks a node's references to objects outside of the namespace's plans.
	missing func(*node) diag.Diagnostics
	// writers finds who wrote objects that are no resources; nil for a speculative plan, which has no contributors.
	writers *writers
	// accounts knows the arguments of providers, their writers, and which a person approved; nil with writers.
	accounts *accounts
	// stored is nil before the changes are stored.
	stored *stored
}

// stored is the result of a survey that has stored its changes.
type stored struct {
	visited int
	// providers lists the names of the providers of the visited resources.
	providers []string
	// whole is true if the survey has stored a change for each dependant.
	whole bool
	// parsed lists resources that Propose need not parse again.
	parsed []*resource.Resource
}

func (s *stored) addProvider(name string) {
	if !slices.Contains(s.providers, name) {
		s.providers = append(s.providers, name)
	}
}

// surveyAttempts is the number of attempts to survey objects that do not change meanwhile. The last attempt tolerates
// that.
const surveyAttempts = 5

// errOutdated is the error if an object or its record changed after the index was read.
var errOutdated = errors.New("an object changed during the survey")

// survey surveys a plan, and stores its changes unless it finds errors.
func (a *Planner) survey(ctx context.Context, po *v1alpha1.Plan) (*survey, error) {
	for range surveyAttempts - 1 {
		if s, err := a.surveyOnce(ctx, po, exact); !errors.Is(err, errOutdated) {
			return s, err
		}
	}
	return a.surveyOnce(ctx, po, tolerant)
}

func (a *Planner) surveyOnce(ctx context.Context, po *v1alpha1.Plan, t tolerance) (*survey, error) {
	s, err := a.newSurvey(ctx, po)
	if err == nil {
		err = s.store(ctx, t)
	}
	return s, err
}

// newSurvey returns a survey with an outline of the namespace, and nothing selected. Its diagnostics are about
// documents of a speculative plan whose provider is not ready.
func (a *Planner) newSurvey(ctx context.Context, po *v1alpha1.Plan) (*survey, error) {
	view, unready, err := a.view(ctx, po)
	if err != nil {
		return nil, err
	}
	lookup := a.Lookup(ctx, po)
	broken := func(refs []lang.Reference) bool { return lookup.Broken(ctx, refs) }
	o := newOutline(view, po, a.ProviderConfigs(ctx, po), a.Catalog, broken)
	s := &survey{
		visits: &visits{members: &members{versions: newVersions(o)}}, planner: a, plan: po, diags: unready,
		leftFiles: a.leftFiles, missing: func(n *node) diag.Diagnostics { return lookup.Missing(ctx, n.Resource) },
	}
	if !po.Spec.Speculative {
		s.writers = newWriters(ctx, a.NewScope(po, po.Namespace, nil), a.Logger, po.Namespace)
		s.accounts = newAccounts(s.writers, a.Ledger)
	}
	return s, nil
}

// view returns the view of a plan's namespace with the documents of a speculative plan, and an error for each document
// whose provider is not ready.
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

// selectMembers determines the scope of the plan.
func (s *survey) selectMembers(ctx context.Context) error {
	hasModule := func(path string) bool { return hasModule(ctx, s.planner.Sets, s.namespace, path) }
	t := newTargets(s.entries, s.spec, hasModule)
	m, err := newMembers(s.versions, t)
	if err != nil {
		return err
	}
	s.visits.members, s.diags = m, append(s.diags, t.diags...)
	return nil
}

// store selects the objects that the plan visits, checks them, and stores their changes. It returns errOutdated if an
// object changed meanwhile.
func (s *survey) store(ctx context.Context, t tolerance) error {
	if err := s.noteProblems(ctx); err != nil || len(s.diags) > 0 {
		return err
	}
	if err := s.selectMembers(ctx); err != nil || len(s.diags) > 0 {
		return err
	}
	s.visits = newVisits(s.members)
	if err := newPages(s, t).store(ctx); err != nil {
		return err
	}
	lost := make(map[types.UID]*ledger.Instance, len(s.Lost))
	for _, uid := range s.Lost {
		rec, err := s.planner.Ledger.Instance(ctx, v1alpha1.ObjectReference{Namespace: s.namespace, UID: uid})
		if err != nil {
			return err
		}
		lost[uid] = rec
	}
	return s.planner.dropData(ctx, s.namespace, lost)
}

// load loads a page: the objects with some slots, followed by their dependencies.
func (s *survey) load(ctx context.Context, slots []int, t tolerance) error {
	nodes, err := s.planner.loadNodes(ctx, s.plan, s.View, s.withDependencies(slots), t)
	if err != nil {
		return err
	}
	return s.turnTo(nodes)
}

// turnTo makes loaded nodes the page.
func (s *survey) turnTo(nodes []*node) error {
	s.page = newPage(nodes)
	bySlot := make(map[int]*node, len(nodes))
	for _, n := range nodes {
		if err := n.configure(s.configs); err != nil {
			return err
		}
		bySlot[n.slot] = n
		n.createsFirst = s.createsFirst[n.slot] && n.Mode == v1alpha1.ModeManaged
		s.expandSets(n)
		if to, moved := s.moves.to[n.slot]; moved {
			n.movedTo = s.Nodes[to].Object.Address().String()
		}
	}
	for _, n := range nodes {
		if from := bySlot[s.moves.from[n.slot]]; from != nil && from.movedTo == n.Address.String() {
			n.movedFrom, n.requires = from, from.requires
		}
	}
	return nil
}

// hasModule reports whether a namespace has the instance of a module with a path.
func hasModule(ctx context.Context, from scope.Sets, namespace, path string) bool {
	if from == nil {
		return false
	}
	m, err := from.Module(ctx, namespace, v1alpha1.RootModule(path))
	return err == nil && m != nil && m.Expansion != nil && m.Expansion.InstanceAt(path) != nil
}
