package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/speculation"
)

type destroyOptions struct {
	operation.Operation
	files    manifest.Flags
	planning operation.PlanFlags
	lines    operation.JSONFlag
	all      bool
}

// NewDestroy returns the command destroy.
func NewDestroy(s *session.Session) *cobra.Command {
	o := &destroyOptions{Operation: operation.New(s,
		"Do you really want to destroy these resources? There is no undo.")}
	cmd := &cobra.Command{
		Use:   "destroy (-f PATH | --all | -l SELECTOR | TYPE.NAME ...)",
		Short: "Plan to destroy resources, ask, and destroy them",
		Long: `Plan to destroy resources, ask, and destroy them, in the reverse order of their dependencies.

The objects stay, without infrastructure. "kubectl hykube apply --all" creates it again, and "kubectl delete" removes
them. -f takes the names from files and records nothing. Data sources, ephemeral resources and actions have no
infrastructure, so the command ignores those of the files. resourceset/NAME means all instances of a ResourceSet.`,
		Example: `  kubectl hykube destroy -f examples/first
  kubectl hykube destroy sim_instance.web-1 sim-disk/data
  kubectl hykube destroy --all -n sandbox --auto-approve`,
		ValidArgsFunction: session.CompleteObjects(s, session.AnyNumber, v1alpha1.ModeManaged),
		RunE:              session.Run(o),
	}
	fs := cmd.Flags()
	o.files.AddFilenames(fs)
	o.files.Modules.AddName(fs)
	fs.StringVarP(&o.planning.Selector, "selector", "l", "",
		"Destroy the resources with these labels, such as team=infra")
	fs.BoolVar(&o.all, "all", false, "Destroy everything in the namespace")
	o.AddFlags(fs, "Destroy without asking")
	operation.PartialFlag(fs, &o.Partial)
	o.lines.Add(cmd, operation.JSONHelp)
	o.planning.AddExclude(fs)
	o.planning.Complete(cmd, s)
	return cmd
}

func (o *destroyOptions) Complete(args []string) error {
	o.planning.Targets = args
	return o.Connect()
}

func (o *destroyOptions) Validate() error {
	if err := o.lines.Validate(!o.AutoApprove); err != nil {
		return err
	}
	ways := 0
	for _, given := range []bool{o.files.Given(), len(o.planning.Targets) > 0, o.all, o.planning.Selector != ""} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return errors.New("use exactly one of -f PATH, TYPE.NAME ..., -l SELECTOR, and --all for the whole namespace")
	}
	if _, err := addrs.ParseAll("destroy", o.planning.Targets, v1alpha1.ModeManaged); err != nil {
		return fmt.Errorf("%w: only resources have infrastructure to destroy; kubectl delete removes other objects",
			err)
	}
	if len(o.planning.Exclude) > 0 && !o.all && o.planning.Selector == "" {
		return errors.New("--exclude needs --all or -l: name either the resources to destroy, or those to leave out")
	}
	if err := o.planning.Validate(); err != nil {
		return err
	}
	return o.CheckInteractive("destroy", o.files.Stdin())
}

func (o *destroyOptions) Run(ctx context.Context) error {
	return o.lines.Run(ctx, o.Session, o.destroy)
}

func (o *destroyOptions) destroy(ctx context.Context) error {
	var err error
	if o.planning.Targets, err = withTemplates(ctx, o.Session, o.planning.Targets); err != nil {
		return err
	}
	want, err := o.want(ctx)
	if err != nil {
		return err
	}
	return o.PlanAndApply(ctx, want)
}

// withTemplates replaces the names of ResourceSets by the addresses of their templates, which select all instances.
func withTemplates(ctx context.Context, s *session.Session, targets []string) ([]string, error) {
	out := slices.Clone(targets)
	for i, t := range targets {
		name, ok := setName(t)
		if !ok {
			continue
		}
		set := &v1alpha1.ResourceSet{}
		if err := s.Hykube.Get().Namespace(s.Namespace).Resource(session.SetsResource).Name(name).Do(ctx).Into(
			set); err != nil {
			return nil, fmt.Errorf("read %s: %w", t, s.Explain(err))
		}
		template := &set.Spec.Template
		out[i] = v1alpha1.TypeOf(template.Kind) + "." + cmp.Or(template.Metadata.Name, set.Name)
	}
	return out, nil
}

// setName returns the name of the ResourceSet that an argument names as KIND/NAME.
func setName(arg string) (name string, ok bool) {
	word, name, ok := strings.Cut(arg, "/")
	word, group, _ := strings.Cut(strings.ToLower(word), ".")
	return name, ok && name != "" && (group == "" || group == v1alpha1.GroupName) &&
		slices.Contains([]string{"resourceset", session.SetsResource, "rset"}, word)
}

func (o *destroyOptions) want(ctx context.Context) ([]operation.Wanted, error) {
	spec := v1alpha1.PlanSpec{Destroy: true}
	if err := o.planning.Fill(&spec); err != nil {
		return nil, err
	}
	if !o.files.Given() {
		return []operation.Wanted{{Namespace: o.Namespace, Base: "destroy", Spec: spec}}, nil
	}
	ms, err := manifest.Read(ctx, o.Session, &o.files)
	if err != nil {
		return nil, err
	}
	var rs []record.Recorded
	for _, m := range ms {
		ns := cmp.Or(m.Object.GetNamespace(), o.Namespace)
		if o.Enforce && ns != o.Namespace {
			return nil, fmt.Errorf("%s: %s %q has namespace %q, and -n is %q", m.Where(), m.Object.GetKind(),
				m.Object.GetName(), ns, o.Namespace)
		}
		rs = append(rs, record.Recorded{Manifest: m, Namespace: ns})
	}
	var out []operation.Wanted
	for _, sc := range speculation.Scopes(rs) {
		own := *spec.DeepCopy()
		// Data sources, ephemeral resources and actions have nothing to destroy.
		if own.Targets = sc.Of(v1alpha1.ModeManaged, addrs.ModeModule); len(own.Targets) == 0 {
			continue
		}
		out = append(out, operation.Wanted{Namespace: sc.Namespace, Base: "destroy", Spec: own})
	}
	if len(out) == 0 {
		return nil, errors.New("there are no resources in these files, so there is nothing to destroy")
	}
	return out, nil
}
