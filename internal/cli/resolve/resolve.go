// Package resolve is the verb resolve, for creates with an unknown outcome and lost records.
package resolve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/imports"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/shell"
)

// forgetRecords asks, and removes records whose object does not exist.
func (o *resolveOptions) forgetRecords(ctx context.Context) error {
	if !o.imports.AutoApprove {
		fmt.Fprintln(o.ErrOut, "These records have no object:")
		for _, r := range o.orphans {
			fmt.Fprintf(o.ErrOut, "  %s/%s with the ID %s\n", r.kind.Kind, r.Name, diff.Clean(cmp.Or(r.id, "-"), false))
		}
		fmt.Fprintln(o.ErrOut, "To forget them destroys nothing, and cannot be undone. Nothing manages the resources afterwards.")
	}
	if err := o.imports.Require(ctx, "Do you want to forget these records?", o.ErrOut, nothingChanged); err != nil {
		return err
	}
	var errs []error
	back := ""
	for _, r := range o.orphans {
		if err := objects.PostUID(ctx, o.Session, r.kind, r.Namespace, r.Name, r.uid, "resolve"); err != nil {
			errs = append(errs, fmt.Errorf("forget the record of %s: %w", r.Address(), o.Explain(err)))
			continue
		}
		o.PrintResult(r.kind, r.Name, "forgotten")
		if id := operation.ShownID(r.id); id != "" {
			back += fmt.Sprintf("  kubectl hykube import %s/%s %s -n %s\n", r.kind.Kind, r.Name, shell.Word(id),
				r.Namespace)
		}
	}
	if back != "" && o.Output == "" {
		fmt.Fprint(o.ErrOut, "To take the resources back, where the type has an import:\n"+back)
	}
	return exit.Join(errs)
}

type resolveOptions struct {
	objects.Named
	// imports adopts a resource. Its question and its --auto-approve are also those of --retry.
	imports       *imports.Options
	retry, forget bool
	all           bool
	selector      string
	// adoptFrom is the file with the objects and IDs of resources to adopt; "-" is standard input. listing lists the
	// resources of the providers, and pairs them with the objects.
	adoptFrom string
	listing   bool
	unsettled objects.Unsettled
	// orphans are the targets that have a record and no object.
	orphans []lostCreate
}

// New returns the command resolve.
func New(s *session.Session) *cobra.Command {
	o := &resolveOptions{Named: objects.Named{Session: s}, unsettled: objects.NewUnsettled(s),
		imports: &imports.Options{Operation: operation.New(s, "Do you want to import this resource?")}}
	cmd := &cobra.Command{
		Use:   "resolve ((KIND/NAME ... | -l SELECTOR | --all) (--adopt ID | --search | --retry | --forget) | --adopt-from FILE)",
		Short: "Settle creates with an unknown outcome",
		Long: `Settle creates with an unknown outcome. Their objects have the reason CreateUnknown.

A create started, and no answer of the provider was recorded, for example because the server was killed. The resource may
exist, so Hykube does not create it a second time, and plans of the resource fail. Check with the cloud whether the
resource exists. Then use one of these flags:

  --adopt ID   The resource exists: import it, as "kubectl hykube import KIND/NAME ID" does.
  --retry      The resource does not exist: the next plan creates it. If it exists nevertheless, that plan makes a
               second one.
  --forget     Stop managing the resource, whether it exists or not: mark the object for deletion, as "kubectl hykube
               state rm" does. The next applied plan removes the record and destroys nothing. For an instance of a
               ResourceSet, remove its key from the set, or lower the count, instead: the plan then does the same.

The same flags settle an object that a plan applied and whose record is lost (RecordLost), as after a restore of another
moment. --forget also removes the record of an object that does not exist (WithoutObject), at once and after a question. For
that, it needs the right to approve plans, too.

--adopt-from FILE adopts many resources with one plan. Each line of the file has an address and an ID, with a space or a comma
between them. The command checks all lines before it writes anything, and skips resources that are adopted already, so
that you can repeat it. --search lists the resources of the types that the provider can list, and pairs those that no
object manages with the objects, by the ID that an object shows and by the values of the specs, which the server evaluates.
It prints the pairs as such a file, and asks. For a resource of a Module, it prints the import block to write.

--all and -l find the objects with an unknown create or a lost record in the namespace, also before a plan has found them. To
plan the other resources first, use "kubectl hykube plan --exclude TYPE.NAME".

--retry needs the right to create the subresource "resolve" of the kind. The role "edit" has that right.`,
		Example: `  kubectl hykube resolve sim-instance/web-1 --adopt ins-0000002a
  kubectl hykube resolve sim_disk.data sim_disk.logs --retry
  kubectl hykube resolve --adopt-from found.txt
  kubectl hykube resolve --all --search
  kubectl hykube resolve --all --retry -n prod
  kubectl hykube resolve -l team=infra --forget`,
		ValidArgsFunction: session.CompleteObjects(s, session.AnyNumber, v1alpha1.ModeManaged),
		RunE:              session.Run(o),
	}
	fs := cmd.Flags()
	fs.StringVar(&o.imports.ID, "adopt", "", "Import the resource with this ID, in the provider's own format")
	fs.StringVar(&o.adoptFrom, "adopt-from", "",
		"Import the resources of a file with lines ADDRESS ID; - reads standard input")
	fs.BoolVar(&o.listing, "search", false,
		"List the resources of the providers, and adopt those that match the specs, after a question")
	fs.BoolVar(&o.retry, "retry", false, "Let the next plan create the resources, because they do not exist")
	fs.BoolVar(&o.forget, "forget", false, "Let the next plan remove the records, and destroy nothing")
	fs.BoolVar(&o.all, "all", false,
		"All objects of the namespace whose create has an unknown outcome, or whose record is lost")
	fs.StringVarP(&o.selector, "selector", "l", "", "Those of them with these labels, such as team=infra")
	printer.OutputFlag(cmd, &o.Output, "Print only the names", "name")
	o.imports.AddFlags(fs, "Apply the import, or retry, without asking")
	return cmd
}

