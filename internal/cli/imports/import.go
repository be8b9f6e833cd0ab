// Package imports is the verb import: it imports an existing resource into an object, or into an instance of a
// ResourceSet.
package imports

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/query"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
)

// Options holds the options of import, with which resolve adopts a resource.
type Options struct {
	operation.Operation
	Target   addrs.Target
	ID       string
	identity []string
	out      string
	config   string
	generate bool
	// Verb is the command that imports, in messages; "" means "import".
	Verb string

	By v1alpha1.PlanImport
	// Written describes the object that the command recorded; nil if the object already had this import.
	Written *importWritten
}

// New returns the command import.
func New(s *session.Session) *cobra.Command {
	o := &Options{Operation: operation.New(s, "Do you want to import this resource?")}
	cmd := &cobra.Command{
		Use:   "import KIND/NAME (ID | --identity KEY=VALUE ...)",
		Short: "Import an existing resource",
		Long: `Import an existing resource, by its ID in the provider's own format, or by its identity.

If the object is recorded, the command sets its lifecycle.import. Otherwise it reads the resource from the provider,
generates an object for it, shows it, writes it to --out and records it. The object has no secrets; add them yourself.
Then the command makes a plan, which shows the import and the changes that the object needs. --generate-only only prints
the object.

An import destroys nothing but an old instance that an earlier replacement left deposed. If the plan would replace the
resource, the command discards the plan and exits with 3. The command takes back the lifecycle.import that it set, or
the object that it generated, if it discards the plan, if you decline the plan, or if the import fails. While a plan
waits for another user's approval, both stay, and the command prints how to take them back.`,
		Example: `  kubectl hykube import sim-instance/web-1 ins-0000002a
  kubectl hykube import sim_instance.web-1 --identity id=ins-0000002a --out web-1.yaml
  kubectl hykube import sim-instance/web-1 ins-0000002a --generate-only > web-1.yaml`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: session.CompleteObjects(s, 1, v1alpha1.ModeManaged),
		RunE:              session.Run(o),
	}
	fset := cmd.Flags()
	fset.StringArrayVar(&o.identity, "identity", nil,
		"Attribute of the identity, such as id=ins-1; the value is a text or JSON; repeatable")
	fset.StringVar(&o.out, "out", "", "Write the generated object to this file, which must not exist")
	fset.StringVar(&o.config, "provider-config", "",
		"ProviderConfig of the resource; the default is that of a resource without lifecycle.providerConfig")
	fset.BoolVar(&o.generate, "generate-only", false, "Print the generated object and record nothing")
	o.AddFlags(fset, "Apply without asking")
	return cmd
}

func (o *Options) Complete(args []string) (err error) {
	if o.Target, err = addrs.Parse(args[0]); err == nil {
		err = o.Target.Only(v1alpha1.ModeManaged)
	}
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if len(args) == 2 {
		o.ID = args[1]
	}
	return o.Connect()
}

func (o *Options) Validate() error {
	if (o.ID == "") == (len(o.identity) == 0) {
		return errors.New("use exactly one of an ID after the name and --identity KEY=VALUE")
	}
	o.By = v1alpha1.PlanImport{ID: o.ID}
	if len(o.identity) > 0 {
		identity := map[string]any{}
		for _, a := range o.identity {
			k, text, ok := strings.Cut(a, "=")
			if !ok || k == "" {
				return fmt.Errorf("--identity %s: write KEY=VALUE", a)
			}
			v, err := query.FlagValue(text)
			if err != nil {
				return fmt.Errorf("--identity %s: %w", a, err)
			}
			identity[k] = v
		}
		raw, err := json.Marshal(identity)
		if err != nil {
			return fmt.Errorf("encode identity: %w", err)
		}
		o.By.Identity = &runtime.RawExtension{Raw: raw}
	}
	if o.out != "" {
		if _, err := os.Lstat(o.out); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("--out %s: the file exists, and import does not overwrite files; choose another name",
				o.out)
		}
	}
	if o.generate {
		return nil
	}
	return o.CheckInteractive(cmp.Or(o.Verb, "import"), false)
}

// block returns the content of lifecycle.import.
func (o *Options) block() map[string]any {
	if o.By.ID != "" {
		return map[string]any{"id": o.By.ID}
	}
	return map[string]any{"identity": json.RawMessage(o.By.Identity.Raw)}
}

