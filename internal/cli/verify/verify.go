// Package verify is the verb verify, which plans everything and reports what differs.
package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/speculation"
	"github.com/hykube/hykube/internal/diff"
)

type verifyOptions struct {
	*session.Session
	planning      operation.PlanFlags
	all, detailed bool
	output        string
}

// New returns the command verify.
func New(s *session.Session) *cobra.Command {
	o := &verifyOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Compare the records with the infrastructure",
		Long: `Compare the records with the infrastructure.

The command reads the resources of the namespace from their providers, and lists those that differ from their records:
changed or gone. It records nothing, and changes nothing. With -A it reads every namespace, one after another. It also works on a
server that is frozen after a restore. There, it cannot find what was created after the backup: "hykube audit calls" can.

It needs the rights to create plans and to read the resources.`,
		Example: `  kubectl hykube verify -n prod
  kubectl hykube verify -A --detailed-exitcode`,
		Args: cobra.NoArgs,
		RunE: session.Run(o),
	}
	fs := cmd.Flags()
	fs.BoolVarP(&o.all, "all-namespaces", "A", false, "Verify every namespace")
	fs.BoolVar(&o.detailed, "detailed-exitcode", false, "Exit with 2 when a resource differs from its record")
	fs.StringVarP(&o.planning.Selector, "selector", "l", "", "Only resources with these labels, such as team=infra")
	printer.OutputFlag(cmd, &o.output, "Print", "json", "yaml")
	return cmd
}

func (o *verifyOptions) Validate() error { return o.planning.Validate() }

// verified is what a namespace has.
type verified struct {
	Namespace string `json:"namespace"`
	// Resources is the number of resources, and Same that of those that are as recorded.
	Resources int32 `json:"resources"`
	Same      int32 `json:"same"`
	// NotRead is the number of resources that were not read.
	NotRead int32        `json:"notRead"`
	Differ  []difference `json:"differ"`
	// Error says why the namespace could not be read.
	Error string `json:"error,omitempty"`
}

// difference is a resource that is not as recorded.
type difference struct {
	Address string `json:"address"`
	// Gone is true if the provider does not find the resource.
	Gone bool `json:"gone,omitempty"`
	// Attributes are the paths of the attributes that changed.
	Attributes []string `json:"attributes,omitempty"`
}

func (d difference) String() string {
	if d.Gone {
		return d.Address + " is gone"
	}
	return d.Address + " was changed: " + strings.Join(d.Attributes, ", ")
}

func (o *verifyOptions) Run(ctx context.Context) error {
	names := []string{o.Namespace}
	if o.all {
		list, err := o.Objects.Resource(session.Namespaces).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list namespaces: %w", o.Explain(err))
		}
		names = nil
		for i := range list.Items {
			names = append(names, list.Items[i].GetName())
		}
	}
	found := []verified{}
	var failed []error
	differ := false
	for _, name := range names {
		v := verified{Namespace: name, Differ: []difference{}}
		err := speculation.UntilInterrupted(ctx, o.Session,
			func(ctx context.Context) error { return o.verify(ctx, &v) })
		if err != nil {
			v.Error = err.Error()
			failed = append(failed, fmt.Errorf("namespace %q: %w", name, err))
		}
		differ = differ || len(v.Differ) > 0
		if v.Resources > 0 || err != nil || !o.all {
			found = append(found, v)
		}
	}
	if err := o.print(found); err != nil {
		return err
	}
	switch {
	case len(failed) > 0:
		return errors.Join(failed...)
	case differ && o.detailed:
		return exit.Silent(exit.Changes)
	}
	return nil
}

// verify reads a namespace by a plan that nobody can approve.
func (o *verifyOptions) verify(ctx context.Context, v *verified) (err error) {
	spec := v1alpha1.PlanSpec{RefreshOnly: true, Refresh: v1alpha1.RefreshAll, Speculative: true}
	if err := o.planning.Fill(&spec); err != nil {
		return err
	}
	sp := &speculation.Speculation{Session: o.Session, Recorder: &record.Recorder{Session: o.Session}}
	// else the plan could stay
	p, err := planapi.Create(context.WithoutCancel(ctx), sp.Session, v.Namespace, "verify", spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, speculation.Remove(ctx, sp.Session, p)) }()
	if _, err := sp.SendChunk(ctx, p, v1alpha1.PlanObjectsSpec{Complete: true}); err != nil {
		return err
	}
	if p, err = operation.AwaitPlanned(ctx, sp.Session, p); err != nil {
		return err
	}
	for c, err := range planapi.Changes(ctx, o.Session, p) {
		if err != nil {
			return err
		}
		switch {
		case slices.Contains(c.Drift, v1alpha1.DriftRemoved):
			v.Differ = append(v.Differ, difference{Address: c.Address, Gone: true})
		case len(c.Drift) > 0:
			v.Differ = append(v.Differ, difference{Address: c.Address, Attributes: c.Drift})
		}
	}
	if s := p.Status.Summary; s != nil {
		v.Resources, v.NotRead = s.Resources, s.NotRead
		v.Same = s.Resources - s.NotRead - int32(len(v.Differ))
	}
	if p.PlanFailed() {
		return operation.Failure(o.Session, p)
	}
	return nil
}

func (o *verifyOptions) print(found []verified) error {
	if o.output != "" {
		return printer.JSON(o.Terminal, map[string]any{"items": found}, o.output)
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAMESPACE\tRESOURCES\tSAME\tCHANGED\tGONE\tNOT READ")
	for _, v := range found {
		gone := 0
		for _, d := range v.Differ {
			if d.Gone {
				gone++
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\n", v.Namespace, v.Resources, v.Same, len(v.Differ)-gone, gone,
			v.NotRead)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, v := range found {
		for _, d := range v.Differ {
			fmt.Fprintf(o.Out, "%s: %s\n", v.Namespace, diff.Clean(d.String(), true))
		}
	}
	return nil
}
