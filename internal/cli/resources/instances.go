package resources

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/namespace"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/stack"
	"github.com/hykube/hykube/internal/suggest"
)

type instancesOptions struct {
	*session.Session
	// set is the name of the owner of the instances: a ResourceSet, or a Module.
	set     string
	module  bool
	reasons []string
	output  string
}

// NewInstances returns the command instances.
func NewInstances(s *session.Session) *cobra.Command {
	o := &instancesOptions{Session: s}
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
		Args: session.Exactly(1),
		RunE: session.Run(o),
	}
	cmd.Flags().StringSliceVar(&o.reasons, "reason", nil,
		"Only instances whose condition Ready has one of these reasons, such as ApplyFailed")
	printer.OutputFlag(cmd, &o.output, "Print", "table", "wide", "address", "name", "json", "yaml")
	return cmd
}

func (o *instancesOptions) Complete(args []string) error {
	o.set, o.module = strings.CutPrefix(args[0], "module/")
	o.set = strings.TrimPrefix(o.set, "resourceset/")
	o.output = cmp.Or(o.output, "table")
	return o.Connect()
}

// instanceFormat formats the columns of the table, whose widths later pages do not know.
const instanceFormat = "%-40s %-6s %-16s %-20s %s"

// Validate refuses a reason that no instance can have, because the table would just be empty.
func (o *instancesOptions) Validate() error {
	known := slices.Sorted(maps.Keys(objects.ReasonMeanings()))
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
			fmt.Fprintln(o.Out, strings.TrimRight(fmt.Sprintf(instanceFormat, "ADDRESS", "READY", "REASON", "ID",
				"AGE"), " "))
		})
	}
	var items []any
	waiting := false
	for u, err := range objects.InstancesOf(ctx, o.Session, o.owners(), o.Namespace, o.set) {
		if err != nil {
			return o.explainSet(ctx, err)
		}
		heading()
		reason, message, good := objects.Readiness(u)
		if len(o.reasons) > 0 && !slices.Contains(o.reasons, reason) {
			continue
		}
		waiting = waiting || reason == v1alpha1.ReasonAwaitingPlan
		switch o.output {
		case "json", "yaml":
			items = append(items, u.Object)
		case "address":
			fmt.Fprintln(o.Out, addrs.Of(u))
		case "name":
			k := session.Kind{GVR: u.GroupVersionKind().GroupVersion().WithResource(""), Kind: u.GetKind()}
			fmt.Fprintln(o.Out, objects.Long(k, u.GetName()))
		default:
			line := fmt.Sprintf(instanceFormat, addrs.Of(u),
				strings.ToUpper(strconv.FormatBool(good)[:1])+strconv.FormatBool(good)[1:], reason, objects.IDOf(u),
				ageOf(u))
			if o.output == "wide" {
				line += " " + strings.Join(strings.Fields(message), " ")
			}
			fmt.Fprintln(o.Out, strings.TrimRight(line, " "))
		}
	}
	heading()
	if o.output == "json" || o.output == "yaml" {
		return printer.JSONList(o.Terminal, items, o.output)
	}
	if waiting && !o.module && (o.output == "table" || o.output == "wide") {
		return o.noteRollouts(ctx)
	}
	return nil
}

// owners returns the resource of the owner of the instances.
func (o *instancesOptions) owners() string {
	if o.module {
		return session.ModulesResource
	}
	return session.SetsResource
}

// explainSet explains the error of a read of the instances. If there is no such set, it names the most similar one.
func (o *instancesOptions) explainSet(ctx context.Context, err error) error {
	if !apierrors.IsNotFound(err) || session.NotServed(err) {
		return o.Explain(err)
	}
	if err := namespace.NotFound(ctx, o.Session, o.Namespace); err != nil {
		return err
	}
	names, what := o.ownerNames(ctx), "ResourceSet"
	if o.module {
		what = "Module"
	}
	text := fmt.Sprintf("there is no %s %q in namespace %s", what, o.set, o.Namespace)
	if near := suggest.Nearest(o.set, names); near != "" {
		text += fmt.Sprintf(": did you mean %s?", near)
	}
	return errors.New(text)
}

// ownerNames returns the names of the ResourceSets, or of the Modules. It returns nil if the user may not list them.
func (o *instancesOptions) ownerNames(ctx context.Context) (names []string) {
	list := &metav1.PartialObjectMetadataList{}
	raw, err := o.Hykube.Get().Namespace(o.Namespace).Resource(o.owners()).Do(ctx).Raw()
	if err != nil || json.Unmarshal(raw, list) != nil {
		return nil
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// ageOf returns the age of an object, as kubectl prints it.
func ageOf(u *unstructured.Unstructured) string {
	if at := u.GetCreationTimestamp(); !at.IsZero() {
		return printer.Age(at.Time)
	}
	return "-"
}

// noteRollouts prints which plans roll out the set. Their instances have the reason AwaitingPlan until their wave
// begins.
func (o *instancesOptions) noteRollouts(ctx context.Context) error {
	plans, err := planapi.List(ctx, o.Session, o.Namespace)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range plans {
		p := &plans[i]
		if !stack.Approved(p) || p.Ended() {
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
	return strings.Join(printer.Cut(numbers, 5, "%d more"), ", ")
}
