package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/tfstate"
)

const (
	// pushPageBytes and pushPageEntries are the size at which a page of a push ends.
	pushPageBytes   = 768 << 10
	pushPageEntries = 500
)

type statePushOptions struct {
	*session.Session
	file    string
	maps    []string
	configs []string
	targets []string
	// files are the Terraform files of the Module, which the command records before; files.modules.name is that of the
	// Module.
	files manifest.Flags
	force bool
}

func newStatePush(s *session.Session) *cobra.Command {
	o := &statePushOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "push [FILE]",
		Short: "Take a state of Terraform or OpenTofu into the records of existing objects",
		Long: `Take a state of Terraform or OpenTofu into the records of existing objects.

Each managed resource of the state needs an object: sim_network.main is the object sim-network/main, and sim_network.web[0] is
an instance of the ResourceSet for it. An underscore in a name is a dash in that of the object. A resource of a module, or one
whose object has another name, needs --map.

With --module, the resources are those of a Module, with its files, its inputs, and its ProviderConfigs: sim_network.main is
module.shop.sim_network.main, and so are those of called modules. With -f DIR, the command first records the Module of the
Terraform files, as "kubectl hykube apply -f DIR" does, and its resources are in no plan that can be approved: a new Module has
the mode Observe. One that exists keeps its mode. If the push is refused then, the Module stays; type the command again.

The server records all resources or none. It refuses the state if an object has a record already, or if another object manages
the same resource. It calls providers only to upgrade the state, and changes no infrastructure. Data sources are left out.

With --force, the records of a state with the same lineage are replaced, also by one with an earlier serial.

The command lists the resources of the Module that the state lacks. It needs the right to create statepushes, and for each kind create, update, and get of the subresource "state".`,
		Example: `  terraform state pull | kubectl hykube state push - -n prod
  kubectl hykube state push terraform.tfstate -n prod --map module.web.sim_network.main=sim-network/web
  terraform state pull | kubectl hykube state push - -n prod --module shop
  terraform state pull | kubectl hykube state push - -n prod --module shop -f . --var region=eu
  kubectl hykube state push new.tfstate -n prod --force`,
		Args: cobra.MaximumNArgs(1),
		RunE: session.Run(o),
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.maps, "map", nil, "The object of a resource, as ADDRESS=KIND/NAME; @FILE has one on each line")
	f.StringArrayVar(&o.configs, "provider-config", nil,
		"The ProviderConfig of a provider of the state, as SOURCE[.ALIAS]=NAME; the default is the alias")
	f.StringArrayVar(&o.targets, "target", nil,
		"Push only this resource, or the resources of this module; may be repeated")
	o.files.Add(f)
	f.Lookup("module").Usage = "The Module with the resources of the state"
	f.BoolVar(&o.force, "force", false, "Replace the records of a state with the same lineage")
	return cmd
}

func (o *statePushOptions) Complete(args []string) error {
	o.file = "-"
	if len(args) > 0 {
		o.file = args[0]
	}
	return o.Connect()
}

func (o *statePushOptions) Validate() error {
	of := o.files.Modules
	switch {
	case of.Name != "" && len(o.maps) > 0:
		return errors.New("--map is for objects, and the resources of a Module have the names of its files: use moved blocks, or leave out --map")
	case !o.files.Given():
		of.Name = ""
		return of.Check()
	case of.Name == "":
		return errors.New("-f DIR makes a Module of Terraform files: name it with --module NAME")
	case o.files.Stdin():
		return errors.New("-f - reads files from standard input, which has no directory of Terraform files: name it with -f DIR")
	}
	return nil
}

func (o *statePushOptions) Run(ctx context.Context) error {
	file, err := o.read()
	if err != nil {
		return fmt.Errorf("state push: %w", err)
	}
	m, err := newStateMapping(o.maps, o.configs, o.targets)
	if err != nil {
		return fmt.Errorf("state push: %w", err)
	}
	m.module = o.files.Modules.Name
	entries, problems := m.entries(file)
	if err := m.unused(); err != nil {
		return fmt.Errorf("state push: %w", err)
	}
	if len(entries) == 0 && len(problems) == 0 {
		return errors.New("state push: the state has no managed resources to push. Nothing was changed")
	}
	of, err := o.moduleOf(ctx)
	if err != nil {
		return fmt.Errorf("state push: %w", err)
	}
	p := &pusher{Session: o.Session, spec: v1alpha1.StatePushSpec{
		ID: string(uuid.NewUUID()), Lineage: file.Lineage, Serial: int64(file.Serial),
		TerraformVersion: file.TerraformVersion, Module: m.module, Force: o.force,
	}, problems: problems}
	if err := p.push(ctx, entries); err != nil {
		return of.withWhatStays(err)
	}
	fmt.Fprintf(o.Out, "%s pushed into the namespace %s\n", diff.Plural(len(entries), "resource"), o.Namespace)
	if m.data > 0 {
		fmt.Fprintf(o.ErrOut, "%s left out: plans read them again.\n", diff.Plural(m.data, "data source"))
	}
	if m.left > 0 {
		fmt.Fprintf(o.ErrOut, "%s outside of --target left out.\n", diff.Plural(m.left, "resource"))
	}
	if n := len(file.Outputs); n > 0 && of == nil { // a Module has them
		fmt.Fprintf(o.ErrOut, "%s left out: after a pull, Terraform shows them as new.\n", diff.Plural(n, "output"))
	}
	if o.force {
		fmt.Fprintf(o.ErrOut, "Records of resources that the state lacks stay: kubectl hykube state list -n %s shows all.\n", o.Namespace)
	}
	if of != nil {
		return o.receipt(ctx, of, entries)
	}
	fmt.Fprintf(o.ErrOut, "To see whether they need changes: kubectl hykube plan -n %s\n", o.Namespace)
	return nil
}

