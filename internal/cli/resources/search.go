package resources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

type searchOptions struct {
	*session.Session
	text       string
	attributes bool
	all        bool
	limit      int
	output     string

	// found are the results, and seen their UIDs. more is true if there are further ones.
	found []v1alpha1.ResourceSummary
	seen  map[types.UID]bool
	more  bool
	// skipped are the namespaces in which the user may not list Resources.
	skipped []string
}

// NewSearch returns the command search.
func NewSearch(s *session.Session) *cobra.Command {
	o := &searchOptions{Session: s, seen: map[types.UID]bool{}}
	cmd := &cobra.Command{
		Use:   "search TEXT",
		Short: "Find objects and instances by name, ID or attribute",
		Long: `Find objects, and instances of ResourceSets, by name, ID or attribute. The command searches all namespaces that you may
read, or the one that -n names.

It finds the objects whose name contains TEXT, and the one whose ID is TEXT. The server's index answers that. If there is
none, or with --attributes, the server also reads the attributes of all objects, which takes longer, and finds those with
a value that contains TEXT. Upper and lower case are the same. A sensitive value is never found.

You see the objects of the kinds that you may list. The command exits with 0 if it found something, else with 1.`,
		Example: `  kubectl hykube search web-7
  kubectl hykube search ins-0000002a
  kubectl hykube search 10.0.3. --attributes -o wide`,
		Args: session.Exactly(1),
		RunE: session.Run(o),
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Search all namespaces, as without -n")
	cmd.Flags().BoolVar(&o.attributes, "attributes", false, "Also search the attributes if a name or an ID was found")
	cmd.Flags().IntVar(&o.limit, "limit", 100, "Largest number of results")
	printer.OutputFlag(cmd, &o.output, "Print", "table", "wide", "name", "json", "yaml")
	return cmd
}

func (o *searchOptions) Complete(args []string) error {
	o.text, o.output = args[0], cmp.Or(o.output, "table")
	return o.Connect()
}

func (o *searchOptions) Validate() error {
	switch {
	case o.text == "":
		return errors.New("the text is empty: write a part of a name, an ID or a part of an attribute")
	case o.limit < 1:
		return fmt.Errorf("--limit=%d: write a number from 1 on", o.limit)
	}
	return nil
}

func (o *searchOptions) Run(ctx context.Context) error {
	if err := o.search(ctx, v1alpha1.ResourceFieldSearch); err != nil {
		return err
	}
	if o.attributes && !o.more || len(o.found) == 0 {
		if err := o.search(ctx, v1alpha1.ResourceFieldAttribute); err != nil {
			return err
		}
	}
	if err := o.print(); err != nil {
		return err
	}
	if len(o.skipped) > 0 {
		fmt.Fprintf(o.ErrOut, "%s you may not list resources in %s, so these were not searched: %s.\n",
			o.Style.Yellow("Note:"), diff.Plural(len(o.skipped), "namespace"),
			strings.Join(printer.ShortList(o.skipped, 5), ", "))
	}
	switch {
	case o.more:
		fmt.Fprintf(o.ErrOut, "There are more than %s: a longer text, or a larger --limit.\n", diff.Count(len(o.found)))
	case len(o.found) == 0:
		fmt.Fprintf(o.ErrOut, "No object and no instance that you may list has %q in its name or attributes, or as its ID.\n", diff.Clean(o.text, false))
		return exit.Silent(exit.Failed)
	}
	return nil
}

// search adds the results of a search by a field of Resources. A user without the right to all namespaces searches
// each.
func (o *searchOptions) search(ctx context.Context, field string) error {
	if o.Enforce && !o.all {
		return o.searchIn(ctx, o.Namespace, field)
	}
	err := o.searchIn(ctx, "", field)
	if !apierrors.IsForbidden(err) {
		return err
	}
	names, err := o.readableNamespaces(ctx)
	if err != nil {
		return err
	}
	o.skipped = nil
	for _, name := range names {
		err := o.searchIn(ctx, name, field)
		if apierrors.IsForbidden(err) {
			o.skipped = append(o.skipped, name)
			continue
		}
		if err != nil || o.more {
			return err
		}
	}
	return nil
}

// readableNamespaces returns all namespaces, or that of the command if the user may not list them.
func (o *searchOptions) readableNamespaces(ctx context.Context) (names []string, err error) {
	for opts := (metav1.ListOptions{Limit: session.ListPage}); ; {
		list, err := o.Resource(session.Namespaces, "").List(ctx, opts)
		if apierrors.IsForbidden(err) {
			fmt.Fprintf(o.ErrOut, "%s you may not list namespaces, so only %s is searched. Name another one with -n.\n",
				o.Style.Yellow("Note:"), o.Namespace)
			return []string{o.Namespace}, nil
		}
		if err != nil {
			return nil, o.Explain(err)
		}
		for i := range list.Items {
			names = append(names, list.Items[i].GetName())
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return names, nil
		}
	}
}

// searchIn adds the results in a namespace; an empty one means all. It returns the server's error if the user lacks the
// right.
func (o *searchOptions) searchIn(ctx context.Context, namespace, field string) error {
	return objects.EachSummary(ctx, o.Session, namespace, field, o.text, func(r v1alpha1.ResourceSummary) bool {
		switch {
		case o.seen[r.UID]:
		case len(o.found) == o.limit:
			o.more = true
		default:
			o.found, o.seen[r.UID] = append(o.found, r), true
		}
		return !o.more
	})
}

func (o *searchOptions) print() error {
	switch o.output {
	case "json", "yaml":
		items := make([]any, len(o.found))
		for i := range o.found {
			r := o.found[i]
			r.APIVersion, r.Kind = v1alpha1.SchemeGroupVersion.String(), "Resource"
			items[i] = r
		}
		return printer.JSONList(o.Terminal, items, o.output)
	case "name":
		for _, r := range o.found {
			fmt.Fprintf(o.Out, "%s/%s\n", r.Object.Kind, r.Object.Name)
		}
		return nil
	}
	if len(o.found) == 0 {
		return nil
	}
	return o.table(o.Out)
}

// table prints the results.
func (o *searchOptions) table(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprint(w, "NAMESPACE\tNAME\tREADY\tREASON\tID\tFOUND IN")
	if o.output == "wide" {
		fmt.Fprint(w, "\tMESSAGE")
	}
	fmt.Fprintln(w)
	for _, r := range o.found {
		where := cmp.Or(r.Found, "name or ID")
		fmt.Fprintf(w, "%s\t%s/%s\t%s\t%s\t%s\t%s", r.Namespace, r.Object.Kind,
			diff.Clean(v1alpha1.ShownName(r.Object.Name), false), r.Status.Ready,
			cmp.Or(r.Status.Reason, "-"), diff.Clean(cmp.Or(r.Status.ID, "-"), false), diff.Clean(where, false))
		if o.output == "wide" {
			fmt.Fprint(w, "\t", printer.Flat(r.Status.Message))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
