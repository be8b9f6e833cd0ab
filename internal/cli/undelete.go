package cli

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
	"github.com/hykube/hykube/internal/diff"
)

// undeleteOptions holds the options of undelete.
type undeleteOptions struct {
	objects
	// fixed holds the named objects of fixed kinds.
	fixed []fixedTarget
}

// fixedTarget is an object of a kind that every server has.
type fixedTarget struct {
	fixedKind
	name string
}

// parseFixed parses KIND/NAME of a fixed kind, with any of kubectl's names for the kind.
func parseFixed(s string) (fixedTarget, bool) {
	word, name, _ := strings.Cut(strings.ToLower(s), "/")
	word, group, _ := strings.Cut(word, ".")
	for _, k := range fixedKinds {
		named := slices.Contains([]string{strings.ToLower(k.kind.kind), k.gvr.Resource, k.short}, word)
		if named && k.kind.kind != "Plan" && name != "" && (group == "" || group == k.gvr.Group) {
			return fixedTarget{k, name}, true
		}
	}
	return fixedTarget{}, false
}

func newUndelete(s *session) *cobra.Command {
	o := &undeleteOptions{objects: objects{session: s}}
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
		ValidArgsFunction: completeObjects(s, anyNumber, v1alpha1.ModeManaged),
		RunE:              run(o),
	}
	outputFlag(cmd, &o.output, "Print only the names", "name")
	return cmd
}

func (o *undeleteOptions) Complete(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no objects are named: write KIND/NAME such as sim-network/main or secret/credentials")
	}
	var rest []string
	for _, a := range slashed(args) {
		if f, ok := parseFixed(a); ok {
			o.fixed = append(o.fixed, f)
			continue
		}
		rest = append(rest, a)
	}
	return o.read("undelete", rest, v1alpha1.ModeManaged)
}

// slashed converts kubectl's KIND NAME ... to KIND/NAME .... It returns addresses such as sim_network.main unchanged.
func slashed(args []string) []string {
	kind, _, _ := strings.Cut(args[0], ".")
	if len(args) < 2 || strings.Contains(kind, "_") || slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "/") }) {
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
		if f.namespaced {
			ns = o.namespace
		}
		undelete := o.one
		if f.gvr == namespaces {
			undelete = o.withContents
		}
		if err := undelete(ctx, f.kind, ns, f.name); err != nil {
			errs = append(errs, err)
		}
	}
	if err := o.eachTarget(func(t target) error {
		t, k, ns, err := o.find(ctx, t)
		if err == nil {
			err = o.one(ctx, k, ns, t.name)
		}
		if err == nil {
			err = o.manageAgain(ctx, k, ns, t.name)
		}
		return err
	}); err != nil {
		errs = append(errs, err)
	}
	return joinExit(errs)
}

func (o *undeleteOptions) one(ctx context.Context, k kind, namespace, name string) error {
	if err := o.post(ctx, k, namespace, name, "undelete"); err != nil {
		return fmt.Errorf("undelete %s/%s: %w%s", k.kind, name, explain(err, o.server()), whatInstead(err, namespace))
	}
	o.printResult(k, name, "undeleted")
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
func (o *undeleteOptions) withContents(ctx context.Context, k kind, _, name string) error {
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
		diff.Plural(len(lost), "resource"), verb, strings.Join(cut(lost, listedChanges, "and %d more"), ", "))
}

// marked maps each resource of a namespace to whether it was marked for deletion together with the namespace. For a
// resource that was marked earlier, it returns false.
func (o *undeleteOptions) marked(ctx context.Context, namespace string) (map[string]bool, error) {
	ns, err := o.get(ctx, kind{namespaces, "Namespace"}, "", namespace)
	if err != nil {
		return nil, explain(err, o.server())
	}
	kinds, err := o.resourceKinds(ctx)
	if err != nil {
		return nil, explain(err, o.server())
	}
	out := map[string]bool{}
	since := ns.GetDeletionTimestamp()
	_, err = o.eachObject(ctx, kinds, namespace, "", func(k kind, u *unstructured.Unstructured) {
		at := u.GetDeletionTimestamp()
		out[k.kind+"/"+u.GetName()] = at != nil && (since == nil || !at.Before(since))
	})
	return out, err
}

// manageAgain reverts the lifecycle.destroy of false that state rm and state mv set. It keeps a value that a user set.
func (o *undeleteOptions) manageAgain(ctx context.Context, k kind, namespace, name string) error {
	u, err := o.get(ctx, k, namespace, name)
	if err != nil {
		return fmt.Errorf("%w\nIf `kubectl hykube state rm` set lifecycle.destroy to false, it is still false, and a destroy would forget the object", err)
	}
	if destroy, set, _ := unstructured.NestedBool(u.Object, "lifecycle", "destroy"); destroy || !set || !setByState(u) {
		return nil
	}
	if _, err := o.mergeAs(ctx, stateManager, k, namespace, name, map[string]any{"lifecycle": map[string]any{"destroy": nil}}); err != nil {
		return fmt.Errorf("%w\nlifecycle.destroy of %s stays false, as `kubectl hykube state rm` set it: a destroy forgets the object", err, k.long(name))
	}
	if o.output == "" {
		fmt.Fprintf(o.ErrOut, "lifecycle.destroy is no longer false, so a destroy of %s destroys its infrastructure.\n", k.long(name))
	}
	return nil
}

// setByState reports whether state rm or state mv set lifecycle.destroy, and no other client has changed it.
func setByState(u *unstructured.Unstructured) bool {
	for _, e := range u.GetManagedFields() {
		var fields struct {
			Lifecycle map[string]any `json:"f:lifecycle"`
		}
		if e.Manager != stateManager || e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, ok := fields.Lifecycle["f:destroy"]; ok {
			return true
		}
	}
	return false
}
