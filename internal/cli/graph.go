package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/drawing"
)

// maxGraph is the maximum number of nodes. A larger graph would be unreadable, and rendering tools would hang.
const maxGraph = 5000

type graphOptions struct {
	*session
	files  fileFlags
	name   string
	output string
	// from is the address of a resource to which the drawing is restricted; affected selects its dependents.
	from     string
	affected bool
}

func newGraph(s *session) *cobra.Command {
	o := &graphOptions{session: s}
	cmd := &cobra.Command{
		Use:   "graph [PLAN | -f PATH]",
		Short: "Draw the graph of dependencies",
		Long: `Draw the graph of dependencies.

Without arguments the command draws the objects of the namespace and their references. With -f it draws the objects of
files, without a server. With a plan it draws the changes and their order. An arrow points at the dependency.

With --from it draws one resource and all that it depends on. With --from and --affected it draws the resource and all
that depends on it.`,
		Example: `  kubectl hykube graph -f examples/first -o mermaid
  kubectl hykube graph apply-x7k2d | dot -Tsvg > plan.svg
  kubectl hykube graph -n prod | dot -Tpng > prod.png
  kubectl hykube graph -n prod --from sim_network.main --affected`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completePlans(s, nil),
		RunE:              run(o),
	}
	o.files.addFilenames(cmd.Flags())
	cmd.Flags().StringVar(&o.from, "from", "", "Draw only this resource, such as sim_network.main, and all that it depends on")
	cmd.Flags().BoolVar(&o.affected, "affected", false, "With --from: draw all that depends on the resource instead")
	o.output = "dot"
	outputFlag(cmd, &o.output, "Print", "dot", "mermaid")
	return cmd
}

func (o *graphOptions) Complete(args []string) error {
	if len(args) == 1 {
		o.name = args[0]
	}
	if o.files.given() {
		return nil
	}
	return o.connect()
}

func (o *graphOptions) Validate() error {
	if o.name != "" && o.files.given() {
		return errors.New("name a plan or give files, not both")
	}
	if o.affected && o.from == "" {
		return errors.New("--affected needs --from: kubectl hykube graph --from sim_network.main --affected")
	}
	if o.from != "" {
		t, err := parseTarget(o.from)
		if err != nil {
			return fmt.Errorf("--from: %w", err)
		}
		o.from = t.full()
	}
	return nil
}

func (o *graphOptions) Run(ctx context.Context) error {
	g, err := o.read(ctx)
	if err != nil {
		return err
	}
	if o.from != "" {
		part, ok := g.From(o.from, o.affected)
		if !ok {
			return fmt.Errorf("--from: the graph has no %s", o.from)
		}
		g = part
	}
	if g.Len() > maxGraph {
		return fmt.Errorf("the graph has %s resources, and the limit is %s: draw a plan, some of the files with -f, or one resource with --from", diff.Count(g.Len()), diff.Count(maxGraph))
	}
	for _, names := range g.Cycles() {
		fmt.Fprintf(o.ErrOut, "Warning: these depend on each other in a cycle, so no plan can order them: %s\n", names)
	}
	if o.output == "mermaid" {
		return g.Mermaid(o.Out)
	}
	return g.DOT(o.Out)
}

func (o *graphOptions) read(ctx context.Context) (*drawing.Graph, error) {
	switch {
	case o.name != "":
		return o.ofPlan(ctx)
	case o.files.given():
		ms, err := o.manifests(ctx, &o.files)
		if err != nil {
			return nil, err
		}
		var objects []*unstructured.Unstructured
		for _, m := range ms {
			objects = append(objects, m.object)
		}
		return ofObjects(objects), nil
	}
	kinds, err := o.resourceKinds(ctx)
	if err != nil {
		return nil, explain(err, o.server())
	}
	var objects []*unstructured.Unstructured
	denied, err := o.eachResource(ctx, kinds, o.namespace, "", func(_ kind, u *unstructured.Unstructured) { objects = append(objects, u) })
	if err != nil {
		return nil, err
	}
	o.printDenied(o.ErrOut, denied, "drawn")
	return ofObjects(objects), nil
}

func (o *graphOptions) ofPlan(ctx context.Context) (*drawing.Graph, error) {
	p, err := o.getPlan(ctx, o.namespace, o.name)
	if err != nil {
		return nil, err
	}
	g := &drawing.Graph{Title: p.Name}
	at := map[int32]int{}
	var changes []*v1alpha1.PlanChange
	for c, err := range o.changes(ctx, p) {
		if err != nil {
			return nil, err
		}
		at[c.Index] = g.Add(drawing.Node{Address: diff.Name(c), Symbol: diff.Symbol(c)})
		changes = append(changes, c)
	}
	for _, c := range changes {
		for _, d := range c.DependsOn {
			if to, ok := at[d]; ok {
				g.Edge(at[c.Index], to)
			}
		}
	}
	return g, nil
}

// ofObjects returns the graph of objects by the references in their spec and lifecycle. It includes referenced objects
// that are not in the list, because objects of files may refer to recorded ones.
func ofObjects(objects []*unstructured.Unstructured) *drawing.Graph {
	g := &drawing.Graph{Title: "hykube"}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(addressOf(a), addressOf(b))
	})
	at := map[string]int{}
	var drawn []*unstructured.Unstructured
	for _, u := range objects {
		if _, ok := v1alpha1.ProviderOfGroup(u.GroupVersionKind().Group); !ok {
			continue
		}
		addr := addressOf(u)
		at[addr] = g.Add(drawing.Node{Address: addr})
		if ns := u.GetNamespace(); ns != "" {
			at["namespace."+ns+"."+addr] = at[addr]
		}
		drawn = append(drawn, u)
	}
	for _, u := range drawn {
		from := at[addressOf(u)]
		for _, ref := range references(u) {
			to, ok := at[ref.address]
			if !ok && ref.sure {
				to = g.Add(drawing.Node{Address: ref.address, Missing: true})
				at[ref.address], ok = to, true
			}
			if ok && to != from {
				g.Edge(from, to)
			}
		}
	}
	return g
}

func addressOf(u *unstructured.Unstructured) string {
	if isModule(u) {
		return v1alpha1.ModulePath("", u.GetName(), nil)
	}
	return addressOfKind(u.GetKind(), u.GetName())
}