func (o *Options) Run(ctx context.Context) error {
	t, k, ns, err := objects.Find(ctx, o.Session, o.Target)
	if err != nil {
		return err
	}
	o.Target = t
	if v1alpha1.InModule(t.Name) {
		return o.importBlock(t)
	}
	if err := o.MayRecord(ctx, k, ns, v1alpha1.IsInstanceName(t.Name)); err != nil && !o.generate {
		return err
	}
	if v1alpha1.IsInstanceName(t.Name) {
		return o.importInstance(ctx, k, ns)
	}
	old, err := o.Resource(k.GVR, ns).Get(ctx, o.Target.Name, metav1.GetOptions{})
	has := false
	if err == nil {
		if has, err = objects.HasInfrastructure(ctx, o.Session, old); err != nil {
			return err
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		if err := o.recordGenerated(ctx, k, ns); err != nil || o.generate {
			return err
		}
	case err != nil:
		return fmt.Errorf("get %s %q: %w", k.Kind, o.Target.Name, o.Explain(err))
	case o.generate || o.out != "":
		return fmt.Errorf("import: %s exists already, so the command generates no object: leave out --generate-only and --out, or choose another name", objects.Long(k, o.Target.Name))
	case has:
		return fmt.Errorf("import: %s already has infrastructure: kubectl hykube state show %s/%s -n %s",
			objects.Long(k, o.Target.Name), k.Kind, o.Target.Name, ns)
	case old.GetDeletionTimestamp() != nil:
		return fmt.Errorf("import: %s is marked for deletion", objects.Long(k, o.Target.Name))
	default:
		if err := o.Configure(ctx, k, ns, old); err != nil {
			return err
		}
	}
	o.Gap, o.Refuse = true, o.RefuseReplacement
	if o.Written != nil {
		o.TakeBack = o.Undo
	}
	return o.settle(ctx, o.PlanAndApply(ctx,
		[]operation.Wanted{{Namespace: ns, Base: "import",
			Spec: v1alpha1.PlanSpec{Targets: []string{o.Target.Address()}}}}))
}

// MayRecord returns an error if the user may not record the import of a resource, or not plan it. Nothing is written
// before.
func (o *Options) MayRecord(ctx context.Context, k session.Kind, ns string, instance bool) error {
	verb, gvr := "patch", k.GVR
	if instance {
		verb, gvr = "update", v1alpha1.SchemeGroupVersion.WithResource(session.SetsResource)
	}
	need := fmt.Sprintf("%q on %s", verb, gvr.GroupResource())
	if planapi.Allowed(ctx, o.Session, verb, gvr, "", ns) {
		if planapi.May(ctx, o.Session, "create", "plans", "", ns) {
			return nil
		}
		need = `"create" on plans`
	}
	return &exit.Error{Code: exit.Refused,
		Cause: fmt.Errorf("import: nothing was recorded: you need the verb %s in namespace %s", need, ns)}
}

// Configure writes lifecycle.import of an existing object.
func (o *Options) Configure(ctx context.Context, k session.Kind, ns string, old *unstructured.Unstructured) error {
	// A merge patch must remove the other field of lifecycle.import.
	by := map[string]any{"id": nil, "identity": nil}
	for key, v := range o.block() {
		by[key] = v
	}
	lifecycle := map[string]any{"import": by}
	if o.config != "" {
		lifecycle["providerConfig"] = o.config
	}
	now, err := objects.Merge(ctx, o.Session, k, ns, o.Target.Name, map[string]any{"lifecycle": lifecycle})
	if err != nil {
		return err
	}
	if o.Written, err = importPatched(k, old, now); err != nil {
		return err
	}
	fmt.Fprintln(o.Out, objects.Long(k, o.Target.Name)+" configured")
	return nil
}

// recordGenerated generates an object, and records it unless --generate-only is set.
func (o *Options) recordGenerated(ctx context.Context, k session.Kind, ns string) error {
	made, err := o.generated(ctx, k, ns)
	if err != nil || o.generate {
		return err
	}
	rec := &record.Recorder{Session: o.Session}
	done, err := rec.Record(ctx, []manifest.Manifest{*made})
	if err != nil {
		if o.out != "" {
			err = fmt.Errorf("%w\nThe file %s stays", err, o.out)
		}
		return err
	}
	if len(done) == 1 && done[0].Verb == "created" {
		o.Written = &importWritten{Kind: k, Object: done[0].Object}
	}
	return nil
}

// generated queries the resource from the provider, and prints an object that imports it.
func (o *Options) generated(ctx context.Context, k session.Kind, ns string) (*manifest.Manifest, error) {
	provider, _ := v1alpha1.ProviderOfGroup(k.GVR.Group)
	q, err := query.Run(ctx, o.Session, ns,
		v1alpha1.QuerySpec{Type: o.Target.Type, Provider: provider, ProviderConfig: o.config, Import: &o.By,
			Manifests: true})
	if err != nil {
		return nil, err
	}
	if query.PrintDiagnostics(o.Session, q) {
		return nil, fmt.Errorf("import: provider %q could not read the resource. Nothing was recorded", provider)
	}
	if len(q.Status.Results) == 0 || q.Status.Results[0].Manifest == nil {
		return nil, fmt.Errorf("import: provider %q finds no %s with this ID or identity. Nothing was recorded",
			provider, o.Target.Type)
	}
	r := q.Status.Results[0]
	if r.ManagedBy != "" {
		return nil, fmt.Errorf("import: %s already manages the resource, and one resource belongs to one object. Nothing was recorded", r.ManagedBy)
	}
	u, err := query.ReadManifest(r.Manifest)
	if err != nil {
		return nil, err
	}
	u.SetName(o.Target.Name)
	u.SetNamespace(ns)
	lifecycle, _, _ := unstructured.NestedMap(u.Object, "lifecycle")
	if lifecycle == nil {
		lifecycle = map[string]any{}
	}
	if lifecycle["import"] == nil {
		by, err := printer.JSONMap(o.block())
		if err == nil {
			err = utiljson.ConvertMapNumbers(by, 0)
		}
		if err != nil {
			return nil, err
		}
		lifecycle["import"] = by
	}
	if o.config != "" {
		lifecycle["providerConfig"] = o.config
	}
	u.Object["lifecycle"] = lifecycle
	return o.writeManifest(u, k)
}

// writeManifest writes an object to the file of --out, or to standard output.
func (o *Options) writeManifest(u *unstructured.Unstructured, k session.Kind) (*manifest.Manifest, error) {
	text, err := yaml.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encode YAML: %w", err)
	}
	if o.out == "" {
		if _, err := fmt.Fprintf(o.Out, "---\n%s", text); err != nil {
			return nil, err
		}
		return &manifest.Manifest{Object: u, File: objects.Long(k, o.Target.Name), Line: 1}, nil
	}
	f, err := os.OpenFile(o.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	fmt.Fprintf(o.Out, "%s written\n", o.out)
	return &manifest.Manifest{Object: u, File: o.out, Line: 1}, nil
}
