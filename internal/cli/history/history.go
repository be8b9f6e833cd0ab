// Package history is the verb history, which lists the plans of a namespace from the server's records.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/namespace"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/diff"
)

// recordPage is the number of records per request.
const recordPage = 200

// Options holds the options of history, with which other verbs read the records of plans.
type Options struct {
	*session.Session
	name   string
	limit  int
	output string
}

// New returns the command history.
func New(s *session.Session) *cobra.Command {
	o := &Options{Session: s, limit: 20}
	cmd := &cobra.Command{
		Use:   "history [PLAN]",
		Short: "Show who approved which plans, and how they ended",
		Long: `Show who approved or discarded which plans of a namespace, and how they ended, newest first. With the name of a plan, show
its record in detail.

The server writes a PlanRecord when a plan is approved or discarded, and completes it when the plan ends. The record
outlives its plan. It lists changes by address, action and outcome, without values. The records of a deleted namespace
stay: users who may read PlanRecords in all namespaces can read them.`,
		Example: `  kubectl hykube history -n prod
  kubectl hykube history plan-x7k2d -n prod`,
		Args: cobra.MaximumNArgs(1),
		RunE: session.Run(o),
	}
	cmd.Flags().IntVar(&o.limit, "limit", o.limit, "Number of records to show; 0 shows all")
	printer.OutputFlag(cmd, &o.output, "Output format", "json", "yaml")
	return cmd
}

func (o *Options) Complete(args []string) error {
	if len(args) == 1 {
		_, name, ok := strings.Cut(args[0], "/") // plan/NAME is also valid
		if o.name = args[0]; ok {
			o.name = name
		}
	}
	return o.Connect()
}

func (o *Options) Validate() error {
	if o.limit < 0 {
		return errors.New("--limit: write a number of records, or 0 for all")
	}
	return nil
}

