// Package state is the verbs taint and untaint, and those below state: list, show, rm, mv, pull and push.
package state

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/namespace"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/shell"
)

// New returns the command state.
func New(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "List, show, forget, move, push and pull the recorded state",
		Example: `  kubectl hykube state list -n prod
  kubectl hykube state show sim-instance/web-1
  kubectl hykube state rm sim-instance/web-1
  kubectl hykube state mv sim-instance/web-1 sim-instance/front-1
  terraform state pull | kubectl hykube state push - -n prod`,
		Args: cobra.ArbitraryArgs,
		RunE: session.Group(terraformState),
	}
	cmd.AddCommand(newStateList(s), newStateShow(s), newStateRm(s), newStateMv(s), newStatePush(s), newStatePull(s))
	return cmd
}

type stateListOptions struct {
	*session.Session
	types    []string
	selector string
	output   string
}

func newStateList(s *session.Session) *cobra.Command {
	o := &stateListOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "list [TYPE ...]",
		Short: "List the objects with infrastructure, and the data sources that were read",
		Long: `List the objects with infrastructure, and the data sources that were read.

An object without an ID has only deposed instances, or a create that runs or whose outcome is unknown. The state
WithoutObject is that of a record whose object does not exist, as after a restore of another moment.

On a terminal the command prints a table. In a pipe it prints an address on each line, as "terraform state list" does.`,
		Example: `  kubectl hykube state list
  kubectl hykube state list sim_instance -l team=infra -o name`,
		ValidArgsFunction: session.CompleteTypes(s),
		RunE:              session.Run(o),
	}
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "Only objects with these labels, such as team=infra")
	printer.OutputFlag(cmd, &o.output, "Print", "table", "address", "name", "json", "yaml")
	return cmd
}

func (o *stateListOptions) Complete(args []string) error {
	for _, a := range args {
		a = strings.TrimSuffix(a, ".")
		m, typ := v1alpha1.ParseKind(v1alpha1.KindOf(strings.ReplaceAll(a, ".", "-")))
		o.types = append(o.types, m.KindOf(typ))
	}
	if o.output == "" {
		o.output = "address"
		if o.Live {
			o.output = "table"
		}
	}
	return o.Connect()
}

func (o *stateListOptions) Validate() error {
	if _, err := objects.ParseSelector(o.selector); err != nil {
		return err
	}
	return nil
}

// row is one line of the list.
type row struct{ address, name, id, reason string }

// document returns the row as an item of -o json.
func (r row) document(namespace string) map[string]any {
	out := map[string]any{"address": r.address, "name": r.name, "namespace": namespace, "reason": r.reason}
	if r.id != "-" {
		out["id"] = r.id
	}
	return out
}

func (o *stateListOptions) Run(ctx context.Context) error {
	all, err := o.ResourceKinds(ctx)
	if err != nil {
		return err
	}
	var kinds []session.Kind
	for _, k := range all {
		m, _ := v1alpha1.ParseKind(k.Kind)
		if m != v1alpha1.ModeEphemeral && m != v1alpha1.ModeAction &&
			(len(o.types) == 0 || slices.Contains(o.types, k.Kind)) {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 && len(o.types) > 0 {
		return fmt.Errorf("no provider has resources of the type %s: `kubectl hykube provider schema PROVIDER` lists its kinds", strings.Join(o.types, ", "))
	}
	var rows []row
	denied, err := objects.EachResource(ctx, o.Session, kinds, o.Namespace, o.selector,
		func(k session.Kind, u *unstructured.Unstructured) {
			if !objects.HasRecord(u) {
				return
			}
			reason, _, _ := objects.Readiness(u)
			rows = append(rows, row{addrs.Of(u), objects.Long(k, u.GetName()), objects.IDOf(u), reason})
		})
	if err != nil {
		return err
	}
	orphans, err := o.orphanRows(ctx, kinds)
	if err != nil {
		return err
	}
	rows = append(rows, orphans...)
	objects.PrintDenied(o.Session, o.ErrOut, denied, "listed")
	if len(orphans) > 0 {
		fmt.Fprintf(o.ErrOut, "%s of %s does not exist (%s). No plan changes or destroys these resources: kubectl hykube status -n %s\n",
			o.Style.Yellow("The object"), diff.Plural(len(orphans), "record"), v1alpha1.ReasonWithoutObject,
			o.Namespace)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(v1alpha1.CompareNames(a.address, b.address), strings.Compare(a.name, b.name))
	})
	if len(rows) == 0 {
		if err := namespace.NotFound(ctx, o.Session, o.Namespace); err != nil {
			return err
		}
	}
	switch o.output {
	case "address":
		for _, r := range rows {
			fmt.Fprintln(o.Out, r.address)
		}
		return nil
	case "name":
		for _, r := range rows {
			fmt.Fprintln(o.Out, r.name)
		}
		return nil
	case "json", "yaml":
		items := make([]map[string]any, len(rows))
		for i, r := range rows {
			items[i] = r.document(o.Namespace)
		}
		return printer.JSON(o.Terminal, map[string]any{"items": items}, o.output)
	}
	if len(rows) == 0 {
		fmt.Fprintf(o.ErrOut, "No object of namespace %s has infrastructure.\n", o.Namespace)
		return nil
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "ADDRESS\tID\tSTATE")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.address, r.id, r.reason)
	}
	return w.Flush()
}

