package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/workflows"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// maxDiagnostics is how many a Plan object carries.
const maxDiagnostics = 100

// node is a resource of the namespace as the survey sees it.
type node struct {
	*resource
	record *ledger.Instance
	// wanted is false for what is to be destroyed.
	wanted bool
	config *plan.Config
	// dependsOn are the resources that the configuration refers to, requires those that the recorded state does.
	dependsOn, requires []plan.Address
	invalid             plan.Diagnostics
}

// Survey lists the objects in a plan's scope, resolves their references, decides which must be looked at, and
// stores an open change for each of those, in the order of their dependencies.
func (a *Activities) Survey(ctx context.Context, p workflows.Plan) (workflows.Surveyed, error) {
	defer heartbeat(ctx)()
	po, err := a.plan(ctx, p)
	if err != nil {
		return workflows.Surveyed{}, err
	}
	if err := a.Ledger.DropPlan(ctx, po.UID); err != nil {
		return workflows.Surveyed{}, err
	}
	nodes, diags, err := a.nodes(ctx, po)
	if err != nil {
		return workflows.Surveyed{}, err
	}
	s := &survey{spec: &po.Spec, nodes: nodes, diags: diags}
	s.index()
	visited := s.visit(a)
	if plan.HasErrors(s.diags) {
		return workflows.Surveyed{Invalid: true}, a.refuse(ctx, p, nodes, s.diags)
	}
	result := workflows.Surveyed{Resources: s.inScope, Visited: len(visited)}
	for index, c := range s.changes(visited) {
		if err := a.Ledger.SaveChange(ctx, po.UID, c); err != nil {
			return workflows.Surveyed{}, err
		}
		if name := s.nodes[visited[index]].entry.Name; !slices.Contains(result.Providers, name) {
			result.Providers = append(result.Providers, name)
		}
	}
	slices.Sort(result.Providers)
	return result, nil
}

// nodes reads the objects of the plan's namespace together with what is recorded of them.
func (a *Activities) nodes(ctx context.Context, po *v1alpha1.Plan) ([]*node, plan.Diagnostics, error) {
	records := map[types.UID]*ledger.Instance{}
	for rec, err := range a.Ledger.Instances(ctx, po.Namespace) {
		if err != nil {
			return nil, nil, err
		}
		records[rec.Object.UID] = rec
	}
	var nodes []*node
	var diags plan.Diagnostics
	for obj, err := range a.Objects.List(ctx, po.Namespace) {
		if err != nil {
			return nil, nil, err
		}
		r, err := resourceOf(obj, a.Catalog)
		if err != nil {
			diags = append(diags, problem(plan.Address{Type: v1alpha1.TypeOf(obj.GetKind()), Name: obj.GetName()}, "Provider not ready", err.Error()))
			continue
		}
		n := &node{resource: r, record: records[r.ref.UID], wanted: !r.deleting && !po.Spec.Destroy}
		if n.record == nil {
			n.record = &ledger.Instance{Object: r.ref}
		}
		for _, s := range n.record.Dependencies {
			if addr, err := plan.ParseAddress(s); err == nil {
				n.requires = append(n.requires, addr)
			}
		}
		if n.wanted && !po.Spec.RefreshOnly { // what is only read needs no configuration
			n.parse()
		}
		nodes = append(nodes, n)
	}
	return nodes, diags, nil
}

// parse reads the spec's expressions.
func (n *node) parse() {
	var diags plan.Diagnostics
	n.config, diags = plan.ParseConfig(n.spec(), n.schema.Block)
	n.invalid = plan.WithAddress(diags, n.addr)
	if n.config == nil {
		return
	}
	n.dependsOn = n.config.Addresses()
	for i, s := range n.lifecycle.DependsOn {
		addr, err := plan.ParseAddress(s)
		if err != nil {
			n.invalid = append(n.invalid, attributeProblem(n.addr, fmt.Sprintf("lifecycle.dependsOn[%d]", i), "Invalid address", err.Error()))
			continue
		}
		if !slices.Contains(n.dependsOn, addr) {
			n.dependsOn = append(n.dependsOn, addr)
		}
	}
}

// survey decides what a plan looks at. It does no I/O.
type survey struct {
	spec    *v1alpha1.PlanSpec
	nodes   []*node
	diags   plan.Diagnostics
	byAddr  map[plan.Address]int
	inScope int
	// byType is made when an error first asks for it.
	byType map[string][]string
}

func (s *survey) index() {
	s.byAddr = make(map[plan.Address]int, len(s.nodes))
	for i, n := range s.nodes {
		if other, twice := s.byAddr[n.addr]; twice {
			s.diags = append(s.diags, problem(n.addr, "Ambiguous address", fmt.Sprintf(
				"%s of the provider %q and of the provider %q have the same address. Rename one of the objects.", n.addr, s.nodes[other].entry.Name, n.entry.Name)))
		}
		s.byAddr[n.addr] = i
	}
}

func (s *survey) indexes(addrs []plan.Address) []int {
	out := make([]int, 0, len(addrs))
	for _, a := range addrs {
		if i, ok := s.byAddr[a]; ok {
			out = append(out, i)
		}
	}
	return out
}

