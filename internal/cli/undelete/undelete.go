// Package undelete is the verb undelete, which removes marks for deletion.
package undelete

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

// undeleteOptions holds the options of undelete.
type undeleteOptions struct {
	objects.Named
	// fixed holds the named objects of fixed kinds.
	fixed []session.FixedTarget
}

// New returns the command undelete.
func New(s *session.Session) *cobra.Command {
	o := &undeleteOptions{Named: objects.Named{Session: s}}
	cmd := &cobra.Command{
		Use:   "undelete (KIND/NAME ... | KIND NAME ...)",
		Short: "Take the deletion of objects back, until their destroy is approved",
		Long: `Take the deletion of objects back, until their destroy is approved.

"kubectl delete" only marks an object with infrastructure; the next approved plan destroys it. Until then this command
removes the mark. It also works for a Provider, ProviderConfig, Secret or ConfigMap that waits for the resources that
need it, and for a ResourceSet or a Module with all its resources. For a namespace with infrastructure it also removes the
marks of the resources that were marked with it. The command reverts the lifecycle.destroy that "kubectl hykube state rm" set.

It needs the right to create the subresource "undelete" of the kind. The role "edit" has that right, except for Providers
and namespaces.`,
		Example: `  kubectl hykube undelete sim-network/main
  kubectl hykube undelete resourceset/fleet module/shop
  kubectl hykube undelete providerconfig/default secret/credentials -n prod
  kubectl hykube undelete namespace/prod`,
		ValidArgsFunction: session.CompleteObjects(s, session.AnyNumber, v1alpha1.ModeManaged),
		RunE:              session.Run(o),
	}
	printer.OutputFlag(cmd, &o.Output, "Print only the names", "name")
	return cmd
}

func (o *undeleteOptions) Complete(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no objects are named: write KIND/NAME such as sim-network/main or secret/credentials")
	}
	var rest []string
	for _, a := range slashed(args) {
		if f, ok := session.ParseFixed(a); ok {
			o.fixed = append(o.fixed, f)
			continue
		}
		rest = append(rest, a)
	}
	return o.Read("undelete", rest, v1alpha1.ModeManaged)
}

// slashed converts kubectl's KIND NAME ... to KIND/NAME .... It returns addresses such as sim_network.main unchanged.
func slashed(args []string) []string {
	kind, _, _ := strings.Cut(args[0], ".")
	if len(args) < 2 || strings.Contains(kind, "_") || slices.ContainsFunc(args,
		func(a string) bool { return strings.Contains(a, "/") }) {
		return args
	}
	out := make([]string, 0, len(args)-1)
	for _, name := range args[1:] {
		out = append(out, args[0]+"/"+name)
	}
	return out
}

func (o *undeleteOptions) Run(ctx context.Context) error {
	var errs []error
	for _, f := range o.fixed {
		ns := ""
		if f.Namespaced {
			ns = o.Namespace
		}
		undelete := o.one
		if f.GVR == session.Namespaces {
			undelete = o.withContents
		}
		if err := undelete(ctx, f.Kind, ns, f.Name); err != nil {
			errs = append(errs, err)
		}
	}
	if err := o.EachTarget(func(t addrs.Target) error {
		t, k, ns, err := objects.Find(ctx, o.Session, t)
		if err == nil {
			err = o.one(ctx, k, ns, t.Name)
		}
		if err == nil {
			err = o.manageAgain(ctx, k, ns, t.Name)
		}
		return err
	}); err != nil {
		errs = append(errs, err)
	}
	return exit.Join(errs)
}

func (o *undeleteOptions) one(ctx context.Context, k session.Kind, namespace, name string) error {
	if err := objects.Post(ctx, o.Session, k, namespace, name, "undelete"); err != nil {
		return fmt.Errorf("undelete %s/%s: %w%s", k.Kind, name, o.Explain(err), whatInstead(err, namespace))
	}
	o.PrintResult(k, name, "undeleted")
	return nil
}

