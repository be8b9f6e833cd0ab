package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hykube/hykube/api/v1alpha1"
)

// defaultWait is how long apply waits for other plans that are changing the same resources.
const defaultWait = 10 * time.Minute

// planInTurn makes plans. While other plans are changing what they would change, it waits for those, and makes the plans anew.
func (j *planAndApply) planInTurn(ctx context.Context, want []wanted) ([]*v1alpha1.Plan, error) {
	began := time.Now()
	for {
		plans, err := j.plan(ctx, want)
		if err != nil {
			return nil, err
		}
		busy, err := j.busy(ctx, plans, began)
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
func (j *planAndApply) busy(ctx context.Context, plans []*v1alpha1.Plan, began time.Time) (bool, error) {
	var told []string
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
			if j.waitTimeout > 0 && !slices.Contains(told, name) {
				told = append(told, name)
				fmt.Fprintf(j.ErrOut, "Waiting for plan %q in namespace %q: it is changing what this plan would change.\n", name, p.Namespace)
			}
			left := j.waitTimeout - time.Since(began)
			if left <= 0 {
				return true, fmt.Errorf("plan %q is still changing what this plan would change, so nothing was applied. Wait for its end and run the same command again: kubectl hykube status %s -n %s; --wait-timeout says how long to wait",
					name, name, p.Namespace)
			}
			if err := j.awaitEnd(ctx, p.Namespace, name, other, left); err != nil {
				return true, err
			}
		}
	}
	if waited {
		pause(ctx, 200*time.Millisecond) // its last records may still be on their way
	}
	return waited, ctx.Err()
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
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	stop, done := j.interrupts()
	defer done()
	events := j.watchPlan(ctx, p)
	for {
		select {
		case e, ok := <-events:
			if !ok || e.err != nil {
				return e.err // who asks again sees whether the time is over, or the plan gone
			}
			if e.plan.Ended() {
				return nil
			}
		case <-stop:
			return errors.New("interrupted; nothing was applied")
		}
	}
}

// notOnStdin says why a question cannot be asked.
func notOnStdin(verb string) error {
	return fmt.Errorf("%s -f - reads files from standard input, so it cannot ask there: add --auto-approve, or name the files with -f PATH", strings.TrimSpace(verb))
}
