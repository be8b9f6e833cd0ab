package operation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
)

// This file handles users or pipelines that apply the same resources concurrently: the command whose plan was overtaken
// by another one plans again.

// Conflict is a plan that was not applied completely because of another plan.
type Conflict struct {
	plan *v1alpha1.Plan
	// by holds the plans that changed resources of the namespace since planning. It is empty if a later plan superseded
	// this one.
	by []v1alpha1.Plan
	// beside is true for a plan that the command makes again only to show it with the others.
	beside bool
}

func (o Conflict) why() string {
	if len(o.by) == 0 {
		return "a later plan of the same resources superseded it"
	}
	return fmt.Sprintf("plan %q was changing resources at the same time", o.by[len(o.by)-1].Name)
}

// conflictOf returns the other plans because of which a plan was not applied, or not approved with err. It returns nil
// if the reason is another one, such as a user's edit of an object.
func (j *Operation) conflictOf(ctx context.Context, p *v1alpha1.Plan, err error) (*Conflict, error) {
	moved := planapi.Stale(p) || apierrors.HasStatusCause(err, v1alpha1.CauseStale)
	if !moved && apierrors.IsConflict(err) {
		now, err := planapi.Read(ctx, j.Session, p.Namespace, p.Name)
		if err != nil {
			return nil, nil // the caller reports the conflict
		}
		moved, p = planapi.Stale(now), now
	}
	if !moved && !planapi.Superseded(p) {
		return nil, nil
	}
	by, err := j.PlansAppliedSince(ctx, p)
	if err != nil || len(by) == 0 && !planapi.Superseded(p) {
		return nil, err
	}
	return &Conflict{plan: p, by: by}, nil
}

// PlansAppliedSince returns the plans of other commands that were applied, or are being applied, since a plan was
// created.
func (j *Operation) PlansAppliedSince(ctx context.Context, p *v1alpha1.Plan) ([]v1alpha1.Plan, error) {
	all, err := planapi.List(ctx, j.Session, p.Namespace)
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.Plan
	for _, other := range all {
		approval := other.Status.Approval
		approved := other.ApprovesItself() || approval != nil && approval.Decision == v1alpha1.DecisionApproved
		since := !other.Ended() || other.Status.FinishedAt != nil &&
			!other.Status.FinishedAt.Before(&p.CreationTimestamp)
		since = since && !j.EndedBefore[p.UID][other.UID]
		if approved && since && !other.Spec.Speculative && !j.own[other.UID] {
			out = append(out, other)
		}
	}
	return out, nil
}

// AwaitOtherPlans waits for the plans that came first, so that the next plan sees their results. It returns the plans
// to make again.
func (j *Operation) AwaitOtherPlans(ctx context.Context, plans []*v1alpha1.Plan, want []Wanted,
	lost []Conflict) ([]Wanted, error) {
	var anew []Wanted
	for _, o := range lost {
		for i, p := range plans {
			if p.UID == o.plan.UID {
				anew = append(anew, want[i])
			}
		}
		if o.beside {
			continue
		}
		if j.Waited >= j.WaitTimeout {
			return nil, fmt.Errorf("plan %q was not applied, because %s. Run the same command again; --wait-timeout sets how long it waits for other plans", o.plan.Name, o.why())
		}
		fmt.Fprintf(j.ErrOut, "Plan %q was not applied, because %s. Planning again.\n", o.plan.Name, o.why())
		for _, other := range o.by {
			if other.Ended() {
				continue
			}
			if err := j.await(ctx, other.Namespace,
				v1alpha1.PlanReference{Name: other.Name, UID: other.UID}); err != nil {
				return nil, err
			}
		}
	}
	j.BackOff(ctx)
	j.Gap = true
	return anew, ctx.Err()
}

// Confirmed records that the user said yes to plans, so that equal plans need no further question.
func (j *Operation) Confirmed(plans []*v1alpha1.Plan) {
	if j.yes == nil {
		j.yes = map[[2]string]bool{}
	}
	for _, p := range plans {
		if p.Status.Contents != "" {
			j.yes[[2]string{p.Namespace, p.Status.Contents}] = true
		}
	}
}

// AllConfirmed reports whether the user said yes to a plan with equal contents for each of these plans.
func (j *Operation) AllConfirmed(plans []*v1alpha1.Plan) bool {
	for _, p := range plans {
		if !j.yes[[2]string{p.Namespace, p.Status.Contents}] {
			return false
		}
	}
	return true
}