// whatInstead says what to do about an object that does not exist any more; "" after another error.
func whatInstead(err error, namespace string) string {
	if !apierrors.IsNotFound(err) {
		return ""
	}
	text := ". What is gone cannot be taken back: apply the file of the object again"
	if namespace != "" {
		text += ". To see whether a plan destroyed it: kubectl hykube history -n " + namespace
	}
	return text
}

// withContents reverts the deletion of a namespace. It returns an error if the deletions of some resources were not
// reverted, because an approved plan destroys them.
func (o *undeleteOptions) withContents(ctx context.Context, k session.Kind, _, name string) error {
	before, unknown := o.marked(ctx, name)
	if err := o.one(ctx, k, "", name); err != nil {
		return err
	}
	if unknown != nil {
		return fmt.Errorf("the namespace %q stays, but the command could not check whether all of its resources stay: %w", name, unknown)
	}
	if len(before) == 0 {
		return nil
	}
	kept, err := o.marked(ctx, name)
	if err != nil {
		return fmt.Errorf("the namespace %q stays, but the command could not check whether all of its resources stay: %w", name, err)
	}
	var lost []string
	for object, marked := range before {
		if stillMarked, exists := kept[object]; marked && (stillMarked || !exists) {
			lost = append(lost, object)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	slices.Sort(lost)
	verb := "stay"
	if len(lost) == 1 {
		verb = "stays"
	}
	return fmt.Errorf("the namespace %q stays, but %s of it %s deleted, because an approved plan destroys their infrastructure: %s", name,
		diff.Plural(len(lost), "resource"), verb,
		strings.Join(printer.Cut(lost, printer.ListedChanges, "and %d more"), ", "))
}

// marked maps each resource of a namespace to whether it was marked for deletion together with the namespace. For a
// resource that was marked earlier, it returns false.
func (o *undeleteOptions) marked(ctx context.Context, namespace string) (map[string]bool, error) {
	ns, err := objects.Get(ctx, o.Session, session.Kind{GVR: session.Namespaces, Kind: "Namespace"}, "", namespace)
	if err != nil {
		return nil, o.Explain(err)
	}
	kinds, err := o.ResourceKinds(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	since := ns.GetDeletionTimestamp()
	_, err = objects.EachObject(ctx, o.Session, kinds, namespace, "",
		func(k session.Kind, u *unstructured.Unstructured) {
			at := u.GetDeletionTimestamp()
			out[k.Kind+"/"+u.GetName()] = at != nil && (since == nil || !at.Before(since))
		})
	return out, err
}

// manageAgain reverts the lifecycle.destroy of false that state rm and state mv set. It keeps a value that a user set.
func (o *undeleteOptions) manageAgain(ctx context.Context, k session.Kind, namespace, name string) error {
	u, err := objects.Get(ctx, o.Session, k, namespace, name)
	if err != nil {
		return fmt.Errorf("%w\nIf `kubectl hykube state rm` set lifecycle.destroy to false, it is still false, and a destroy would forget the object", err)
	}
	if destroy, set, _ := unstructured.NestedBool(u.Object, "lifecycle", "destroy"); destroy || !set || !setByState(u) {
		return nil
	}
	if _, err := objects.MergeAs(ctx, o.Session, objects.StateManager, k, namespace, name,
		map[string]any{"lifecycle": map[string]any{"destroy": nil}}); err != nil {
		return fmt.Errorf("%w\nlifecycle.destroy of %s stays false, as `kubectl hykube state rm` set it: a destroy forgets the object", err, objects.Long(k, name))
	}
	if o.Output == "" {
		fmt.Fprintf(o.ErrOut, "lifecycle.destroy is no longer false, so a destroy of %s destroys its infrastructure.\n",
			objects.Long(k, name))
	}
	return nil
}

// setByState reports whether state rm or state mv set lifecycle.destroy, and no other client has changed it.
func setByState(u *unstructured.Unstructured) bool {
	for _, e := range u.GetManagedFields() {
		var fields struct {
			Lifecycle map[string]any `json:"f:lifecycle"`
		}
		if e.Manager != objects.StateManager || e.FieldsV1 == nil ||
			json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, ok := fields.Lifecycle["f:destroy"]; ok {
			return true
		}
	}
	return false
}
