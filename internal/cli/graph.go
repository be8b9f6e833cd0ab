package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// maxGraph is the most nodes that anybody can look at; more would only hang whatever draws them.
const maxGraph = 5000

type graphOptions struct {
	*session
	files  fileFlags
	name   string
	output string
}

func newGraph(s *session) *cobra.Command {
	o := &graphOptions{session: s}
	cmd := &cobra.Command{
		Use:   "graph [PLAN | -f PATH]",
		Short: "Draw what depends on what",
		Long: `Draw what depends on what.

Without arguments it draws the objects of the namespace by their references; with -f those of files, without asking the
server; with a plan its changes and the order in which they are made. An arrow points at what is needed first.`,
		Example: `  kubectl hykube graph -f examples/first -o mermaid
  kubectl hykube graph apply-x7k2d -o svg > plan.svg
  kubectl hykube graph -n prod -o dot | dot -Tpng > prod.png`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completePlans(s, nil),
		RunE:              run(o),
	}
	fs := cmd.Flags()
	fs.StringArrayVarP(&o.files.paths, "filename", "f", nil, "File, directory, URL, or - for standard input")
	fs.BoolVarP(&o.files.recursive, "recursive", "R", false, "Also read the sub-directories of a directory")
	o.output = "dot"
	outputFlag(cmd, &o.output, "Print", "dot", "mermaid", "svg")
	return cmd
}

func (o *graphOptions) Complete(args []string) error {
	if len(args) == 1 {
		o.name = args[0]
	}
	if len(o.files.paths) > 0 {
		return nil
	}
	return o.connect()
}

func (o *graphOptions) Validate() error {
	if o.name != "" && len(o.files.paths) > 0 {
		return errors.New("name a plan or give files, not both")
	}
	return checkOutput(o.output, "dot", "mermaid", "svg")
}

func (o *graphOptions) Run(ctx context.Context) error {
	g, err := o.read(ctx)
	if err != nil {
		return err
	}
	if len(g.nodes) > maxGraph {
		return fmt.Errorf("%s resources are more than anybody can look at: draw one plan, or the files of a part of them", diff.Count(len(g.nodes)))
	}
	circles, err := g.findCircles()
	if err != nil {
		return err
	}
	for _, names := range circles {
		fmt.Fprintf(o.ErrOut, "Warning: these depend on each other in a circle, and no plan can be made of them: %s\n", names)
	}
	switch o.output {
	case "mermaid":
		return g.mermaid(o.Out)
	case "svg":
		return g.svg(o.Out)
	}
	return g.dot(o.Out)
}

func (o *graphOptions) read(ctx context.Context) (*graph, error) {
	switch {
	case o.name != "":
		return o.ofPlan(ctx)
	case len(o.files.paths) > 0:
		ms, err := o.manifests(ctx, o.files.paths, o.files.recursive)
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
	denied, err := o.eachObject(ctx, kinds, o.namespace, "", func(_ kind, u *unstructured.Unstructured) { objects = append(objects, u) })
	if err != nil {
		return nil, err
	}
	o.tellDenied(o.ErrOut, denied, "drawn")
	return ofObjects(objects), nil
}

func (o *graphOptions) ofPlan(ctx context.Context) (*graph, error) {
	p, err := o.getPlan(ctx, o.namespace, o.name)
	if err != nil {
		return nil, err
	}
	g := &graph{title: p.Name}
	at := map[int32]int{}
	var changes []*v1alpha1.PlanChange
	for c, err := range o.changes(ctx, p) {
		if err != nil {
			return nil, err
		}
		at[c.Index] = g.add(node{address: diff.Name(c), symbol: diff.Symbol(c)})
		changes = append(changes, c)
	}
	for _, c := range changes {
		for _, d := range c.DependsOn {
			if to, ok := at[d]; ok {
				g.edge(at[c.Index], to)
			}
		}
	}
	return g, nil
}

// ofObjects draws objects by the references in their spec and lifecycle. What is referred to and is not among them
// is drawn too: in files it may be recorded already.
func ofObjects(objects []*unstructured.Unstructured) *graph {
	g := &graph{title: "hykube"}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		return compare(addressOf(a), addressOf(b))
	})
	at := map[string]int{}
	var drawn []*unstructured.Unstructured
	for _, u := range objects {
		if _, ok := v1alpha1.ProviderOfGroup(u.GroupVersionKind().Group); !ok {
			continue
		}
		addr := addressOf(u)
		at[addr] = g.add(node{address: addr})
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
				to = g.add(node{address: ref.address, missing: true})
				at[ref.address], ok = to, true
			}
			if ok && to != from {
				g.edge(from, to)
			}
		}
	}
	return g
}

func addressOf(u *unstructured.Unstructured) string {
	return addressOfKind(u.GetKind(), u.GetName())
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