// visit returns the nodes that the plan must look at, dependencies first; errors go to s.diags.
func (s *survey) visit(a *Activities) []int {
	scope := s.scope()
	s.inScope = len(scope)
	forced := setOf(s.addresses("spec.replace", s.spec.Replace))

	graph := make([]plan.Node, len(s.nodes))
	member := make([]bool, len(s.nodes))
	for _, i := range scope {
		n := s.nodes[i]
		member[i] = true
		s.diags = append(s.diags, n.invalid...)
		s.resolve(n, a)
		graph[i] = plan.Node{Changed: s.changed(n) || forced[n.addr], Deps: s.indexes(n.dependsOn)}
		if !n.wanted {
			// What is destroyed is ordered by what it depended on when it was applied.
			graph[i].Deps = nil
		}
	}
	visited := slices.DeleteFunc(plan.Select(graph), func(i int) bool { return !member[i] })
	if plan.HasErrors(s.diags) {
		return nil
	}
	local := make(map[int]int, len(visited))
	for k, i := range visited {
		local[i] = k
	}
	order, cycle := plan.Order(len(visited), func(k int) []int {
		var deps []int
		for _, d := range graph[visited[k]].Deps {
			if l, ok := local[d]; ok {
				deps = append(deps, l)
			}
		}
		return deps
	})
	if cycle != nil {
		text := plan.CycleText(cycle, func(k int) string { return s.nodes[visited[k]].addr.String() })
		s.diags = append(s.diags, problem(s.nodes[visited[cycle[0]]].addr, "Cycle",
			fmt.Sprintf("These resources refer to each other in a circle, so none of them can come first: %s. Remove one of the references.", text)))
		return nil
	}
	out := make([]int, len(order))
	for k, i := range order {
		out[k] = visited[i]
	}
	return out
}

// scope returns the nodes that the plan may touch, in ascending order: all of them, or those that a selector or
// targets name together with what they depend on (for a destroy, with what depends on them).
func (s *survey) scope() []int {
	all := s.spec.Selector == nil && len(s.spec.Targets) == 0
	targets := setOf(s.addresses("spec.targets", s.spec.Targets))
	selector := labels.Nothing()
	if s.spec.Selector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(s.spec.Selector); err != nil {
			s.diags = append(s.diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "Invalid selector", Detail: err.Error(), Attribute: "spec.selector"})
			return nil
		}
	}
	var roots []int
	graph := make([]plan.Node, len(s.nodes))
	for i, n := range s.nodes {
		picked := all || targets[n.addr] || selector.Matches(labels.Set(n.obj.GetLabels()))
		if picked {
			roots = append(roots, i)
		}
		deps := n.dependsOn
		if !n.wanted || s.spec.RefreshOnly {
			deps = n.requires
		}
		graph[i] = plan.Node{Changed: picked, Deps: s.indexes(deps)}
	}
	if s.spec.Selector != nil && len(roots) == 0 {
		s.diags = append(s.diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "No such resource",
			Detail: fmt.Sprintf("No resource of this namespace has the labels %s.", selector), Attribute: "spec.selector"})
	}
	if s.spec.Destroy {
		return plan.Select(graph)
	}
	return plan.WithDependencies(graph, roots)
}

func (s *survey) addresses(field string, texts []string) []plan.Address {
	var out []plan.Address
	for i, text := range texts {
		addr, err := plan.ParseAddress(text)
		if err == nil {
			if _, ok := s.byAddr[addr]; !ok {
				err = fmt.Errorf("there is no %s named %q in this namespace%s", v1alpha1.KindOf(addr.Type), addr.Name, s.others(addr))
			}
		}
		if err != nil {
			s.diags = append(s.diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "No such resource", Detail: err.Error(), Attribute: fmt.Sprintf("%s[%d]", field, i)})
			continue
		}
		out = append(out, addr)
	}
	return out
}

func setOf(addrs []plan.Address) map[plan.Address]bool {
	set := make(map[plan.Address]bool, len(addrs))
	for _, a := range addrs {
		set[a] = true
	}
	return set
}

// resolve checks that what a node refers to is there and stays.
func (s *survey) resolve(n *node, a *Activities) {
	if !n.wanted || n.config == nil {
		return
	}
	s.diags = append(s.diags, plan.WithAddress(plan.CheckReferences(n.config.References(), plan.Catalog{
		Block: func(terraformType string) *schema.Block {
			if t := a.Catalog.Types(terraformType); t != nil {
				return t.Block
			}
			return nil
		},
		Exists: func(addr plan.Address) bool { _, ok := s.byAddr[addr]; return ok },
		Types:  a.Catalog.TypeNames,
		Names:  s.names,
	}), n.addr)...)
	for _, addr := range n.dependsOn {
		i, ok := s.byAddr[addr]
		switch {
		case !ok && slices.Contains(n.lifecycle.DependsOn, addr.String()):
			s.diags = append(s.diags, attributeProblem(n.addr, "lifecycle.dependsOn", "Reference to undeclared resource",
				fmt.Sprintf("There is no %s named %q in this namespace%s.", v1alpha1.KindOf(addr.Type), addr.Name, s.others(addr))))
		case ok && s.nodes[i].deleting:
			s.diags = append(s.diags, problem(n.addr, "Reference to a resource that is being deleted",
				fmt.Sprintf("%s refers to %s, which is marked for deletion. Remove the reference, or delete %s, too.", n.addr, addr, n.addr)))
		}
	}
}

