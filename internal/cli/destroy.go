package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
)

type destroyOptions struct {
	planAndApply
	files    fileFlags
	planning planFlags
	lines    linesFlag
	all      bool
}

func newDestroy(s *session) *cobra.Command {
	o := &destroyOptions{planAndApply: newPlanAndApply(s, "Do you really want to destroy these resources? There is no undo.")}
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
		ValidArgsFunction: completeObjects(s, anyNumber, v1alpha1.ModeManaged),
		RunE:              run(o),
	}
	fs := cmd.Flags()
	o.files.addFilenames(fs)
	o.files.modules.addName(fs)
	fs.StringVarP(&o.planning.selector, "selector", "l", "", "Destroy the resources with these labels, such as team=infra")
	fs.BoolVar(&o.all, "all", false, "Destroy everything in the namespace")
	o.addFlags(fs, "Destroy without asking")
	partialFlag(fs, &o.partial)
	o.lines.add(cmd, linesHelp)
	o.planning.addExclude(fs)
	o.planning.complete(cmd, s)
	return cmd
}

func (o *destroyOptions) Complete(args []string) error {
	o.planning.targets = args
	return o.connect()
}

func (o *destroyOptions) Validate() error {
	if err := o.lines.validate(!o.autoApprove); err != nil {
		return err
	}
	ways := 0
	for _, given := range []bool{o.files.given(), len(o.planning.targets) > 0, o.all, o.planning.selector != ""} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return errors.New("use exactly one of -f PATH, TYPE.NAME ..., -l SELECTOR, and --all for the whole namespace")
	}
	if _, err := addresses("destroy", o.planning.targets, v1alpha1.ModeManaged); err != nil {
		return fmt.Errorf("%w: only resources have infrastructure to destroy; kubectl delete removes other objects", err)
	}
	if len(o.planning.exclude) > 0 && !o.all && o.planning.selector == "" {
		return errors.New("--exclude needs --all or -l: name either the resources to destroy, or those to leave out")
	}
	if err := o.planning.validate(); err != nil {
		return err
	}
	return o.checkInteractive("destroy", o.files.stdin())
}

func (o *destroyOptions) Run(ctx context.Context) error {
	return o.lines.run(ctx, o.session, o.destroy)
}

func (o *destroyOptions) destroy(ctx context.Context) error {
	var err error
	if o.planning.targets, err = o.withTemplates(ctx, o.planning.targets); err != nil {
		return err
	}
	want, err := o.want(ctx)
	if err != nil {
		return err
	}
	return o.run(ctx, want)
}

// withTemplates replaces the names of ResourceSets by the addresses of their templates, which select all instances.
func (s *session) withTemplates(ctx context.Context, targets []string) ([]string, error) {
	out := slices.Clone(targets)
	for i, t := range targets {
		name, ok := setName(t)
		if !ok {
			continue
		}
		set := &v1alpha1.ResourceSet{}
		if err := s.hykube.Get().Namespace(s.namespace).Resource(setsResource).Name(name).Do(ctx).Into(set); err != nil {
			return nil, fmt.Errorf("read %s: %w", t, explain(err, s.server()))
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
	return name, ok && name != "" && (group == "" || group == v1alpha1.GroupName) && slices.Contains([]string{"resourceset", setsResource, "rset"}, word)
}

func (o *destroyOptions) want(ctx context.Context) ([]wanted, error) {
	spec := v1alpha1.PlanSpec{Destroy: true}
	if err := o.planning.fill(&spec); err != nil {
		return nil, err
	}
	if !o.files.given() {
		return []wanted{{o.namespace, "destroy", spec}}, nil
	}
	ms, err := o.manifests(ctx, &o.files)
	if err != nil {
		return nil, err
	}
	var rs []recorded
	for _, m := range ms {
		ns := cmp.Or(m.object.GetNamespace(), o.namespace)
		if o.enforce && ns != o.namespace {
			return nil, fmt.Errorf("%s: %s %q has namespace %q, and -n is %q", m.where(), m.object.GetKind(), m.object.GetName(), ns, o.namespace)
		}
		rs = append(rs, recorded{manifest: m, namespace: ns})
	}
	var out []wanted
	for _, sc := range scopes(rs) {
		own := *spec.DeepCopy()
		// Data sources, ephemeral resources and actions have nothing to destroy.
		if own.Targets = sc.of(v1alpha1.ModeManaged, modeModule); len(own.Targets) == 0 {
			continue
		}
		out = append(out, wanted{sc.namespace, "destroy", own})
	}
	if len(out) == 0 {
		return nil, errors.New("there are no resources in these files, so there is nothing to destroy")
	}
	return out, nil
}
