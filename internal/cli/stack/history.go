package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/history"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/contributor"
)

type stackHistoryOptions struct {
	stackArgument
	limit int
	at    string
}

func newStackHistory(s *session.Session) *cobra.Command {
	o := &stackHistoryOptions{stackArgument: stackArgument{Session: s}, limit: 20}
	cmd := &cobra.Command{
		Use:   "history STACK",
		Short: "List the plans of a stack, or show an earlier state of it",
		Long: `List the plans that a stack, or its workflow, made, and the approved plans of users that changed its resources, newest first. The
list has the plans that the server still keeps. kubectl hykube history shows the records of all decided plans of the namespace, which
outlive the plans.

With --at, show the state of the stack at the end of one of these plans. Name the plan, or a time: the last plan that had ended then. A time
is one in RFC 3339, a time of the last 24 hours in UTC such as 19:47, or a duration before now such as 10m. The command shows who asked for the plan and approved it, its changes, and the
resources of the stack with the values that were recorded then. It computes the values: it begins with those of today, and
takes back all later changes of the plans that the server still keeps. If a later plan is removed, the values of the
resources that it changed are unknown, and the command reports that. The server keeps no earlier outputs, nor earlier specs.`,
		Example: `  kubectl hykube stack history web -n prod
  kubectl hykube stack history web --at web-3
  kubectl hykube stack history web --at 10m
  kubectl hykube stack history web --at 2026-11-24T19:47:16Z -o json`,
		Args:              namesStack(0),
		ValidArgsFunction: completeStacks(s),
		RunE:              session.Run(o),
	}
	cmd.Flags().IntVar(&o.limit, "limit", o.limit, "Number of plans to list; 0 lists all")
	cmd.Flags().StringVar(&o.at, "at", "",
		"Show the stack at the end of this plan, or of the last plan that had ended at this time (RFC 3339, 15:04 in UTC, or a duration before now)")
	printer.OutputFlag(cmd, &o.output, "Print", "json", "yaml", "name")
	return cmd
}

func (o *stackHistoryOptions) Validate() error {
	if o.at != "" && o.output == "name" {
		return errors.New("-o name: not with --at")
	}
	if o.limit < 0 {
		return errors.New("--limit: write a number of plans, or 0 for all")
	}
	return nil
}