// defaultWait is the default of --wait-timeout, the maximum wait for other plans that change the same resources.
const defaultWait = 10 * time.Minute

// PlanInTurn makes plans. If other plans are changing the same resources, it waits for them and plans again.
func (j *Operation) PlanInTurn(ctx context.Context, want []Wanted) ([]*v1alpha1.Plan, error) {
	for {
		plans, err := j.Plan(ctx, want)
		if err != nil {
			return nil, err
		}
		busy, err := j.Busy(ctx, plans)
		if err != nil || !busy {
			return plans, err
		}
		for _, p := range plans {
			if planapi.Waiting(p) {
				// If the user may not discard it, the next plan will supersede it.
				_, _ = planapi.Decide(ctx, j.Session, p,
					v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, Digest: p.Status.Digest,
						Message: "another plan was changing the same resources"})
			}
		}
	}
}

// Busy waits for the plans in status.waitsFor. It reports whether there were any.
func (j *Operation) Busy(ctx context.Context, plans []*v1alpha1.Plan) (bool, error) {
	waited := false
	for _, p := range plans {
		for _, other := range p.Status.WaitsFor {
			waited = true
			name, err := j.nameOf(ctx, p.Namespace, other)
			if err != nil {
				return true, err
			}
			if name == "" {
				continue // the plan no longer exists
			}
			if err := j.await(ctx, p.Namespace, v1alpha1.PlanReference{Name: name, UID: other.UID}); err != nil {
				return true, err
			}
		}
	}
	if waited {
		j.BackOff(ctx) // the plan's last records may still be in progress
	}
	return waited, ctx.Err()
}

// await waits for the end of another plan within --wait-timeout.
func (j *Operation) await(ctx context.Context, namespace string, other v1alpha1.PlanReference) error {
	if j.WaitTimeout > 0 && !j.awaited[other.UID] {
		fmt.Fprintf(j.ErrOut, "Waiting for plan %q in namespace %q: both change the same resources.\n", other.Name,
			namespace)
	}
	left := j.WaitTimeout - j.Waited
	if left <= 0 {
		return fmt.Errorf("plan %q is still changing the same resources, so nothing was applied. When it has ended, run the same command again: kubectl hykube status %s -n %s; --wait-timeout sets how long to wait",
			other.Name, other.Name, namespace)
	}
	if j.awaited == nil {
		j.awaited = map[types.UID]bool{}
	}
	j.awaited[other.UID] = true
	began := time.Now()
	defer func() { j.Waited += time.Since(began) }()
	return j.awaitEnd(ctx, namespace, other.Name, other, left)
}

// BackOff pauses for a random time, so that two commands do not overtake each other repeatedly.
func (j *Operation) BackOff(ctx context.Context) {
	d := 200*time.Millisecond + rand.N(300*time.Millisecond)
	j.Waited += d
	session.Pause(ctx, d)
}

// nameOf returns the name of a plan, or "" if it no longer exists.
func (j *Operation) nameOf(ctx context.Context, namespace string, ref v1alpha1.PlanReference) (string, error) {
	if ref.Name != "" {
		return ref.Name, nil
	}
	all, err := planapi.List(ctx, j.Session, namespace)
	if err != nil {
		return "", err
	}
	for i := range all {
		if all[i].UID == ref.UID {
			return all[i].Name, nil
		}
	}
	return "", nil
}

// awaitEnd waits until a plan has ended or the time is over.
func (j *Operation) awaitEnd(ctx context.Context, namespace, name string, ref v1alpha1.PlanReference,
	left time.Duration) error {
	p, err := planapi.Read(ctx, j.Session, namespace, name)
	if apierrors.IsNotFound(err) || err == nil && (p.UID != ref.UID || p.Ended()) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get plan %q: %w", name, j.Explain(err))
	}
	waiting, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	err = Watch(waiting, j.Session, p, Watching{
		Changed:     func(p *v1alpha1.Plan) (bool, error) { return p.Ended(), nil },
		Interrupted: func(<-chan struct{}) error { return errors.New("interrupted; nothing was applied") },
	})
	if waiting.Err() != nil && errors.Is(err, waiting.Err()) {
		return nil // the next attempt detects whether the time is over
	}
	return err
}