// names lists the names of the objects of a type, sorted.
func (s *survey) names(terraformType string) []string {
	if s.byType == nil {
		s.byType = map[string][]string{}
		for addr := range s.byAddr {
			s.byType[addr.Type] = append(s.byType[addr.Type], addr.Name)
		}
		for _, names := range s.byType {
			slices.Sort(names)
		}
	}
	return s.byType[terraformType]
}

// others says what there is instead of an address that there is not.
func (s *survey) others(addr plan.Address) string {
	const most = 5
	names := s.names(addr.Type)
	switch {
	case len(names) == 0:
		return ""
	case len(names) > most:
		return fmt.Sprintf("; there are %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	default:
		return "; there is " + strings.Join(names, ", ")
	}
}

// changed says whether a node must be looked at for its own sake.
func (s *survey) changed(n *node) bool {
	switch {
	case !n.wanted:
		return n.record.Exists() || n.record.Intent != nil || n.deleting
	case s.spec.RefreshOnly:
		return n.record.Exists()
	case s.spec.Refresh == v1alpha1.RefreshAll:
		return true
	}
	return !n.record.Exists() || n.record.Object.Generation != n.ref.Generation || n.record.Tainted || n.record.Intent != nil
}

// changes makes the open changes of the visited nodes, which are in order.
func (s *survey) changes(visited []int) []*ledger.Change {
	position := make(map[plan.Address]int32, len(visited))
	for k, i := range visited {
		position[s.nodes[i].addr] = int32(k)
	}
	out := make([]*ledger.Change, len(visited))
	for k, i := range visited {
		n := s.nodes[i]
		c := &ledger.Change{Bound: ledger.Bound{State: n.record.Digest(), Deleting: n.deleting}}
		c.Index, c.Address, c.Type, c.Object = int32(k), n.addr.String(), n.addr.Type, n.ref
		c.Provider, c.ProviderVersion = n.entry.Package.Source.String(), n.entry.Package.Version
		c.State = v1alpha1.ChangePending
		for _, addr := range n.dependsOn {
			c.Dependencies = append(c.Dependencies, addr.String())
			if j, ok := position[addr]; ok && n.wanted {
				c.DependsOn = append(c.DependsOn, j)
			}
		}
		for _, addr := range n.requires {
			c.Requires = append(c.Requires, addr.String())
		}
		out[k] = c
	}
	return out
}

func problem(addr plan.Address, summary, detail string) v1alpha1.Diagnostic {
	return attributeProblem(addr, "", summary, detail)
}

func attributeProblem(addr plan.Address, attribute, summary, detail string) v1alpha1.Diagnostic {
	return v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: summary, Detail: detail, Address: addr.String(), Attribute: attribute}
}

// refuse ends a plan that cannot be made, in the Plan's conditions and in those of the objects that are at fault.
func (a *Activities) refuse(ctx context.Context, p workflows.Plan, nodes []*node, diags plan.Diagnostics) error {
	if err := a.failPlan(ctx, p, summarize(diags), diags); err != nil {
		return err
	}
	for _, n := range nodes {
		own := slices.DeleteFunc(slices.Clone(diags), func(d v1alpha1.Diagnostic) bool {
			return d.Severity != v1alpha1.SeverityError || d.Address != n.addr.String()
		})
		if len(own) == 0 {
			continue
		}
		s := statusOf(n.obj)
		condition.Stalled(&s.conditions, n.ref.Generation, v1alpha1.ReasonInvalid, describe(own))
		if err := a.Objects.SetStatus(ctx, n.ref, s.toMap()); err != nil && !errors.Is(err, ErrGone) {
			return err
		}
	}
	return nil
}

// describe writes errors in full.
func describe(diags plan.Diagnostics) string {
	var text []byte
	for _, d := range diags {
		if d.Severity != v1alpha1.SeverityError {
			continue
		}
		if len(text) > 0 {
			text = append(text, '\n')
		}
		if d.Attribute != "" {
			text = append(text, d.Attribute+": "...)
		}
		text = append(text, d.Summary...)
		if d.Detail != "" {
			text = append(text, ": "+d.Detail...)
		}
	}
	return string(text)
}

// summarize names the first error and counts the rest.
func summarize(diags plan.Diagnostics) string {
	var errs plan.Diagnostics
	for _, d := range diags {
		if d.Severity == v1alpha1.SeverityError {
			errs = append(errs, d)
		}
	}
	if len(errs) == 0 {
		return ""
	}
	text := describe(errs[:1])
	if errs[0].Address != "" {
		text = errs[0].Address + ": " + text
	}
	if n := len(errs) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more, see status.diagnostics)", n)
	}
	return text
}
