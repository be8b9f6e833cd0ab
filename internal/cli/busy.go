package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
)

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
		fmt.Fprintf(j.ErrOut, "Waiting for plan %q in namespace %q: it is changing what this plan would change.\n", other.Name, namespace)
	}
	left := j.waitTimeout - j.waited
	if left <= 0 {
		return fmt.Errorf("plan %q is still changing what this plan would change, so nothing was applied. Wait for its end and run the same command again: kubectl hykube status %s -n %s; --wait-timeout says how long to wait",
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
