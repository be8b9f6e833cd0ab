package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/suggest"
)

// setsResource is the resource of ResourceSets.
const setsResource = "resourcesets"

type instancesOptions struct {
	*session
	// set is the name of the owner of the instances: a ResourceSet, or a Module.
	set     string
	module  bool
	reasons []string
	output  string
}

func newInstances(s *session) *cobra.Command {
	o := &instancesOptions{session: s}
	cmd := &cobra.Command{
		Use:   "instances (SET | module/NAME)",
		Short: "List the instances of a ResourceSet, or the resources of a Module",
		Long: `List the instances of a ResourceSet, in the order of their keys, or the resources of a Module, in the order of their
addresses. Those that left the set or the Module, and that the next plan destroys, come last.

The command reads the instances in pages and prints each page at once. It needs the right to get "resourcesets/instances"
and to list the kind of the template. For a Module, it needs the right to get "modules/instances", and lists the kinds that
you may list.`,
		Example: `  kubectl hykube instances fleet
  kubectl hykube instances module/shop
  kubectl hykube instances fleet --reason ApplyFailed,CreateUnknown
  kubectl hykube instances fleet -o address`,
		Args: cobra.ExactArgs(1),
		RunE: run(o),
	}
	cmd.Flags().StringSliceVar(&o.reasons, "reason", nil, "Only instances whose condition Ready has one of these reasons, such as ApplyFailed")
	outputFlag(cmd, &o.output, "Print", "table", "wide", "address", "name", "json", "yaml")
	return cmd
}

func (o *instancesOptions) Complete(args []string) error {
	o.set, o.module = strings.CutPrefix(args[0], "module/")
	o.set = strings.TrimPrefix(o.set, "resourceset/")
	o.output = cmp.Or(o.output, "table")
	return o.connect()
}

// instanceFormat formats the columns of the table, whose widths later pages do not know.
const instanceFormat = "%-40s %-6s %-16s %-20s %s"

// Validate refuses a reason that no instance can have, because the table would just be empty.
func (o *instancesOptions) Validate() error {
	known := slices.Sorted(maps.Keys(reasonMeanings()))
	for _, reason := range o.reasons {
		if slices.Contains(known, reason) {
			continue
		}
		text := fmt.Sprintf("--reason: no instance has the reason %q", reason)
		if near := suggest.Nearest(reason, known); near != "" {
			text += fmt.Sprintf(": did you mean %s?", near)
		}
		return fmt.Errorf("%s\nThe reasons are %s", text, strings.Join(known, ", "))
	}
	return nil
}

func (o *instancesOptions) Run(ctx context.Context) error {
	heading := func() {}
	if o.output == "table" || o.output == "wide" {
		heading = sync.OnceFunc(func() {
			fmt.Fprintln(o.Out, strings.TrimRight(fmt.Sprintf(instanceFormat, "ADDRESS", "READY", "REASON", "ID", "AGE"), " "))
		})
	}
	var items []any
	waiting := false
	for u, err := range o.instancesOf(ctx, o.owners(), o.namespace, o.set) {
		if err != nil {
			return o.explainSet(ctx, err)
		}
		heading()
		reason, message, good := readiness(u)
		if len(o.reasons) > 0 && !slices.Contains(o.reasons, reason) {
			continue
		}
		waiting = waiting || reason == v1alpha1.ReasonAwaitingPlan
		switch o.output {
		case "json", "yaml":
			items = append(items, u.Object)
		case "address":
			fmt.Fprintln(o.Out, addressOf(u))
		case "name":
			k := kind{gvr: u.GroupVersionKind().GroupVersion().WithResource(""), kind: u.GetKind()}
			fmt.Fprintln(o.Out, k.long(u.GetName()))
		default:
			line := fmt.Sprintf(instanceFormat, addressOf(u), strings.ToUpper(strconv.FormatBool(good)[:1])+strconv.FormatBool(good)[1:], reason, idOf(u), ageOf(u))
			if o.output == "wide" {
				line += " " + strings.Join(strings.Fields(message), " ")
			}
			fmt.Fprintln(o.Out, strings.TrimRight(line, " "))
		}
	}
	heading()
	if o.output == "json" || o.output == "yaml" {
		return printJSON(o.terminal, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items}, o.output)
	}
	if waiting && !o.module && (o.output == "table" || o.output == "wide") {
		return o.noteRollouts(ctx)
	}
	return nil
}

// owners returns the resource of the owner of the instances.
func (o *instancesOptions) owners() string {
	if o.module {
		return modulesResource
	}
	return setsResource
}

// explainSet explains the error of a read of the instances. If there is no such set, it names the most similar one.
func (o *instancesOptions) explainSet(ctx context.Context, err error) error {
	if !apierrors.IsNotFound(err) || notServed(err) {
		return explain(err, o.server())
	}
	if err := o.noSuchNamespace(ctx, o.namespace); err != nil {
		return err
	}
	names, what := o.ownerNames(ctx), "ResourceSet"
	if o.module {
		what = "Module"
	}
	text := fmt.Sprintf("there is no %s %q in namespace %s", what, o.set, o.namespace)
	if near := suggest.Nearest(o.set, names); near != "" {
		text += fmt.Sprintf(": did you mean %s?", near)
	}
	return errors.New(text)
}