func (o *resolveOptions) Complete(args []string) error {
	return o.Read("resolve", args, v1alpha1.ModeManaged)
}

func (o *resolveOptions) Validate() error {
	if count(o.imports.ID != "", o.adoptFrom != "", o.listing, o.retry, o.forget) != 1 {
		return errors.New("use exactly one of --adopt ID if the resource exists, --adopt-from FILE for many, --search to find them, --retry if it does not exist, and --forget to stop managing it")
	}
	if o.adoptFrom != "" {
		return o.validateAdoptFrom()
	}
	if count(len(o.Targets) > 0, o.all, o.selector != "") != 1 {
		return errors.New("use exactly one of KIND/NAME ..., -l SELECTOR, and --all for the whole namespace")
	}
	if _, err := objects.ParseSelector(o.selector); err != nil {
		return err
	}
	if o.forget || o.listing {
		return nil
	}
	if o.retry {
		if o.imports.AutoApprove || !o.Empty {
			return nil
		}
		return errors.New("resolve asks before a retry, and standard input is empty: if you have checked that the resources do not exist, add --auto-approve")
	}
	if len(o.Targets) != 1 {
		return errors.New("--adopt is for one resource: name it, and give its ID")
	}
	if o.Output != "" {
		return errors.New("-o is for --retry and --forget")
	}
	o.imports.Target, o.imports.Verb = o.Targets[0], "resolve --adopt"
	return o.imports.Validate()
}

// validateAdoptFrom validates the flags for --adopt-from.
func (o *resolveOptions) validateAdoptFrom() error {
	switch {
	case len(o.Targets) > 0 || o.all || o.selector != "":
		return errors.New("--adopt-from has the objects in its file: leave out KIND/NAME, -l and --all")
	case o.Output != "":
		return errors.New("-o is for --retry and --forget")
	case o.adoptFrom == "-" && !o.imports.AutoApprove:
		return errors.New("--adopt-from - reads standard input, so the command cannot ask there: add --auto-approve, or name a file")
	}
	return o.imports.CheckInteractive("resolve --adopt-from", false)
}

// count returns how many of its arguments are true.
func count(all ...bool) (n int) {
	for _, one := range all {
		if one {
			n++
		}
	}
	return n
}