// orphanRows returns the rows of records whose object does not exist, of some kinds. They have no labels to select.
func (o *stateListOptions) orphanRows(ctx context.Context, kinds []session.Kind) (rows []row, err error) {
	if o.selector != "" {
		return nil, nil
	}
	all, err := objects.WithoutObject(ctx, o.Session, o.Namespace)
	for _, r := range all {
		i := slices.IndexFunc(kinds, func(k session.Kind) bool {
			return k.Kind == r.Object.Kind && k.GVR.GroupVersion().String() == r.Object.APIVersion
		})
		if i < 0 {
			continue
		}
		m, typ := v1alpha1.ParseKind(r.Object.Kind)
		t := addrs.Target{Mode: m, Type: typ, Name: r.Object.Name}
		rows = append(rows, row{t.Address(), objects.Long(kinds[i], r.Object.Name),
			diff.Clean(cmp.Or(r.Status.ID, "-"), false), r.Status.Reason})
	}
	return rows, err
}

type stateShowOptions struct{ objects.Named }

func newStateShow(s *session.Session) *cobra.Command {
	o := &stateShowOptions{objects.Named{Session: s}}
	cmd := &cobra.Command{
		Use:   "show KIND/NAME",
		Short: "Show the recorded state of a resource",
		Long: `Show the recorded state of a resource.

The command masks secrets. With -o json or yaml it prints the provider's raw state with its secrets, which needs the
right to get the subresource "state" of the kind.`,
		Example: `  kubectl hykube state show sim-instance/web-1
  kubectl hykube state show sim_instance.web-1 -o json`,
		Args:              session.Exactly(1),
		ValidArgsFunction: session.CompleteObjects(s, 1, v1alpha1.ModeManaged, v1alpha1.ModeData),
		RunE:              session.Run(o),
	}
	printer.OutputFlag(cmd, &o.Output, "Print the raw state", "json", "yaml")
	return cmd
}

func (o *stateShowOptions) Complete(args []string) error {
	return o.Read("state show", args, v1alpha1.ModeManaged, v1alpha1.ModeData)
}

func (o *stateShowOptions) Run(ctx context.Context) error {
	t, k, ns, err := objects.Find(ctx, o.Session, o.Targets[0])
	if err != nil {
		return err
	}
	if o.Output != "" {
		return o.raw(ctx, k, ns, t)
	}
	u, err := objects.Get(ctx, o.Session, k, ns, t.Name)
	if err != nil {
		return err
	}
	attributes, _, _ := unstructured.NestedMap(u.Object, "status", "attributes")
	switch {
	case len(attributes) > 0:
	case objects.HasRecord(u):
		reason, _, _ := objects.Readiness(u)
		return fmt.Errorf("%s has no current instance. Its record has deposed instances, or a create that runs or whose outcome is unknown (%s). `kubectl hykube state show %s -n %s -o json` shows the record",
			t.Address(), reason, shell.Word(t.Address()), ns)
	default:
		return fmt.Errorf("%s has no state: no plan has created or read it yet; plan and apply it", t.Address())
	}
	plain, err := printer.JSONMap(attributes)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s\n%s", o.Style.Bold("# "+t.Address()+":"),
		diff.Resource(t.Mode, t.Type, t.Name, plain, o.Style))
	return nil
}

