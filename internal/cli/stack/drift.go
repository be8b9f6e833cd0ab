package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/cron"
)

type driftOptions struct {
	stackArgument
	now, detailed bool
	timeout       time.Duration
}

// NewDrift returns the command drift.
func NewDrift(s *session.Session) *cobra.Command {
	o := &driftOptions{stackArgument: stackArgument{Session: s}}
	cmd := &cobra.Command{
		Use:   "drift [STACK]",
		Short: "List resources that were changed outside of Hykube",
		Long: `List the resources of a namespace, or of a stack, that were changed or removed outside of Hykube, and since when the
server knows that. The server learns of drift from a drift check of a stack and from kubectl hykube refresh.

With --now, first ask the stack for a drift check, and wait for its end. The check reads the infrastructure of the stack within the
budget in spec.drift. It needs the right to create the subresource "drift" of the stack, which the role edit has. Ctrl-C ends only
the wait; the check continues.`,
		Example: `  kubectl hykube drift -n prod
  kubectl hykube drift web --now
  kubectl hykube drift web --now --detailed-exitcode`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeStacks(s),
		RunE:              session.Run(o),
	}
	cmd.Flags().BoolVar(&o.now, "now", false, "Run a drift check of the stack first")
	cmd.Flags().BoolVar(&o.detailed, "detailed-exitcode", false, "Exit with 2 when there is drift")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0,
		"With --now: maximum time to wait for the check; 0 means no limit")
	printer.OutputFlag(cmd, &o.output, "Print", "json", "yaml")
	return cmd
}

func (o *driftOptions) Complete(args []string) error {
	if len(args) == 0 {
		return o.Connect()
	}
	return o.stackArgument.Complete(args)
}

func (o *driftOptions) Validate() error {
	if o.now && o.name == "" {
		return errors.New("--now: name a stack; kubectl hykube refresh reads a whole namespace")
	}
	if o.timeout != 0 && !o.now {
		return errors.New("--timeout: only with --now")
	}
	return nil
}

func (o *driftOptions) Run(ctx context.Context) error {
	if o.now {
		if err := o.check(ctx); err != nil {
			return err
		}
	}
	selects, s, err := o.selection(ctx)
	if err != nil {
		return err
	}
	found := []drifted{}
	denied, err := objects.EachResource(ctx, o.Session, nil, o.Namespace, "",
		func(k session.Kind, u *unstructured.Unstructured) {
			if d, ok := driftOf(k, u); ok && selects(u.GetLabels()) {
				found = append(found, d)
			}
		})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b drifted) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	if err := o.print(found, s); err != nil {
		return err
	}
	if len(denied) > 0 {
		fmt.Fprintf(o.ErrOut, "Without %d kinds that you may not list.\n", len(denied))
	}
	if o.detailed && len(found) > 0 {
		return exit.Silent(exit.Changes)
	}
	return nil
}