// read reads the state from the file, or from standard input.
func (o *statePushOptions) read() (*tfstate.File, error) {
	var in io.Reader = o.In
	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return tfstate.Parse(in)
}

// pusher sends the pages of a push.
type pusher struct {
	*session.Session
	spec     v1alpha1.StatePushSpec
	problems []v1alpha1.StateProblem
}

// push records all entries, or none.
func (p *pusher) push(ctx context.Context, entries []v1alpha1.StateEntry) error {
	if err := p.send(ctx, entries); err != nil {
		return err
	}
	if len(p.problems) > 0 {
		return problemsError(p.problems)
	}
	return p.commit(ctx)
}

// send sends all entries in pages, so that the server checks each of them. It collects the problems.
func (p *pusher) send(ctx context.Context, entries []v1alpha1.StateEntry) error {
	var page []v1alpha1.StateEntry
	size := 0
	flush := func() error {
		spec := p.spec
		spec.Entries = page
		status, err := p.request(ctx, spec)
		if err != nil {
			return err
		}
		p.problems = append(p.problems, status.Problems...)
		if len(status.Problems) == 0 {
			p.spec.Page++
		}
		page, size = nil, 0
		return nil
	}
	for _, e := range entries {
		raw, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("state push: encode %s: %w", e.Address, err)
		}
		if len(raw) > v1alpha1.MaxStatePageBytes {
			p.problems = append(p.problems, v1alpha1.StateProblem{Address: e.Address,
				Problem: fmt.Sprintf("its state has %d bytes, and the limit is %d", len(raw),
					v1alpha1.MaxStatePageBytes), Remedy: "push the other resources with --target, and import this one with kubectl hykube import"})
			continue
		}
		if len(page) > 0 && (size+len(raw) > pushPageBytes || len(page) == pushPageEntries) {
			if err := flush(); err != nil {
				return err
			}
		}
		page, size = append(page, e), size+len(raw)
	}
	if len(page) == 0 {
		return nil
	}
	return flush()
}

// commit records what was sent.
func (p *pusher) commit(ctx context.Context) error {
	for {
		spec := p.spec
		spec.Commit = true
		status, err := p.request(ctx, spec)
		if err != nil {
			return err
		}
		if status.Committed && status.Remaining == 0 {
			return nil
		}
	}
}

func (p *pusher) request(ctx context.Context, spec v1alpha1.StatePushSpec) (*v1alpha1.StatePushStatus, error) {
	in, out := &v1alpha1.StatePush{Spec: spec}, &v1alpha1.StatePush{}
	in.Namespace = p.Namespace
	err := p.Hykube.Post().Namespace(p.Namespace).Resource("statepushes").Body(in).Do(ctx).Into(out)
	return &out.Status, refusedState(err, p.Session, "push")
}

// refusedState returns the error for a rejected push or pull.
func refusedState(err error, s *session.Session, verb string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return &exit.Error{Code: exit.Refused, Cause: fmt.Errorf("state %s: %w", verb, s.Explain(err))}
	case apierrors.IsConflict(err):
		return &exit.Error{Code: exit.Stale, Cause: fmt.Errorf("state %s: %w", verb, err)}
	case apierrors.IsNotFound(err) && session.NotServed(err):
		return fmt.Errorf("state %s: the server is older than this command: %w", verb, s.Explain(err))
	}
	return fmt.Errorf("state %s: %w", verb, s.Explain(err))
}

// problemsError returns the error for all problems. Resources with one problem share a paragraph.
func problemsError(problems []v1alpha1.StateProblem) error {
	type key struct{ problem, remedy string }
	var order []key
	addresses := map[key][]string{}
	for _, p := range problems {
		k := key{p.Problem, p.Remedy}
		if addresses[k] == nil {
			order = append(order, k)
		}
		addresses[k] = append(addresses[k], diff.Clean(p.Address, false))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "state push: %s of the state cannot be recorded", diff.Plural(len(problems), "resource"))
	for _, k := range order {
		all := addresses[k]
		slices.Sort(all)
		fmt.Fprintf(&b, "\n  %s\n    %s", strings.Join(all, "\n  "), diff.Clean(k.problem, false))
		if k.remedy != "" {
			fmt.Fprintf(&b, "\n    to mend it: %s", diff.Clean(k.remedy, false))
		}
	}
	b.WriteString("\nNo resource was recorded.")
	return errors.New(b.String())
}