// raw prints the raw provider state.
func (o *stateShowOptions) raw(ctx context.Context, k session.Kind, ns string, t addrs.Target) error {
	raw, err := o.Hykube.Get().AbsPath("apis", k.GVR.Group, k.GVR.Version, "namespaces", ns, k.GVR.Resource, t.Name,
		"state").
		SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		if apierrors.IsForbidden(err) {
			return &exit.Error{Code: exit.Refused,
				Cause: fmt.Errorf("read state of %s: you need get on %s/state in the group %s and the namespace %s: the raw state contains secrets\n`kubectl hykube state show %s` shows it with secrets masked", t.Address(), k.GVR.Resource, k.GVR.Group, ns, shell.Word(t.Address()))}
		}
		if !apierrors.IsNotFound(err) {
			err = o.Explain(err)
		}
		return fmt.Errorf("read state of %s: %w", t.Address(), err)
	}
	v, err := printer.JSONMap(json.RawMessage(raw))
	if err != nil {
		return fmt.Errorf("read state of %s: %w", t.Address(), err)
	}
	return printer.JSON(o.Terminal, v, o.Output)
}

type stateRmOptions struct{ objects.Named }

func newStateRm(s *session.Session) *cobra.Command {
	o := &stateRmOptions{objects.Named{Session: s}}
	cmd := &cobra.Command{
		Use:   "rm KIND/NAME ...",
		Short: "Forget resources without destroying their infrastructure",
		Long: `Forget resources without destroying their infrastructure.

The command sets lifecycle.destroy of the objects to false and deletes them without waiting. The next applied plan removes
the records and the objects. Until then "kubectl hykube undelete" takes both back.
"kubectl hykube import" imports a resource again.`,
		Example: `  kubectl hykube state rm sim-instance/web-1
  kubectl hykube apply --target sim_instance.web-1`,
		ValidArgsFunction: session.CompleteObjects(s, session.AnyNumber, v1alpha1.ModeManaged),
		RunE:              session.Run(o),
	}
	printer.OutputFlag(cmd, &o.Output, "Print only the names", "name")
	return cmd
}

func (o *stateRmOptions) Complete(args []string) error {
	if len(args) == 0 {
		return errors.New("no resources are named: write TYPE.NAME such as sim_network.main, or KIND/NAME such as sim-network/main")
	}
	return o.Read("state rm", args, v1alpha1.ModeManaged)
}

func (o *stateRmOptions) Run(ctx context.Context) error {
	return o.ForgetAll(ctx, "The next applied plan forgets the marked objects and keeps their infrastructure")
}

type stateMvOptions struct{ objects.Named }

func newStateMv(s *session.Session) *cobra.Command {
	o := &stateMvOptions{objects.Named{Session: s}}
	cmd := &cobra.Command{
		Use:   "mv OLD NEW",
		Short: "Rename a resource, or move it to another type",
		Long: `Rename a resource, or move it to another type that its provider supports.

The command first records the new object, with the old one's spec and labels and with lifecycle.moved. An existing object
without infrastructure keeps its own spec. Then the command deletes the old object without waiting. The next applied plan
moves the record and changes no infrastructure. If the provider refuses to move the resource to another type, the plan
fails and destroys nothing, because the command sets lifecycle.destroy of the old object to false. After an interruption,
run the same command again. Change expressions and files that name the old object yourself.`,
		Example: `  kubectl hykube state mv sim-instance/web-1 sim-instance/front-1
  kubectl hykube apply --target sim_instance.front-1`,
		Args:              session.Exactly(2),
		ValidArgsFunction: session.CompleteObjects(s, 2, v1alpha1.ModeManaged),
		RunE:              session.Run(o),
	}
	printer.OutputFlag(cmd, &o.Output, "Print only the name of the new object", "name")
	return cmd
}