func (o *stackHistoryOptions) Run(ctx context.Context) error {
	s, err := o.read(ctx)
	if err != nil {
		return err
	}
	all, err := planapi.List(ctx, o.Session, o.Namespace)
	if err != nil {
		return err
	}
	plans, err := o.plansAbout(ctx, s, all)
	if err != nil {
		return err
	}
	if o.at != "" {
		return o.showAt(ctx, s, all, plans)
	}
	if o.limit > 0 && len(plans) > o.limit {
		plans = plans[:o.limit]
	}
	switch {
	case o.output == "name":
		for _, p := range plans {
			fmt.Fprintf(o.Out, "plan.%s/%s\n", v1alpha1.GroupName, p.Name)
		}
		return nil
	case o.output != "":
		list := v1alpha1.PlanList{Items: plans}
		list.APIVersion, list.Kind = v1alpha1.SchemeGroupVersion.String(), "PlanList"
		return printer.JSON(o.Terminal, list, o.output)
	case len(plans) == 0:
		fmt.Fprintf(o.ErrOut, "The stack %q has no plans.\n", s.Name)
		return nil
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	written := slices.ContainsFunc(plans, func(p v1alpha1.Plan) bool {
		return history.WrittenByOthers(p.Status.RequestedBy, p.Status.Contributors)
	})
	fmt.Fprintln(w, "MADE\tPLAN\tASKED BY\t"+history.WrittenColumn(written, "WRITTEN BY")+"DECIDED BY\tSUMMARY\tSTATE")
	for i := range plans {
		p, summary, by := &plans[i], "-", "-"
		if p.Status.Summary != nil {
			summary = cmp.Or(p.Status.Summary.Text, "-")
		}
		if made := planapi.Decisions(p); len(made) > 0 {
			names := make([]string, 0, len(made))
			for _, a := range made {
				names = append(names, history.DecidedBy(&a))
			}
			by = strings.Join(names, ", ")
		}
		writers := history.WrittenColumn(written, strings.Join(contributor.Names(p.Status.Contributors), ", "))
		fmt.Fprintf(w, "%s\t%s\t%s\t%s%s\t%s\t%s\n", p.CreationTimestamp.UTC().Format(time.RFC3339), p.Name, askedBy(p),
			writers, by, summary, planapi.State(p)+notOfStack(p, s))
	}
	return w.Flush()
}

// plansAbout returns the plans of a stack, and the approved plans of others that changed its resources, newest first.
// all lists the plans of the namespace.
func (o *stackArgument) plansAbout(ctx context.Context, s *v1alpha1.Stack,
	all []v1alpha1.Plan) ([]v1alpha1.Plan, error) {
	var plans, others []v1alpha1.Plan
	for i := range all {
		p := &all[i]
		switch {
		case madeFor(p, s):
			plans = append(plans, *p)
		case Approved(p) && !p.Spec.Speculative && !endOf(p).Before(s.CreationTimestamp.Time):
			others = append(others, *p)
		}
	}
	if len(others) > 0 {
		changed, err := o.changedResourcesOf(ctx, s, all)
		if err != nil {
			return nil, err
		}
		for i := range others {
			if is, err := changed(ctx, &others[i]); err != nil {
				return nil, err
			} else if is {
				plans = append(plans, others[i])
			}
		}
	}
	slices.SortFunc(plans, func(a, b v1alpha1.Plan) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(numberOf(&b), numberOf(&a)))
	})
	return plans, nil
}

// Approved reports whether a user, a policy or the stack approved a plan.
func Approved(p *v1alpha1.Plan) bool {
	return p.Status.Approval != nil && p.Status.Approval.Decision == v1alpha1.DecisionApproved
}

// changedResourcesOf returns a function that reports whether a plan changed resources that a stack selects now, or that
// plans of the stack changed. It reads the records of the plans, because they have the changes of all plans in one
// list.
func (o *stackArgument) changedResourcesOf(ctx context.Context, s *v1alpha1.Stack,
	all []v1alpha1.Plan) (func(context.Context, *v1alpha1.Plan) (bool, error), error) {
	records, err := (&history.Options{Session: o.Session}).Records(ctx)
	if apierrors.IsForbidden(err) {
		fmt.Fprintln(o.ErrOut, "You may not list PlanRecords, so plans of users that changed the resources of the stack are missing.")
		return func(context.Context, *v1alpha1.Plan) (bool, error) { return false, nil }, nil
	}
	if err != nil {
		return nil, err
	}
	members, err := o.memberAddresses(ctx, s)
	if err != nil {
		return nil, err
	}
	recorded := map[types.UID]*v1alpha1.PlanRecord{}
	for i := range records {
		recorded[records[i].Plan.UID] = &records[i]
	}
	for i := range all {
		r := recorded[all[i].UID]
		if r == nil || !madeFor(&all[i], s) {
			continue
		}
		for _, c := range r.Changes {
			members[c.Address] = true
		}
	}
	return func(ctx context.Context, p *v1alpha1.Plan) (bool, error) {
		r := recorded[p.UID]
		if r == nil {
			return false, nil
		}
		for _, c := range r.Changes {
			if members[c.Address] && attempted(c.Outcome) {
				return true, nil
			}
		}
		if r.MoreChanges == 0 {
			return false, nil
		}
		for c, err := range planapi.Changes(ctx, o.Session, p) {
			if err != nil {
				return false, err
			}
			if members[c.Address] && attempted(c.State) {
				return true, nil
			}
		}
		return false, nil
	}, nil
}

