package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
)

// This file plans anew when another command was faster: two people, or two pipelines, apply the same resources at once.

// overtaken is a plan that was not applied, or not whole, since another plan came first.
type overtaken struct {
	plan *v1alpha1.Plan
	// by are the plans that changed resources of the namespace since the plan was made; none when a later plan took its place.
	by []v1alpha1.Plan
	// beside is true for a plan that is only made anew to be shown with the others.
	beside bool
}

func (o overtaken) why() string {
	if len(o.by) == 0 {
		return "a later plan of the same resources superseded it"
	}
	return fmt.Sprintf("plan %q was changing resources at the same time", o.by[len(o.by)-1].Name)
}

// overtaken says whether other plans are why a plan was not applied, or not approved with err. What a person changed by hand is not.
func (j *planAndApply) overtaken(ctx context.Context, p *v1alpha1.Plan, err error) (*overtaken, error) {
	moved := stale(p) || apierrors.HasStatusCause(err, v1alpha1.CauseStale)
	if !moved && apierrors.IsConflict(err) {
		now := &v1alpha1.Plan{}
		if err := j.hykube.Get().Namespace(p.Namespace).Resource("plans").Name(p.Name).Do(ctx).Into(now); err != nil {
			return nil, nil // the conflict says enough
		}
		moved, p = stale(now), now
	}
	if !moved && !superseded(p) {
		return nil, nil
	}
	by, err := j.rivals(ctx, p)
	if err != nil || len(by) == 0 && !superseded(p) {
		return nil, err
	}
	return &overtaken{plan: p, by: by}, nil
}

// rivals are the plans of other commands that were applied, or are being applied, since a plan was created.
func (j *planAndApply) rivals(ctx context.Context, p *v1alpha1.Plan) ([]v1alpha1.Plan, error) {
	all, err := j.listPlans(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.Plan
	for _, other := range all {
		approval := other.Status.Approval
		approved := other.ApprovesItself() || approval != nil && approval.Decision == v1alpha1.DecisionApproved
		since := !other.Ended() || other.Status.FinishedAt != nil && !other.Status.FinishedAt.Before(&p.CreationTimestamp)
		since = since && !j.endedBefore[p.UID][other.UID]
		if approved && since && !other.Spec.Speculative && !j.own[other.UID] {
			out = append(out, other)
		}
	}
	return out, nil
}

// giveWay waits for the plans that came before ours, so that the next plan sees what they made. It returns which plans to make anew.
func (j *planAndApply) giveWay(ctx context.Context, plans []*v1alpha1.Plan, want []wanted, lost []overtaken) ([]wanted, error) {
	var anew []wanted
	for _, o := range lost {
		for i, p := range plans {
			if p.UID == o.plan.UID {
				anew = append(anew, want[i])
			}
		}
		if o.beside {
			continue
		}
		if j.waited >= j.waitTimeout {
			return nil, fmt.Errorf("plan %q was not applied, because %s. Run the same command again; --wait-timeout sets how long it waits for other plans", o.plan.Name, o.why())
		}
		fmt.Fprintf(j.ErrOut, "Plan %q was not applied, because %s. Planning again.\n", o.plan.Name, o.why())
		for _, other := range o.by {
			if other.Ended() {
				continue
			}
			if err := j.await(ctx, other.Namespace, v1alpha1.PlanReference{Name: other.Name, UID: other.UID}); err != nil {
				return nil, err
			}
		}
	}
	j.stepAside(ctx)
	j.gap = true
	return anew, ctx.Err()
}

// confirmed notes that a person said yes to plans, so that plans that do the same are not asked about again.
func (j *planAndApply) confirmed(plans []*v1alpha1.Plan) {
	if j.yes == nil {
		j.yes = map[[2]string]bool{}
	}
	for _, p := range plans {
		if p.Status.Contents != "" {
			j.yes[[2]string{p.Namespace, p.Status.Contents}] = true
		}
	}
}

// allConfirmed says whether a person said yes to plans that did the same as each of these.
func (j *planAndApply) allConfirmed(plans []*v1alpha1.Plan) bool {
	for _, p := range plans {
		if !j.yes[[2]string{p.Namespace, p.Status.Contents}] {
			return false
		}
	}
	return true
}

// movedError says that an object of the files changed after the plan was shown.
type movedError struct {
	object *unstructured.Unstructured
	cause  error
}

func (e *movedError) Error() string { return e.cause.Error() }

func (e *movedError) Unwrap() error { return e.cause }

// moves are the objects of the files that changed after the plan was shown; none when something else failed, too.
func moves(err error) []*movedError {
	if m, ok := err.(*movedError); ok {
		return []*movedError{m}
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var out []*movedError
		for _, one := range e.Unwrap() {
			ms := moves(one)
			if len(ms) == 0 {
				return nil
			}
			out = append(out, ms...)
		}
		return out
	case interface{ Unwrap() error }:
		return moves(errors.Unwrap(err))
	}
	return nil
}

// defaultWait is how long apply waits for other plans that are changing the same resources.
const defaultWait = 10 * time.Minute

// planInTurn makes plans. While other plans are changing what they would change, it waits for those, and makes the plans anew.
func (j *planAndApply) planInTurn(ctx context.Context, want []wanted) ([]*v1alpha1.Plan, error) {
	for {
		plans, err := j.plan(ctx, want)
		if err != nil {
			return nil, err
		}
		busy, err := j.busy(ctx, plans)
		if err != nil || !busy {
			return plans, err
		}
		for _, p := range plans {
			if waiting(p) {
				// Who may not decide leaves it: it is overtaken by the next plan.
				_, _ = j.decide(ctx, p, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, Digest: p.Status.Digest, Message: "another plan was changing the same resources"})
			}
		}
	}
}