func (o *stateMvOptions) Complete(args []string) error {
	return o.Read("state mv", args, v1alpha1.ModeManaged)
}

func (o *stateMvOptions) Run(ctx context.Context) error {
	from, oldKind, ns, err := objects.Find(ctx, o.Session, o.Targets[0])
	if err != nil {
		return err
	}
	to, newKind, other, err := objects.Find(ctx, o.Session, o.Targets[1])
	if err != nil {
		return err
	}
	if other != ns {
		return fmt.Errorf("state mv: %s and %s are in different namespaces, and a record cannot move to another one",
			from.Full(), to.Full())
	}
	o.Targets = []addrs.Target{from, to}
	if from.Address() == to.Address() {
		return fmt.Errorf("state mv: %s is both the old and the new name", from.Address())
	}
	if err := o.oneProvider(ctx, oldKind, newKind); err != nil {
		return err
	}
	old, err := objects.Get(ctx, o.Session, oldKind, ns, from.Name)
	if err != nil {
		return err
	}
	verb, err := o.receive(ctx, old, newKind, ns)
	if err != nil {
		return err
	}
	if verb != "" {
		o.PrintResult(newKind, to.Name, verb)
	}
	// If the move fails later, lifecycle.destroy makes the plan forget the old object instead of destroying its
	// infrastructure.
	waits := old.GetDeletionTimestamp() != nil
	_, err = objects.MergeAs(ctx, o.Session, objects.StateManager, oldKind, ns, from.Name,
		map[string]any{"lifecycle": map[string]any{"destroy": false}})
	if err == nil && !waits {
		waits, err = objects.Mark(ctx, o.Session, oldKind, ns, old)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s is recorded, but %s must be deleted before a plan can move the record. Until then plans of the two fail. To continue, run the same command again; to undo, run kubectl delete %s -n %s",
			err, objects.Long(newKind, to.Name), objects.Long(oldKind, from.Name), objects.Long(newKind, to.Name), ns)
	}
	if o.Output != "" {
		return nil
	}
	if !waits {
		fmt.Fprintf(o.Out, "%s deleted\n", objects.Long(oldKind, from.Name))
		return nil
	}
	fmt.Fprintf(o.Out, "%s marked to be moved\n", objects.Long(oldKind, from.Name))
	fmt.Fprintf(o.ErrOut, "The next applied plan moves the record and keeps the infrastructure: kubectl hykube apply --target %s -n %s\nIn other objects and in files, change references from %s to %s.\n",
		shell.Word(to.Address()), ns, from.Address(), to.Address())
	return nil
}

// oneProvider returns an error if the two kinds belong to different providers.
func (o *stateMvOptions) oneProvider(ctx context.Context, from, to session.Kind) error {
	if from.GVR.Group == to.GVR.Group {
		return nil
	}
	var sources []string
	for _, k := range []session.Kind{from, to} {
		name, _ := v1alpha1.ProviderOfGroup(k.GVR.Group)
		p := &v1alpha1.Provider{}
		if err := o.Hykube.Get().Resource("providers").Name(name).Do(ctx).Into(p); err != nil {
			return nil // the plan will report it
		}
		sources = append(sources, p.Spec.Source)
	}
	if sources[0] == sources[1] {
		return nil // two versions of one provider
	}
	return fmt.Errorf("state mv: %s belongs to the provider %s, and %s to %s. If the new provider can take over the other's state, set lifecycle.moved in the new object yourself. Nothing was changed",
		from.Kind, sources[0], to.Kind, sources[1])
}

