package cli

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
	"github.com/hykube/hykube/internal/diff"
)

type getOptions struct {
	*session
	selector string
	all      bool
	output   string
}

func newGet(s *session) *cobra.Command {
	o := &getOptions{session: s}
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
		RunE:      run(o),
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.selector, "selector", "l", "", "Only objects with these labels, such as team=infra")
	fs.BoolVarP(&o.all, "all-namespaces", "A", false, "List the objects of all namespaces")
	outputFlag(cmd, &o.output, "Print", "table", "wide", "name", "json", "yaml")
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
	return o.connect()
}

func (o *getOptions) Validate() error {
	if _, err := parseSelector(o.selector); err != nil {
		return err
	}
	if o.all && o.enforce {
		return fmt.Errorf("-A and -n %s exclude each other", o.namespace)
	}
	return nil
}

// listing is an object in the table.
type listing struct {
	kind   kind
	object *unstructured.Unstructured
}

func (o *getOptions) Run(ctx context.Context) error {
	if o.all {
		o.namespace = ""
	}
	kinds, err := o.resourceKinds(ctx)
	if err != nil {
		return explain(err, o.server())
	}
	var entries []listing
	denied, err := o.eachResource(ctx, kinds, o.namespace, o.selector, func(k kind, u *unstructured.Unstructured) {
		if o.output == "table" || o.output == "wide" || o.output == "name" {
			u = shortened(u)
		}
		entries = append(entries, listing{k, u})
	})
	if err != nil {
		return err
	}
	o.printDenied(o.ErrOut, denied, "listed")
	slices.SortFunc(entries, func(a, b listing) int {
		return cmp.Or(strings.Compare(a.object.GetNamespace(), b.object.GetNamespace()), strings.Compare(a.kind.kind, b.kind.kind), v1alpha1.CompareNames(a.object.GetName(), b.object.GetName()))
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
		return printJSON(o.terminal, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items}, o.output)
	case "name":
		for _, e := range entries {
			fmt.Fprintln(o.Out, e.kind.long(e.object.GetName()))
		}
		return nil
	}
	if len(entries) == 0 {
		where := fmt.Sprintf("in %s namespace", o.namespace)
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

// idOf returns the ID of an object's infrastructure, or "-".
func idOf(u *unstructured.Unstructured) string {
	if v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "attributes", "id"); v != nil {
		return diff.Clean(fmt.Sprint(v), false)
	}
	return "-"
}

func (o *getOptions) columns(e listing) []string {
	reason, message, good := readiness(e.object)
	reason = awaitedEnd(e.object, reason)
	ready := "False"
	if good {
		ready = "True"
	}
	out := []string{e.kind.kind + "/" + v1alpha1.ShownName(e.object.GetName()), ready, reason, idOf(e.object), age(e.object.GetCreationTimestamp().Time)}
	if o.output == "wide" {
		out = append(out, diff.Clean(strings.Join(strings.Fields(message), " "), false))
	}
	if o.all {
		out = append([]string{e.object.GetNamespace()}, out...)
	}
	return out
}
