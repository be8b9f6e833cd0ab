package stack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/history"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/stack"
)

// This file shows an earlier state of a stack. The server keeps no copies of earlier states. The command begins with
// the recorded values of today, and takes back each later change that the server still has.

// pastResource is a resource as it was recorded at the end of a plan.
type pastResource struct {
	Address string `json:"address"`
	// Values are the recorded values, with masked secrets; nil if they are unknown.
	Values json.RawMessage `json:"values,omitempty"`
	// ChangedBy is the plan that changed the resource next; empty if none did.
	ChangedBy string `json:"changedBy,omitempty"`
	// Unknown says why the values are unknown; empty if they are known.
	Unknown string `json:"unknown,omitempty"`
}

// pastChange is a change that a plan made or tried.
type pastChange struct {
	plan string
	*v1alpha1.PlanChange
}

// pastState is the state of a stack at the end of a plan.
type pastState struct {
	Plan      *v1alpha1.Plan `json:"plan"`
	Resources []pastResource `json:"resources"`
	// Gaps name the data that the server no longer has.
	Gaps []string `json:"gaps,omitempty"`
}

// valuesBefore returns the resources before the later changes, which are in the order in which they ended. current has
// the recorded values of today, by address. of reports whether an address belongs to the stack. removed holds the
// records of later plans that the server does not keep: the values of the resources that they changed are unknown.
func valuesBefore(current map[string]json.RawMessage, later []pastChange, removed []v1alpha1.PlanRecord,
	of func(address string) bool) (out []pastResource, gaps []string) {
	past := map[string]pastResource{}
	for address, values := range current {
		past[address] = pastResource{Address: address, Values: values}
	}
	for _, c := range slices.Backward(later) {
		before := cmp.Or(c.PreviousAddress, c.Address)
		if !of(c.Address) && !of(before) {
			continue
		}
		delete(past, c.Address)
		r := pastResource{Address: before, ChangedBy: c.plan}
		recorded := cmp.Or(c.Recorded, c.Before)
		switch {
		case c.ValuesWithheld:
			r.Unknown = "you may not get the object"
		case recorded == nil || len(recorded.Raw) == 0 || string(recorded.Raw) == "null" || c.Importing != nil:
			continue // it did not exist, or Hykube did not know it
		default:
			r.Values = json.RawMessage(recorded.Raw)
		}
		past[before] = r
	}
	for _, record := range removed {
		for _, c := range record.Changes {
			if c.Deposed == "" && c.Outcome != v1alpha1.ChangeSkipped && c.Outcome != v1alpha1.ChangeStale &&
				of(c.Address) {
				past[c.Address] = pastResource{Address: c.Address, ChangedBy: record.Plan.Name,
					Unknown: "plan " + record.Plan.Name + ", which is removed, changed it"}
			}
		}
		if record.MoreChanges > 0 {
			gaps = append(gaps, fmt.Sprintf(
				"Plan %s, which is removed, made %d more changes, of which no addresses are kept.", record.Plan.Name,
				record.MoreChanges))
		}
	}
	for _, r := range past {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b pastResource) int { return strings.Compare(a.Address, b.Address) })
	return out, gaps
}

// planAt returns the plan that --at names: by name, by number, or the last one that had ended at a time. plans lists
// the newest first.
func planAt(plans []v1alpha1.Plan, s *v1alpha1.Stack, at string, now time.Time) (*v1alpha1.Plan, error) {
	for i := range plans {
		p := &plans[i]
		if p.Name == at || p.Status.Stack != nil && strconv.FormatInt(numberOf(p), 10) == at &&
			p.Status.Stack.Trigger != v1alpha1.TriggerDriftCheck {
			return p, nil
		}
	}
	when, isTime := timeAt(at, now)
	if !isTime {
		return nil, fmt.Errorf("--at: the server keeps no plan %q of the stack %q; name a plan, or a time such as 2026-11-24T19:47:16Z, 19:47 (UTC) or 10m. "+
			"kubectl hykube stack history %s lists the plans", at, s.Name, s.Name)
	}
	var found *v1alpha1.Plan
	for i := range plans {
		p := &plans[i]
		if p.Status.FinishedAt != nil && !p.Status.FinishedAt.After(when) &&
			(found == nil || p.Status.FinishedAt.After(found.Status.FinishedAt.Time)) {
			found = p
		}
	}
	if found == nil {
		return nil, fmt.Errorf("--at: no plan of the stack %q that the server keeps had ended at %s; kubectl hykube stack history %s lists them",
			s.Name, when.UTC().Format(time.RFC3339), s.Name)
	}
	return found, nil
}