func (o *Options) Run(ctx context.Context) error {
	records, err := o.Records(ctx)
	if err != nil {
		return err
	}
	switch exists, known := namespace.Exists(ctx, o.Session); {
	case !known || exists:
	case len(records) == 0:
		return fmt.Errorf("namespace %q not found, and there are no records of a deleted one with that name",
			o.Namespace)
	default:
		fmt.Fprintf(o.ErrOut, "Namespace %q was deleted; the records of its plans are kept.\n", o.Namespace)
	}
	switch {
	case o.name != "" && len(records) == 0:
		return fmt.Errorf("no record of a plan %q in namespace %q: a plan gets one when it is approved or discarded",
			o.name, o.Namespace)
	case o.output != "" && o.name != "" && len(records) == 1:
		return printer.JSON(o.Terminal, records[0], o.output)
	case o.output != "":
		list := v1alpha1.PlanRecordList{Items: records}
		list.APIVersion, list.Kind = v1alpha1.SchemeGroupVersion.String(), "PlanRecordList"
		return printer.JSON(o.Terminal, list, o.output)
	case o.name != "":
		return o.details(records)
	case len(records) == 0:
		fmt.Fprintf(o.ErrOut, "No plan of namespace %q was approved or discarded yet.\n", o.Namespace)
		return nil
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	written := slices.ContainsFunc(records,
		func(r v1alpha1.PlanRecord) bool { return WrittenByOthers(r.RequestedBy, r.Contributors) })
	fmt.Fprintln(w, "WHEN\tPLAN\tASKED BY\t"+WrittenColumn(written, "WRITTEN BY")+"DECIDED BY\tSUMMARY\tOUTCOME")
	for _, r := range records {
		summary := ""
		if r.Summary != nil {
			summary = r.Summary.Text
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s%s\t%s\t%s\n", decidedAt(&r).UTC().Format(time.RFC3339), r.Plan.Name,
			planapi.Requester(r.RequestedBy, r.CheckRequestedBy),
			WrittenColumn(written, strings.Join(contributor.Names(r.Contributors), ", ")), deciders(&r), summary,
			recordOutcome(&r))
	}
	return w.Flush()
}

// Records returns the records of the namespace, or of the plans with a name, newest first.
func (o *Options) Records(ctx context.Context) ([]v1alpha1.PlanRecord, error) {
	var records []v1alpha1.PlanRecord
	opts := metav1.ListOptions{Limit: recordPage}
	if o.name != "" {
		opts.FieldSelector = "plan.name=" + o.name
	}
	for {
		page := &v1alpha1.PlanRecordList{}
		err := o.Hykube.Get().Namespace(o.Namespace).Resource("planrecords").VersionedParams(&opts,
			metav1.ParameterCodec).Do(ctx).Into(page)
		if err != nil {
			return nil, fmt.Errorf("list records of plans in namespace %q: %w", o.Namespace, o.Explain(err))
		}
		for _, r := range page.Items {
			r.APIVersion, r.Kind, r.ManagedFields = v1alpha1.SchemeGroupVersion.String(), "PlanRecord", nil
			records = append(records, r)
		}
		slices.SortStableFunc(records, newerRecord)
		if o.limit > 0 {
			records = records[:min(len(records), o.limit)]
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return records, nil
		}
	}
}

// newerRecord orders records, the newest first. Times have only seconds, so among the decisions of one second, the plan
// whose record the server wrote last is the newest.
func newerRecord(a, b v1alpha1.PlanRecord) int {
	return cmp.Or(decidedAt(&b).Compare(decidedAt(&a)), cmp.Compare(revision(&b), revision(&a)))
}

// revision returns the number of the server's write of a record.
func revision(r *v1alpha1.PlanRecord) uint64 {
	n, _ := strconv.ParseUint(r.ResourceVersion, 10, 64) // without a number, the order is that of the server
	return n
}

// deciders returns the names of the users who decided about the plan of a record, the last one at the end.
func deciders(r *v1alpha1.PlanRecord) string {
	if len(r.Approvals) < 2 {
		return DecidedBy(&r.Approval)
	}
	var names []string
	for _, a := range r.Approvals {
		names = append(names, planapi.Username(a.By))
	}
	return strings.Join(names, ", ")
}

// details prints records in full.
func (o *Options) details(records []v1alpha1.PlanRecord) error {
	for i, r := range records {
		if i > 0 {
			fmt.Fprintln(o.Out)
		}
		w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
		row := printer.Facts(w)
		row("Plan", fmt.Sprintf("%s in namespace %s (%s)", r.Plan.Name, r.Namespace, r.Plan.UID))
		asked := planapi.Requester(r.RequestedBy, r.CheckRequestedBy)
		if r.RequestedAt != nil {
			asked += " at " + r.RequestedAt.UTC().Format(time.RFC3339)
		}
		row("Asked for", "by "+asked)
		row("Written by", contributor.Text(r.Contributors))
		decision := planapi.DecisionWord(r.Approval.Decision)
		if r.Approval.Partial {
			decision += " in part"
		}
		for _, a := range r.Approvals[:max(0, len(r.Approvals)-1)] {
			row("Decision", decision+planapi.By(&a))
		}
		row("Decision", decision+planapi.By(&r.Approval))
		row("Message", diff.Clean(r.Approval.Message, false))
		row("Digest", r.Approval.Digest)
		row("Changes", planapi.Summary(r.Summary))
		row("Outcome", recordOutcome(&r))
		if r.Progress != nil && r.Progress.Total > 0 {
			row("Progress", planapi.Progress(r.Progress, r.Outcome))
		}
		if r.FinishedAt != nil {
			row("Ended", r.FinishedAt.UTC().Format(time.RFC3339))
		}
		if len(r.Changes) > 0 {
			fmt.Fprintln(w, "\nACTION\tADDRESS\tOUTCOME")
		}
		for _, c := range r.Changes {
			address := c.Address
			if c.Deposed != "" {
				address += " (deposed " + c.Deposed + ")"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", c.Action, address, c.Outcome)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if r.MoreChanges > 0 {
			fmt.Fprintf(o.Out, "and %d more changes\n", r.MoreChanges)
		}
	}
	return nil
}

// DecidedBy returns who made a decision: a user, or the plan itself.
func DecidedBy(a *v1alpha1.PlanApproval) string {
	if a.Automatic != nil {
		return "itself (" + a.Automatic.String() + ")"
	}
	return planapi.Username(a.By)
}

// WrittenByOthers reports whether users other than the requester wrote what the changes of a plan follow from.
func WrittenByOthers(requester *v1alpha1.Identity, list []v1alpha1.Contributor) bool {
	return slices.ContainsFunc(list, func(c v1alpha1.Contributor) bool {
		return requester == nil || c.More || !contributor.SameUser(c.Identity, *requester)
	})
}

// WrittenColumn returns a cell of the column WRITTEN BY; "" if the table does not have it.
func WrittenColumn(shown bool, text string) string {
	if !shown {
		return ""
	}
	return cmp.Or(text, "-") + "\t"
}

// decidedAt returns the time of a plan's approval or discard.
func decidedAt(r *v1alpha1.PlanRecord) time.Time {
	if r.Approval.At != nil {
		return r.Approval.At.Time
	}
	return r.CreationTimestamp.Time
}

// recordOutcome returns the outcome of a plan, or that it is still being applied.
func recordOutcome(r *v1alpha1.PlanRecord) string {
	if g := r.Progress; g != nil && (r.Outcome == v1alpha1.ReasonAppliedInPart ||
		g.Done > 0 && r.Outcome != "" && r.Outcome != v1alpha1.ReasonApplied) {
		return fmt.Sprintf("%s (%s)", r.Outcome, planapi.Progress(g, r.Outcome))
	}
	return cmp.Or(r.Outcome, v1alpha1.ReasonApplying)
}