// ownerNames returns the names of the ResourceSets, or of the Modules. It returns nil if the user may not list them.
func (o *instancesOptions) ownerNames(ctx context.Context) (names []string) {
	list := &metav1.PartialObjectMetadataList{}
	raw, err := o.hykube.Get().Namespace(o.namespace).Resource(o.owners()).Do(ctx).Raw()
	if err != nil || json.Unmarshal(raw, list) != nil {
		return nil
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// isSet reports whether an object is a ResourceSet.
func isSet(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == v1alpha1.Kind("ResourceSet")
}

// templateOf returns the template of a ResourceSet as an object of its kind, and other objects unchanged.
func templateOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	if !isSet(u) {
		return u
	}
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	if template == nil {
		template = map[string]any{}
	}
	out := &unstructured.Unstructured{Object: template}
	if out.GetName() == "" {
		out.SetName(u.GetName())
	}
	out.SetNamespace(u.GetNamespace())
	return out
}

// ageOf returns the age of an object, as kubectl prints it.
func ageOf(u *unstructured.Unstructured) string {
	if at := u.GetCreationTimestamp(); !at.IsZero() {
		return age(at.Time)
	}
	return "-"
}

// noteRollouts prints which plans roll out the set. Their instances have the reason AwaitingPlan until their wave begins.
func (o *instancesOptions) noteRollouts(ctx context.Context) error {
	plans, err := o.listPlans(ctx, o.namespace)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range plans {
		p := &plans[i]
		if !approved(p) || p.Ended() {
			continue
		}
		for _, r := range p.Status.Rollouts {
			if r.ResourceSet == o.set {
				fmt.Fprintf(o.ErrOut, "Plan %s is changing the instances of this set in waves (%s). Those with %s wait for their wave: kubectl hykube status %s -n %s.\n",
					p.Name, wavesText(r.Waves), v1alpha1.ReasonAwaitingPlan, p.Name, p.Namespace)
			}
		}
	}
	return nil
}

// wavesText returns the numbers of instances of waves, such as "1, 9, 90".
func wavesText(waves []int32) string {
	var numbers []string
	for _, n := range waves {
		numbers = append(numbers, strconv.Itoa(int(n)))
	}
	return strings.Join(cut(numbers, 5, "%d more"), ", ")
}

// instancesOf returns the instances of a ResourceSet or a Module, whose resource is given. It reads them in pages.
func (s *session) instancesOf(ctx context.Context, resource, namespace, name string) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for cont := ""; ; {
			page := &v1alpha1.ResourceSetInstanceList{}
			err := s.hykube.Get().Namespace(namespace).Resource(resource).Name(name).SubResource("instances").
				Param("limit", strconv.Itoa(listPage)).Param("continue", cont).Do(ctx).Into(page)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				u := &unstructured.Unstructured{}
				if err := u.UnmarshalJSON(page.Items[i].Raw); !yield(u, err) || err != nil {
					return
				}
			}
			if cont = page.Continue; cont == "" {
				return
			}
		}
	}
}

// eachResource visits the objects of some kinds, as eachObject does, and then the instances of ResourceSets and Modules of
// these kinds.
func (s *session) eachResource(ctx context.Context, kinds []kind, namespace, selector string, visit func(kind, *unstructured.Unstructured)) (denied []kind, err error) {
	denied, err = s.eachObject(ctx, kinds, namespace, selector, visit)
	if err != nil {
		return denied, err
	}
	wanted, err := labels.Parse(selector)
	if err != nil {
		return denied, err
	}
	err = s.eachSet(ctx, kinds, namespace, func(k kind, set *v1alpha1.ResourceSet) error {
		for u, err := range s.instancesOf(ctx, setsResource, set.Namespace, set.Name) {
			if apierrors.IsForbidden(err) {
				break // the kind is among the denied ones, too
			}
			if err != nil {
				return fmt.Errorf("list instances of ResourceSet %q: %w", set.Name, explain(err, s.server()))
			}
			if wanted.Matches(labels.Set(u.GetLabels())) {
				visit(k, u)
			}
		}
		return nil
	})
	if err != nil {
		return denied, err
	}
	return denied, s.eachInModules(ctx, kinds, namespace, func(k kind, u *unstructured.Unstructured) {
		if wanted.Matches(labels.Set(u.GetLabels())) {
			visit(k, u)
		}
	})
}

// eachSet visits the ResourceSets whose template has one of some kinds. A user who may not list sets sees none.
func (s *session) eachSet(ctx context.Context, kinds []kind, namespace string, visit func(kind, *v1alpha1.ResourceSet) error) error {
	list := &v1alpha1.ResourceSetList{}
	err := s.hykube.Get().NamespaceIfScoped(namespace, namespace != "").Resource(setsResource).Do(ctx).Into(list)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", setsResource, explain(err, s.server()))
	}
	for i := range list.Items {
		set := &list.Items[i]
		at := indexOfKind(kinds, set.Spec.Template.APIVersion, set.Spec.Template.Kind)
		if at < 0 {
			continue
		}
		if err := visit(kinds[at], set); err != nil {
			return err
		}
	}
	return nil
}

// indexOfKind returns the index of the kind with a name and a version; negative if there is none.
func indexOfKind(kinds []kind, apiVersion, name string) int {
	return slices.IndexFunc(kinds, func(k kind) bool { return k.kind == name && k.gvr.GroupVersion().String() == apiVersion })
}