// drifted is an object whose infrastructure was changed outside of Hykube.
type drifted struct {
	Kind    string      `json:"kind"`
	Name    string      `json:"name"`
	Since   metav1.Time `json:"since"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
}

func driftOf(k session.Kind, u *unstructured.Unstructured) (d drifted, ok bool) {
	c := condition.Find(u, v1alpha1.ConditionDrifted)
	if c["status"] != string(metav1.ConditionTrue) {
		return d, false
	}
	d = drifted{Kind: k.Kind, Name: u.GetName()}
	d.Reason, _ = c["reason"].(string)
	message, _ := c["message"].(string)
	d.Message = printer.Flat(message)
	at, _ := c["lastTransitionTime"].(string)
	if since, err := time.Parse(time.RFC3339, at); err == nil {
		d.Since = metav1.NewTime(since)
	}
	return d, true
}

// selection returns the predicate of the stack, and the stack. Without a stack, everything is selected.
func (o *driftOptions) selection(ctx context.Context) (func(labels.Set) bool, *v1alpha1.Stack, error) {
	if o.name == "" {
		return func(labels.Set) bool { return true }, nil, nil
	}
	s, err := o.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	selects, err := o.selects(ctx, s)
	return selects, s, err
}

// check runs a drift check of the stack and waits for its end.
func (o *driftOptions) check(ctx context.Context) error {
	asked := &v1alpha1.Stack{}
	if err := o.post(ctx, "drift", asked); err != nil {
		return fmt.Errorf("check stack %q for drift: %w", o.name, o.Explain(err))
	}
	if asked.Status.Drift == nil || asked.Status.Drift.Requested == nil {
		fmt.Fprintln(o.ErrOut, "The check was requested. You may not read the stack, so the command does not wait for the end.")
		return nil
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	id, reported := asked.Status.Drift.Requested.ID, ""
	gaveUp := func() error {
		why := "the wait was interrupted"
		if context.Cause(ctx) == context.DeadlineExceeded {
			why = fmt.Sprintf("the check has not ended after %s", o.timeout)
		}
		return fmt.Errorf("%s. The check continues. To see its progress: kubectl hykube drift %s -n %s", why, o.name,
			o.Namespace)
	}
	for {
		select {
		case <-ctx.Done():
			return gaveUp()
		case <-time.After(pollCheck):
		}
		s, err := o.read(ctx)
		switch {
		case ctx.Err() != nil:
			return gaveUp()
		case err != nil:
			return err
		}
		d := s.Status.Drift
		switch {
		case d == nil:
			continue
		case d.Last != nil && d.Last.ID == id && d.Last.Outcome == v1alpha1.DriftFailed:
			return fmt.Errorf("the drift check failed: %s", printer.Flat(d.Last.Message))
		case d.Last != nil && d.Last.ID == id:
			return nil
		case d.Running != nil && d.Running.ID == id:
			if text := runningText(s); text != reported {
				reported = text
				fmt.Fprintln(o.ErrOut, text)
			}
		}
	}
}

// pollCheck is the interval between two reads of a drift check's state.
const pollCheck = 300 * time.Millisecond

// runningText describes the drift check that runs.
func runningText(s *v1alpha1.Stack) string {
	c := s.Status.Drift.Running
	text := fmt.Sprintf("Checking for drift since %s. Resources read: %d of %d, new drift: %d.",
		c.StartedAt.UTC().Format(time.RFC3339), c.Read, s.Status.Resources, c.Drifted)
	if c.Message != "" {
		text += " " + printer.Flat(c.Message)
	}
	return text
}

func (o *driftOptions) print(found []drifted, s *v1alpha1.Stack) error {
	if o.output != "" {
		out := map[string]any{"namespace": o.Namespace, "drifted": found}
		if s != nil {
			out["stack"], out["check"] = s.Name, s.Status.Drift
		}
		return printer.JSON(o.Terminal, out, o.output)
	}
	if len(found) > 0 {
		w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
		fmt.Fprintln(w, "KIND\tNAME\tSINCE\tREASON\tMESSAGE")
		for _, d := range found {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", d.Kind, d.Name, d.Since.UTC().Format(time.RFC3339), d.Reason,
				d.Message)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(o.Out, noDrift(s))
	}
	if s != nil {
		for _, line := range driftLines(s, time.Now()) {
			fmt.Fprintln(o.ErrOut, line)
		}
	}
	return nil
}

// noDrift says that no drift is recorded. After a check that failed, that may be because nothing was read.
func noDrift(s *v1alpha1.Stack) string {
	if s == nil || s.Status.Drift == nil || s.Status.Drift.Last == nil {
		return "No recorded drift."
	}
	c := s.Status.Drift.Last
	if c.Outcome != v1alpha1.DriftFailed {
		return "No recorded drift."
	}
	text := "The last drift check failed"
	if c.EndedAt != nil {
		text += " at " + c.EndedAt.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s, so it is not known whether there is drift: %s\nNo drift was recorded before. Check again: kubectl hykube drift %s -n %s --now", text, printer.Flat(c.Message), s.Name, s.Namespace)
}

// driftLines describes the last, the running and the next drift check of a stack.
func driftLines(s *v1alpha1.Stack, now time.Time) (out []string) {
	if d := s.Status.Drift; d != nil {
		if c := d.Last; c != nil && c.EndedAt != nil {
			text := fmt.Sprintf("Last check: ended %s, %s; resources read: %d, new drift: %d.",
				c.EndedAt.UTC().Format(time.RFC3339), c.Outcome, c.Read, c.Drifted)
			if c.Message != "" {
				text += " " + printer.Flat(c.Message)
			}
			out = append(out, text)
		}
		if d.Running != nil {
			out = append(out, runningText(s))
		}
	}
	switch d := s.Spec.Drift; {
	case d == nil:
		out = append(out, "The stack has no spec.drift, so nothing checks it for drift.")
	case d.Schedule != "" && !s.Spec.Suspend:
		if times, err := cron.Parse(d.Schedule, d.TimeZone); err == nil {
			out = append(out, fmt.Sprintf("Next check: %s, or up to %s later.",
				times.Next(now).UTC().Format(time.RFC3339), times.Jitter(now)))
		}
	}
	return out
}