// timeAt returns the time of a text: one in RFC 3339, a time of the day in UTC within the last 24 hours, or a duration
// before now.
func timeAt(text string, now time.Time) (time.Time, bool) {
	if when, err := time.Parse(time.RFC3339, text); err == nil {
		return when, true
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), true
	}
	for _, layout := range []string{"15:04", "15:04:05", "15:04Z", "15:04:05Z"} {
		clock, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		year, month, day := now.UTC().Date()
		when := time.Date(year, month, day, clock.Hour(), clock.Minute(), clock.Second(), 0, time.UTC)
		if when.After(now) {
			when = when.AddDate(0, 0, -1)
		}
		return when, true
	}
	return time.Time{}, false
}

// showAt shows the stack as it was at the end of a plan.
func (o *stackHistoryOptions) showAt(ctx context.Context, s *v1alpha1.Stack, all, plans []v1alpha1.Plan) error {
	p, err := planAt(plans, s, o.at, time.Now())
	if err != nil {
		return err
	}
	state := pastState{Plan: p.DeepCopy()}
	state.Plan.APIVersion, state.Plan.Kind, state.Plan.ManagedFields = v1alpha1.SchemeGroupVersion.String(), "Plan", nil
	if state.Resources, state.Gaps, err = o.pastResources(ctx, s, p, all); err != nil {
		return err
	}
	if o.output != "" {
		return printer.JSON(o.Terminal, state, o.output)
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	row := printer.Facts(w)
	title := p.Name + " of stack " + s.Name
	if other := notOfStack(p, s); other != "" {
		title = p.Name + other
	}
	row("Plan", title)
	row("State", planapi.State(p))
	row("Asked for", "by "+askedBy(p)+" at "+p.CreationTimestamp.UTC().Format(time.RFC3339))
	for _, a := range planapi.Decisions(p) {
		row("Decision", planapi.DecisionWord(a.Decision)+planapi.By(&a))
	}
	if p.Status.FinishedAt != nil {
		row("Ended", p.Status.FinishedAt.UTC().Format(time.RFC3339))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(o.Out)
	if planapi.Planned(p) {
		if err := operation.ShowPlan(ctx, o.Session, p, nil, nil); err != nil {
			return err
		}
	}
	return o.printPast(p, state)
}

func (o *stackHistoryOptions) printPast(p *v1alpha1.Plan, state pastState) error {
	fmt.Fprintf(o.Out, "\nResources of the stack at the end of plan %s; -o json prints their values:\n", p.Name)
	w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "ADDRESS\tID\tCHANGED NEXT BY")
	for _, r := range state.Resources {
		var values struct {
			ID any `json:"id"`
		}
		id := "-"
		if r.Unknown != "" {
			id = "unknown: " + r.Unknown
		} else if json.Unmarshal(r.Values, &values) == nil && values.ID != nil {
			id = fmt.Sprint(values.ID)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Address, id, cmp.Or(r.ChangedBy, "-"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, gap := range state.Gaps {
		fmt.Fprintln(o.ErrOut, gap)
	}
	return nil
}

// pastResources returns the resources of a stack at the end of a plan.
func (o *stackHistoryOptions) pastResources(ctx context.Context, s *v1alpha1.Stack, p *v1alpha1.Plan,
	all []v1alpha1.Plan) ([]pastResource, []string, error) {
	current, gaps, err := o.currentValues(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	later, members, err := o.laterChanges(ctx, s, p, all)
	if err != nil {
		return nil, nil, err
	}
	removed, err := o.removedPlans(ctx, p, all)
	if apierrors.IsForbidden(err) {
		gaps = append(gaps, "You may not list PlanRecords, so changes of plans that are removed may be missing.")
	} else if err != nil {
		return nil, nil, err
	}
	past, more := valuesBefore(current, later, removed, func(address string) bool {
		_, is := current[address]
		return is || members[address]
	})
	return past, append(gaps, more...), nil
}

// currentValues returns the recorded values of the resources that a stack selects now, by address.
func (o *stackHistoryOptions) currentValues(ctx context.Context,
	s *v1alpha1.Stack) (map[string]json.RawMessage, []string, error) {
	current := map[string]json.RawMessage{}
	denied, err := o.eachMember(ctx, s, func(k session.Kind, u *unstructured.Unstructured) {
		mode, _ := v1alpha1.ParseKind(k.Kind)
		attributes, has, _ := unstructured.NestedMap(u.Object, "status", "attributes")
		if !has || mode != v1alpha1.ModeManaged {
			return
		}
		if text, err := json.Marshal(attributes); err == nil {
			current[addrs.OfKind(k.Kind, u.GetName())] = text
		}
	})
	if err != nil {
		return nil, nil, err
	}
	var gaps []string
	if len(denied) > 0 {
		gaps = append(gaps, fmt.Sprintf("Without %d kinds that you may not list.", len(denied)))
	}
	return current, gaps, nil
}

// selects returns the predicate of a stack.
func (o *stackArgument) selects(ctx context.Context, s *v1alpha1.Stack) (func(labels.Set) bool, error) {
	all, err := planapi.Stacks(ctx, o.Session, o.Namespace)
	if err != nil {
		return nil, err
	}
	return stack.Selects(s, all), nil
}

// laterChanges returns the changes of resources that ended after a plan, in their order. members has the addresses that
// the plans of the stack changed at any time.
func (o *stackHistoryOptions) laterChanges(ctx context.Context, s *v1alpha1.Stack, p *v1alpha1.Plan,
	all []v1alpha1.Plan) (later []pastChange, members map[string]bool, err error) {
	members = map[string]bool{}
	var last int64 // the last write of a change of the plan
	var made []pastChange
	for i := range all {
		q := &all[i]
		if q.Status.Approval == nil || q.Spec.Speculative {
			continue
		}
		ofStack := madeFor(q, s)
		for c, err := range planapi.Changes(ctx, o.Session, q) {
			switch {
			case err != nil:
				return nil, nil, err
			case c.Deposed != "" || c.Mode != "" && c.Mode != v1alpha1.ModeManaged:
				continue
			case ofStack:
				members[c.Address] = true
			}
			if attempted(c.State) {
				made = append(made, pastChange{q.Name, c})
				if q.UID == p.UID {
					last = max(last, c.Sequence)
				}
			}
		}
	}
	slices.SortFunc(made, func(a, b pastChange) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, c := range made {
		switch {
		case last > 0 && c.Sequence > last,
			last == 0 && c.FinishedAt != nil && c.FinishedAt.After(endOf(p)):
			later = append(later, c)
		}
	}
	return later, members, nil
}

// endOf returns the time at which a plan ended, or at which it was made if it has not ended.
func endOf(p *v1alpha1.Plan) time.Time {
	if p.Status.FinishedAt != nil {
		return p.Status.FinishedAt.Time
	}
	return p.CreationTimestamp.Time
}

// removedPlans returns the records of plans that were applied after a plan, and that the server does not keep.
func (o *stackHistoryOptions) removedPlans(ctx context.Context, p *v1alpha1.Plan,
	all []v1alpha1.Plan) ([]v1alpha1.PlanRecord, error) {
	records, err := (&history.Options{Session: o.Session}).Records(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(records, func(r v1alpha1.PlanRecord) bool {
		kept := slices.ContainsFunc(all, func(q v1alpha1.Plan) bool { return q.UID == r.Plan.UID })
		return kept || r.Approval.Decision != v1alpha1.DecisionApproved ||
			r.FinishedAt != nil && r.FinishedAt.Time.Before(endOf(p))
	}), nil
}