// receive records the object that gets the record. verb is its result, or "" if the object already exists.
func (o *stateMvOptions) receive(ctx context.Context, old *unstructured.Unstructured, k session.Kind,
	ns string) (verb string, err error) {
	from, to := o.Targets[0], o.Targets[1]
	current, err := o.Resource(k.GVR, ns).Get(ctx, to.Name, metav1.GetOptions{})
	exists := err == nil
	// a user without read access may have write access
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return "", fmt.Errorf("get %s %q: %w", k.Kind, to.Name, o.Explain(err))
	}
	movedFrom := ""
	if exists {
		movedFrom, _, _ = unstructured.NestedString(current.Object, "lifecycle", "moved", "from")
	}
	moving := movedFrom == from.Address()
	switch {
	case exists && objects.Managed(current):
		return "", fmt.Errorf("state mv: %s already has infrastructure: kubectl hykube state show %s -n %s. Nothing was changed", to.Address(), shell.Word(to.Address()), ns)
	case exists && current.GetDeletionTimestamp() != nil:
		return "", fmt.Errorf("state mv: %s is marked for deletion. Nothing was changed", objects.Long(k, to.Name))
	case old.GetDeletionTimestamp() != nil && !moving:
		return "", fmt.Errorf("state mv: %s is marked for deletion already. Nothing was changed", from.Address())
	case !objects.HasRecord(old):
		return "", fmt.Errorf("state mv: %s has no infrastructure, so there is no record to move: delete it with kubectl, and record %s. Nothing was changed", from.Address(), to.Address())
	case exists && movedFrom != "" && !moving:
		return "", fmt.Errorf("state mv: lifecycle.moved of %s already names %s. Nothing was changed", to.Address(),
			movedFrom)
	case moving:
		return "", nil
	case exists:
		patch := map[string]any{"lifecycle": map[string]any{"moved": map[string]any{"from": from.Address()},
			"import": nil}}
		if _, err := objects.Merge(ctx, o.Session, k, ns, to.Name, patch); err != nil {
			return "", fmt.Errorf("%w\nNothing was changed", err)
		}
		return "configured", nil
	}
	// Create fails if the object exists, so it overwrites nothing.
	opts := metav1.CreateOptions{FieldManager: objects.FieldManager, FieldValidation: metav1.FieldValidationStrict}
	if _, err := o.Resource(k.GVR, ns).Create(ctx, moved(old, k, to.Name, from), opts); err != nil {
		if from.Type != to.Type && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
			return "", fmt.Errorf("create %s %q with the spec of %s: %w\nNothing was changed. Record it yourself, with a spec of its own, and run the same command again", k.Kind, to.Name, from.Address(), err)
		}
		return "", fmt.Errorf("create %s %q: %w\nNothing was changed", k.Kind, to.Name, o.Explain(err))
	}
	return "created", nil
}

// moved returns the new object for the record of an old one.
func moved(old *unstructured.Unstructured, k session.Kind, name string, from addrs.Target) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(k.GVR.GroupVersion().String())
	u.SetKind(k.Kind)
	u.SetName(name)
	u.SetNamespace(old.GetNamespace())
	u.SetLabels(old.GetLabels())
	annotations := old.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration") // it names the old object
	u.SetAnnotations(annotations)
	if spec, ok := old.Object["spec"]; ok {
		u.Object["spec"] = spec
	}
	lifecycle, _, _ := unstructured.NestedMap(old.Object, "lifecycle")
	if lifecycle == nil {
		lifecycle = map[string]any{}
	}
	delete(lifecycle, "import")
	lifecycle["moved"] = map[string]any{"from": from.Address()}
	u.Object["lifecycle"] = lifecycle
	return u
}

// terraformState holds hints for verbs of `terraform state` that `state` lacks.
var terraformState = map[string]string{
	"replace-provider": "change spec.source of the Provider object",
	"get":              "kubectl hykube state show KIND/NAME",
	"describe":         "kubectl hykube state show KIND/NAME",
	"remove":           "kubectl hykube state rm KIND/NAME",
	"delete":           "kubectl hykube state rm KIND/NAME",
	"forget":           "kubectl hykube state rm KIND/NAME",
	"move":             "kubectl hykube state mv OLD NEW",
	"rename":           "kubectl hykube state mv OLD NEW",
}
