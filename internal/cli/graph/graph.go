// Package graph is the verb graph, which draws the dependencies of resources or of the changes of a plan.
package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/drawing"
)

// maxGraph is the maximum number of nodes. A larger graph would be unreadable, and rendering tools would hang.
const maxGraph = 5000

type graphOptions struct {
	*session.Session
	files  manifest.Flags
	name   string
	output string
	// from is the address of a resource to which the drawing is restricted; affected selects its dependents.
	from     string
	affected bool
}

// New returns the command graph.
func New(s *session.Session) *cobra.Command {
	o := &graphOptions{Session: s}
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
		ValidArgsFunction: planapi.Complete(s, nil),
		RunE:              session.Run(o),
	}
	o.files.AddFilenames(cmd.Flags())
	cmd.Flags().StringVar(&o.from, "from", "",
		"Draw only this resource, such as sim_network.main, and all that it depends on")
	cmd.Flags().BoolVar(&o.affected, "affected", false, "With --from: draw all that depends on the resource instead")
	o.output = "dot"
	printer.OutputFlag(cmd, &o.output, "Print", "dot", "mermaid")
	return cmd
}

func (o *graphOptions) Complete(args []string) error {
	if len(args) == 1 {
		o.name = args[0]
	}
	if o.files.Given() {
		return nil
	}
	return o.Connect()
}

func (o *graphOptions) Validate() error {
	if o.name != "" && o.files.Given() {
		return errors.New("name a plan or give files, not both")
	}
	if o.affected && o.from == "" {
		return errors.New("--affected needs --from: kubectl hykube graph --from sim_network.main --affected")
	}
	if o.from != "" {
		t, err := addrs.Parse(o.from)
		if err != nil {
			return fmt.Errorf("--from: %w", err)
		}
		o.from = t.Full()
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
	case o.files.Given():
		ms, err := manifest.Read(ctx, o.Session, &o.files)
		if err != nil {
			return nil, err
		}
		var found []*unstructured.Unstructured
		for _, m := range ms {
			found = append(found, m.Object)
		}
		return ofObjects(found), nil
	}
	var found []*unstructured.Unstructured
	denied, err := objects.EachResource(ctx, o.Session, nil, o.Namespace, "",
		func(_ session.Kind, u *unstructured.Unstructured) { found = append(found, u) })
	if err != nil {
		return nil, err
	}
	objects.PrintDenied(o.Session, o.ErrOut, denied, "drawn")
	return ofObjects(found), nil
}

func (o *graphOptions) ofPlan(ctx context.Context) (*drawing.Graph, error) {
	p, err := planapi.Get(ctx, o.Session, o.Namespace, o.name)
	if err != nil {
		return nil, err
	}
	g := &drawing.Graph{Title: p.Name}
	at := map[int32]int{}
	var changes []*v1alpha1.PlanChange
	for c, err := range planapi.Changes(ctx, o.Session, p) {
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
		return strings.Compare(addrs.Of(a), addrs.Of(b))
	})
	at := map[string]int{}
	var drawn []*unstructured.Unstructured
	for _, u := range objects {
		if _, ok := v1alpha1.ProviderOfGroup(u.GroupVersionKind().Group); !ok {
			continue
		}
		addr := addrs.Of(u)
		at[addr] = g.Add(drawing.Node{Address: addr})
		if ns := u.GetNamespace(); ns != "" {
			at["namespace."+ns+"."+addr] = at[addr]
		}
		drawn = append(drawn, u)
	}
	for _, u := range drawn {
		from := at[addrs.Of(u)]
		for _, ref := range addrs.References(u) {
			to, ok := at[ref.Address]
			if !ok && ref.Sure {
				to = g.Add(drawing.Node{Address: ref.Address, Missing: true})
				at[ref.Address], ok = to, true
			}
			if ok && to != from {
				g.Edge(from, to)
			}
		}
	}
	return g
}