// busy waits until the plans that are in the way have ended, and says whether there were any.
func (j *planAndApply) busy(ctx context.Context, plans []*v1alpha1.Plan) (bool, error) {
	waited := false
	for _, p := range plans {
		for _, other := range p.Status.WaitsFor {
			waited = true
			name, err := j.nameOf(ctx, p.Namespace, other)
			if err != nil {
				return true, err
			}
			if name == "" {
				continue // it is gone
			}
			if err := j.await(ctx, p.Namespace, v1alpha1.PlanReference{Name: name, UID: other.UID}); err != nil {
				return true, err
			}
		}
	}
	if waited {
		j.stepAside(ctx) // its last records may still be on their way
	}
	return waited, ctx.Err()
}

// await waits for the end of a plan that is in the way, as long as the command may wait.
func (j *planAndApply) await(ctx context.Context, namespace string, other v1alpha1.PlanReference) error {
	if j.waitTimeout > 0 && !j.awaited[other.UID] {
		fmt.Fprintf(j.ErrOut, "Waiting for plan %q in namespace %q: both change the same resources.\n", other.Name, namespace)
	}
	left := j.waitTimeout - j.waited
	if left <= 0 {
		return fmt.Errorf("plan %q is still changing the same resources, so nothing was applied. When it has ended, run the same command again: kubectl hykube status %s -n %s; --wait-timeout sets how long to wait",
			other.Name, other.Name, namespace)
	}
	if j.awaited == nil {
		j.awaited = map[types.UID]bool{}
	}
	j.awaited[other.UID] = true
	began := time.Now()
	defer func() { j.waited += time.Since(began) }()
	return j.awaitEnd(ctx, namespace, other.Name, other, left)
}

// stepAside pauses for a moment that is never the same, so that two commands do not overtake each other again and again.
func (j *planAndApply) stepAside(ctx context.Context) {
	d := 200*time.Millisecond + rand.N(300*time.Millisecond)
	j.waited += d
	pause(ctx, d)
}

// nameOf finds the name of a plan; empty when there is none any more.
func (j *planAndApply) nameOf(ctx context.Context, namespace string, ref v1alpha1.PlanReference) (string, error) {
	if ref.Name != "" {
		return ref.Name, nil
	}
	all, err := j.listPlans(ctx, namespace)
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

// awaitEnd waits until a plan has ended, or the time is over.
func (j *planAndApply) awaitEnd(ctx context.Context, namespace, name string, ref v1alpha1.PlanReference, left time.Duration) error {
	p := &v1alpha1.Plan{}
	err := j.hykube.Get().Namespace(namespace).Resource("plans").Name(name).Do(ctx).Into(p)
	if apierrors.IsNotFound(err) || err == nil && (p.UID != ref.UID || p.Ended()) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get plan %q: %w", name, explain(err, j.server()))
	}
	waiting, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	err = j.watch(waiting, p, watching{
		seen:        func(p *v1alpha1.Plan) (bool, error) { return p.Ended(), nil },
		interrupted: func(<-chan struct{}) error { return errors.New("interrupted; nothing was applied") },
	})
	if waiting.Err() != nil && errors.Is(err, waiting.Err()) {
		return nil // who asks again sees whether the time is over
	}
	return err
}