// attempted reports whether a change may have changed infrastructure or its record.
func attempted(state v1alpha1.ChangeState) bool {
	switch state {
	case v1alpha1.ChangeDone, v1alpha1.ChangeFailed, v1alpha1.ChangeUnknown, v1alpha1.ChangeRunning:
		return true
	}
	return false
}

// memberAddresses returns the addresses of the objects that a stack selects now.
func (o *stackArgument) memberAddresses(ctx context.Context, s *v1alpha1.Stack) (map[string]bool, error) {
	members := map[string]bool{}
	_, err := o.eachMember(ctx, s, func(k session.Kind, u *unstructured.Unstructured) {
		members[addrs.OfKind(k.Kind, u.GetName())] = true
	})
	return members, err
}

// eachMember visits the objects that a stack selects now, and returns the kinds that the user may not list.
func (o *stackArgument) eachMember(ctx context.Context, s *v1alpha1.Stack,
	visit func(session.Kind, *unstructured.Unstructured)) ([]session.Kind, error) {
	selects, err := o.selects(ctx, s)
	if err != nil {
		return nil, err
	}
	return objects.EachResource(ctx, o.Session, nil, o.Namespace, "",
		func(k session.Kind, u *unstructured.Unstructured) {
			if selects(u.GetLabels()) {
				visit(k, u)
			}
		})
}

// appliedLast returns the plan that changed resources of a stack last; nil if there is none, or if the user may not
// list plans.
func (o *stackArgument) appliedLast(ctx context.Context, s *v1alpha1.Stack) (*v1alpha1.Plan, error) {
	all, err := planapi.List(ctx, o.Session, o.Namespace)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	applied := slices.DeleteFunc(slices.Clone(all), func(p v1alpha1.Plan) bool {
		return !Approved(&p) || p.Spec.RefreshOnly || p.Status.FinishedAt == nil || p.Status.Progress == nil ||
			p.Status.Progress.Done == 0 ||
			endOf(&p).Before(s.CreationTimestamp.Time)
	})
	slices.SortFunc(applied, func(a, b v1alpha1.Plan) int { return endOf(&b).Compare(endOf(&a)) })
	var changed func(context.Context, *v1alpha1.Plan) (bool, error)
	for i := range applied {
		p := &applied[i]
		if madeFor(p, s) {
			return p, nil
		}
		if changed == nil {
			if changed, err = o.changedResourcesOf(ctx, s, all); err != nil {
				return nil, err
			}
		}
		if is, err := changed(ctx, p); is || err != nil {
			return p, err
		}
	}
	return nil, nil
}

// askedBy returns the name of the user who asked for a plan. A user may request the drift check of another user's
// stack.
func askedBy(p *v1alpha1.Plan) string {
	if of := p.Status.Stack; of != nil {
		return planapi.Requester(p.Status.RequestedBy, of.CheckRequestedBy)
	}
	return planapi.Requester(p.Status.RequestedBy, nil)
}

// notOfStack returns a text for a plan that a stack did not make; "" for others.
func notOfStack(p *v1alpha1.Plan, s *v1alpha1.Stack) string {
	if madeFor(p, s) {
		return ""
	}
	return " (not a plan of the stack)"
}

// madeFor reports whether a stack, or its workflow, made a plan. An earlier stack may have had the same name.
func madeFor(p *v1alpha1.Plan, s *v1alpha1.Stack) bool {
	if p.Status.Stack != nil {
		return p.Status.Stack.StackUID == s.UID
	}
	return p.StackName() == s.Name && !p.CreationTimestamp.Time.Before(s.CreationTimestamp.Time)
}

// numberOf returns the number of a plan among those that its stack made; 0 if no stack made it.
func numberOf(p *v1alpha1.Plan) int64 {
	if p.Status.Stack == nil {
		return 0
	}
	return p.Status.Stack.Number
}
