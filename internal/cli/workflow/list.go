package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/ownership"
)

type workflowsOptions struct {
	*session.Session
	output string
}

// NewWorkflows returns the command workflows.
func NewWorkflows(s *session.Session) *cobra.Command {
	o := &workflowsOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "workflows",
		Short: "Show the workflows and schedules of users, and for whom they act",
		Long: `Show the running workflows of users in a namespace, and the schedules that start workflows, with the user for whom each acts.

A workflow acts for the user who started it, and a run of a schedule for the user who created or last updated the
schedule. The server ends workflows, and pauses schedules, of users who may not start them any more. The command needs
the verb "list" on workflows.`,
		Example: `  kubectl hykube workflows -n prod`,
		Args:    cobra.NoArgs,
		RunE:    session.Run(o),
	}
	printer.OutputFlag(cmd, &o.output, "Output format", "json", "yaml")
	return cmd
}

func (o *workflowsOptions) Complete([]string) error { return o.Connect() }

func (o *workflowsOptions) Run(ctx context.Context) error {
	raw, err := o.Hykube.Get().AbsPath(ownership.Path, o.Namespace).Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("list the workflows of namespace %q: %w", o.Namespace, o.Explain(err))
	}
	var list ownership.List
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("read the workflows of namespace %q: %w", o.Namespace, err)
	}
	if o.output != "" {
		return printer.JSON(o.Terminal, list, o.output)
	}
	if len(list.Workflows)+len(list.Schedules) == 0 {
		fmt.Fprintf(o.ErrOut, "No workflow of a user runs in namespace %q, and it has no schedule.\n", o.Namespace)
		return nil
	}
	return printWorkflows(o.Out, list)
}

// printWorkflows prints a table of the workflows and one of the schedules.
func printWorkflows(out io.Writer, list ownership.List) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if len(list.Workflows) > 0 {
		fmt.Fprintln(w, "WORKFLOW\tTYPE\tTASK QUEUE\tSTARTED BY\tSCHEDULE\tAGE")
	}
	for _, f := range list.Workflows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", diff.Clean(f.ID, false), diff.Clean(f.Type, false),
			diff.Clean(f.TaskQueue, false), diff.Clean(f.StartedBy, false), diff.Clean(cmp.Or(f.Schedule, "-"), false),
			printer.Age(f.StartedAt))
	}
	if err := w.Flush(); err != nil || len(list.Schedules) == 0 {
		return err
	}
	if len(list.Workflows) > 0 {
		fmt.Fprintln(out)
	}
	fmt.Fprintln(w, "SCHEDULE\tTYPE\tTASK QUEUE\tOWNER\tNEXT RUN")
	for _, f := range list.Schedules {
		next := "-"
		switch {
		case f.Paused && f.Note != "":
			next = "paused: " + f.Note
		case f.Paused:
			next = "paused"
		case f.Next != nil:
			next = f.Next.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", diff.Clean(f.ID, false), diff.Clean(f.Type, false),
			diff.Clean(f.TaskQueue, false), diff.Clean(f.Owner, false), diff.Clean(next, false))
	}
	return w.Flush()
}
