// Package resources is the verbs that list resources: get, search and instances.
package resources

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

type getOptions struct {
	*session.Session
	selector string
	all      bool
	output   string
}

// NewGet returns the command get.
func NewGet(s *session.Session) *cobra.Command {
	o := &getOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "get all",
		Short: "List the objects of all providers in one table",
		Long: `List the objects of all providers in one table: resources, data sources, ephemeral resources and actions.

kubectl prints a table for each kind. This command lists all kinds at once and prints a single table. On standard error it
names the kinds that you may not list.`,
		Example: `  kubectl hykube get all -n prod
  kubectl hykube get all -A -l team=infra -o wide
  kubectl hykube get all -o name`,
		Args:      getAll,
		ValidArgs: []string{"all"},
		RunE:      session.Run(o),
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.selector, "selector", "l", "", "Only objects with these labels, such as team=infra")
	fs.BoolVarP(&o.all, "all-namespaces", "A", false, "List the objects of all namespaces")
	printer.OutputFlag(cmd, &o.output, "Print", "table", "wide", "name", "json", "yaml")
	return cmd
}

// getAll permits only the argument "all"; kubectl lists single kinds.
func getAll(_ *cobra.Command, args []string) error {
	if len(args) == 0 || len(args) == 1 && args[0] == "all" {
		return nil
	}
	return fmt.Errorf("the command lists objects of all kinds: kubectl hykube get all. For one kind use kubectl: kubectl get %s", strings.Join(args, " "))
}

func (o *getOptions) Complete([]string) error {
	o.output = cmp.Or(o.output, "table")
	return o.Connect()
}

func (o *getOptions) Validate() error {
	if _, err := objects.ParseSelector(o.selector); err != nil {
		return err
	}
	if o.all && o.Enforce {
		return fmt.Errorf("-A and -n %s exclude each other", o.Namespace)
	}
	return nil
}

// listing is an object in the table.
type listing struct {
	kind   session.Kind
	object *unstructured.Unstructured
}

func (o *getOptions) Run(ctx context.Context) error {
	if o.all {
		o.Namespace = ""
	}
	var entries []listing
	denied, err := objects.EachResource(ctx, o.Session, nil, o.Namespace, o.selector,
		func(k session.Kind, u *unstructured.Unstructured) {
			if o.output == "table" || o.output == "wide" || o.output == "name" {
				u = shortened(u)
			}
			entries = append(entries, listing{k, u})
		})
	if err != nil {
		return err
	}
	objects.PrintDenied(o.Session, o.ErrOut, denied, "listed")
	slices.SortFunc(entries, func(a, b listing) int {
		return cmp.Or(strings.Compare(a.object.GetNamespace(), b.object.GetNamespace()),
			strings.Compare(a.kind.Kind, b.kind.Kind), v1alpha1.CompareNames(a.object.GetName(), b.object.GetName()))
	})
	return o.print(entries)
}

// shortened returns the parts of an object that the table needs, because a namespace may have very many objects.
func shortened(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"metadata": u.Object["metadata"]}}
	out.SetManagedFields(nil)
	out.SetAnnotations(nil)
	status, _ := u.Object["status"].(map[string]any)
	kept := map[string]any{}
	for _, f := range []string{"conditions", "observedGeneration"} {
		if v, ok := status[f]; ok {
			kept[f] = v
		}
	}
	if attributes, ok := status["attributes"].(map[string]any); ok {
		kept["attributes"] = map[string]any{"id": attributes["id"]}
	}
	out.Object["status"] = kept
	return out
}

func (o *getOptions) print(entries []listing) error {
	switch o.output {
	case "json", "yaml":
		items := make([]any, len(entries))
		for i, e := range entries {
			e.object.SetManagedFields(nil)
			items[i] = e.object.Object
		}
		return printer.JSONList(o.Terminal, items, o.output)
	case "name":
		for _, e := range entries {
			fmt.Fprintln(o.Out, objects.Long(e.kind, e.object.GetName()))
		}
		return nil
	}
	if len(entries) == 0 {
		where := fmt.Sprintf("in %s namespace", o.Namespace)
		if o.all {
			where = "in any namespace"
		}
		fmt.Fprintf(o.ErrOut, "No objects of providers found %s.\n", where)
		return nil
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	header := []string{"NAME", "READY", "REASON", "ID", "AGE"}
	if o.output == "wide" {
		header = append(header, "MESSAGE")
	}
	if o.all {
		header = append([]string{"NAMESPACE"}, header...)
	}
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, e := range entries {
		fmt.Fprintln(w, strings.Join(o.columns(e), "\t"))
	}
	return w.Flush()
}

func (o *getOptions) columns(e listing) []string {
	reason, message, good := objects.Readiness(e.object)
	reason = objects.AwaitedEnd(e.object, reason)
	ready := "False"
	if good {
		ready = "True"
	}
	out := []string{e.kind.Kind + "/" + v1alpha1.ShownName(e.object.GetName()), ready, reason, objects.IDOf(e.object),
		printer.Age(e.object.GetCreationTimestamp().Time)}
	if o.output == "wide" {
		out = append(out, diff.Clean(strings.Join(strings.Fields(message), " "), false))
	}
	if o.all {
		out = append([]string{e.object.GetNamespace()}, out...)
	}
	return out
}