// lostCreate is an object whose create has an unknown outcome, or whose record is lost.
type lostCreate struct {
	addrs.Target
	kind session.Kind
	uid  types.UID
	// id is that of a record without an object.
	id string
}

func (o *resolveOptions) Run(ctx context.Context) error {
	if o.adoptFrom != "" {
		all, malformed, err := o.readAdoptions()
		if err != nil {
			return err
		}
		return o.adoptAll(ctx, o.adoptFrom, all, malformed)
	}
	lost, failed := o.lost(ctx)
	if len(o.orphans) > 0 {
		failed = exit.Join(withoutNil(failed, o.forgetRecords(ctx)))
	}
	if len(lost) == 0 {
		return failed
	}
	var err error
	switch {
	case o.listing:
		err = o.searchAndAdopt(ctx, lost)
	case o.retry:
		err = o.retryAll(ctx, lost)
	case o.forget:
		o.Targets = nil
		var virtual []addrs.Target
		for _, l := range lost {
			if v1alpha1.IsVirtualName(l.Name) {
				virtual = append(virtual, l.Target)
				continue
			}
			o.Targets = append(o.Targets, l.Target)
		}
		failed = exit.Join(withoutNil(append([]error{failed}, notForgotten(virtual)...)...))
		if len(o.Targets) == 0 {
			return failed
		}
		err = o.ForgetAll(ctx, "The next applied plan removes the records of the marked objects and destroys nothing")
	default:
		err = o.imports.Run(ctx)
	}
	return exit.Join(withoutNil(failed, err))
}

// notForgotten returns the errors for resources without an object of their own, which the command cannot mark.
func notForgotten(virtual []addrs.Target) (errs []error) {
	of := map[bool][]string{}
	for _, t := range virtual {
		inModule := v1alpha1.OwnerKind(t.Name) == "Module"
		of[inModule] = append(of[inModule], t.Address())
	}
	const then = "the next applied plan then forgets the creates and destroys nothing"
	add := func(list []string, format string) {
		if len(list) > 0 {
			errs = append(errs, fmt.Errorf(format+then,
				strings.Join(printer.Cut(list, printer.ListedChanges, "%d more"), ", ")))
		}
	}
	add(of[false], "resolve --forget: these are instances of a ResourceSet: %s. Remove their keys from the set, or lower its count: ")
	add(of[true], "resolve --forget: these are resources of a Module: %s. Remove them from the files or the inputs of the Module: ")
	return errs
}

func withoutNil(errs ...error) []error {
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// lost returns the named or selected objects whose create has an unknown outcome. The error is about the other named
// ones.
func (o *resolveOptions) lost(ctx context.Context) ([]lostCreate, error) {
	if len(o.Targets) == 0 {
		return o.selected(ctx)
	}
	var out []lostCreate
	err := o.EachTarget(func(t addrs.Target) error {
		t, k, ns, err := objects.Find(ctx, o.Session, t)
		if err != nil {
			return err
		}
		t.Namespace, t.Group = ns, k.GVR.Group
		u, err := objects.Get(ctx, o.Session, k, ns, t.Name)
		if apierrors.IsNotFound(err) {
			r, findErr := objects.RecordOf(ctx, o.Session, t, k, ns)
			switch {
			case findErr != nil:
				return findErr
			case r == nil:
				return err
			case !o.forget:
				return fmt.Errorf("%s has a record and no object. Forget the record first: kubectl hykube resolve %s/%s --forget -n %s", objects.Long(k, t.Name), k.Kind, t.Name, ns)
			}
			o.orphans = append(o.orphans, lostCreate{t, k, r.UID, r.Status.ID})
			return nil
		}
		if err != nil {
			return err
		}
		if open, err := o.unsettled.Has(ctx, u); err != nil {
			return err
		} else if !open {
			reason, _, _ := objects.Readiness(u)
			return fmt.Errorf("%s has no create with an unknown outcome (its reason is %s), so there is nothing to resolve", objects.Long(k, t.Name), reason)
		}
		out = append(out, lostCreate{t, k, u.GetUID(), ""})
		return nil
	})
	return out, err
}

// selected returns the objects with the labels, or all of the namespace. It omits those that are marked for deletion
// and, for
// --retry, those that the next plan imports.
func (o *resolveOptions) selected(ctx context.Context) ([]lostCreate, error) {
	kinds, err := o.ResourceKinds(ctx)
	if err != nil {
		return nil, err
	}
	kinds = slices.DeleteFunc(slices.Clone(kinds),
		func(k session.Kind) bool { m, _ := v1alpha1.ParseKind(k.Kind); return m != v1alpha1.ModeManaged })
	var out []lostCreate
	var failed error
	marked, imported, leaves := 0, 0, o.terminating(ctx)
	denied, err := objects.EachResource(ctx, o.Session, kinds, o.Namespace, o.selector,
		func(k session.Kind, u *unstructured.Unstructured) {
			open, err := o.unsettled.Has(ctx, u)
			switch {
			case err != nil:
				failed = err
			case !open:
			case u.GetDeletionTimestamp() != nil, leaves:
				marked++
			case o.retry && hasImport(u):
				imported++
			default:
				m, typ := v1alpha1.ParseKind(k.Kind)
				out = append(out, lostCreate{addrs.Target{Namespace: o.Namespace, Mode: m, Type: typ, Name: u.GetName(),
					Group: k.GVR.Group}, k, u.GetUID(), ""})
			}
		})
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	objects.PrintDenied(o.Session, o.ErrOut, denied, "searched")
	if imported > 0 {
		fmt.Fprintf(o.ErrOut, "The next plan imports %s with an unknown outcome of its create, as lifecycle.import or spec.imports says.\n", diff.Plural(imported, "resource"))
	}
	switch {
	case marked > 0:
		fmt.Fprintf(o.ErrOut, "The next applied plan forgets %s with an unknown outcome, because the objects or their namespace are marked for deletion.\n", diff.Plural(marked, "create"))
	case len(out)+imported == 0:
		fmt.Fprintf(o.ErrOut, "No create of the namespace %s has an unknown outcome, and no record is lost.\n",
			o.Namespace)
	}
	slices.SortFunc(out, func(a, b lostCreate) int {
		return cmp.Or(v1alpha1.CompareNames(a.Address(), b.Address()), strings.Compare(a.Group, b.Group))
	})
	return out, nil
}

// hasImport reports whether an object has lifecycle.import. An instance has it from spec.imports of its set.
func hasImport(u *unstructured.Unstructured) bool {
	by, _, _ := unstructured.NestedMap(u.Object, "lifecycle", "import")
	return by != nil
}

// terminating reports whether the namespace is marked for deletion. If the user may not read it, the server refuses
// what depends on that.
func (o *resolveOptions) terminating(ctx context.Context) bool {
	ns, err := o.Session.Objects.Resource(session.Namespaces).Get(ctx, o.Namespace, metav1.GetOptions{})
	return err == nil && ns.GetDeletionTimestamp() != nil
}

// nothingChanged ends the command after another answer than yes.
const nothingChanged = "Nothing was changed."

// retryAll asks, and lets the next plan create the resources.
func (o *resolveOptions) retryAll(ctx context.Context, lost []lostCreate) error {
	if !o.imports.AutoApprove {
		fmt.Fprintln(o.ErrOut, "The next plan creates these resources again:")
		for _, l := range lost {
			fmt.Fprintln(o.ErrOut, "  "+l.Address())
		}
		fmt.Fprintln(o.ErrOut, "If one of them exists, that plan makes a second one, and nothing manages the first.")
	}
	if err := o.imports.Require(ctx, "Have you checked that none of them exists?", o.ErrOut,
		nothingChanged); err != nil {
		return err
	}
	var errs []error
	for _, l := range lost {
		if err := objects.PostUID(ctx, o.Session, l.kind, l.Namespace, l.Name, l.uid, "resolve"); err != nil {
			if !apierrors.IsNotFound(err) {
				err = o.Explain(err)
			}
			errs = append(errs, fmt.Errorf("retry %s: %w", l.Address(), err))
			continue
		}
		o.PrintResult(l.kind, l.Name, "resolved")
	}
	if len(errs) < len(lost) && o.Output == "" {
		fmt.Fprintf(o.ErrOut, "The next plan creates the resolved resources: kubectl hykube plan -n %s\n",
			lost[0].Namespace)
	}
	return exit.Join(errs)
}
