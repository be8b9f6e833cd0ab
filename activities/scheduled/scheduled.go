// Package scheduled has the activities of the workflows that Temporal Schedules start. They request a plan or a drift
// check of a Stack, and read the progress of the check. The controller of the Stacks does the work.
package scheduled

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/metrics"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"
)

// Stacks reads Stacks and writes their status.
type Stacks interface {
	// Get returns a stack. It returns store.ErrGone if there is none with the UID.
	Get(ctx context.Context, namespace, name string, uid types.UID) (*v1alpha1.Stack, error)
	// UpdateStatus changes the status of a stack. It does nothing if there is none with the UID.
	UpdateStatus(ctx context.Context, namespace, name string, uid types.UID, change func(*v1alpha1.StackStatus)) error
}

// Requests implements the activities.
type Requests struct {
	Stacks Stacks
	// Metrics counts the runs of the schedules; nil counts nothing.
	Metrics *metrics.Metrics
}

// Register registers the activities with a worker.
func (r *Requests) Register(w worker.Registry) {
	for name, fn := range map[string]any{
		workflows.ActivityRequestCheck: r.countCheck(r.RequestCheck),
		workflows.ActivityCheckState:   r.countCheck(r.CheckState),
		workflows.ActivityRequestPlan:  r.countPlan,
	} {
		w.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

// countCheck counts a drift check when it has ended, and how late it was requested.
func (r *Requests) countCheck(do func(context.Context, workflows.StackRequest) (workflows.CheckState, error)) func(
	context.Context, workflows.StackRequest) (workflows.CheckState, error) {
	return func(ctx context.Context, in workflows.StackRequest) (workflows.CheckState, error) {
		state, err := do(ctx, in)
		if err != nil {
			return state, err
		}
		if activity.GetInfo(ctx).ActivityType.Name == workflows.ActivityRequestCheck {
			r.countDelay(workflows.DriftCheckName, in)
		}
		if state.Ended {
			r.Metrics.ScheduleRun(workflows.DriftCheckName, state.Outcome)
		}
		return state, nil
	}
}

// countPlan is RequestPlan, and counts the run.
func (r *Requests) countPlan(ctx context.Context, in workflows.StackRequest) (any, error) {
	asked, err := r.RequestPlan(ctx, in)
	if err != nil {
		return nil, err
	}
	r.countDelay(workflows.ScheduledPlanName, in)
	outcome := workflows.CheckSkipped
	if asked {
		outcome = "Requested"
	}
	r.Metrics.ScheduleRun(workflows.ScheduledPlanName, outcome)
	return nil, nil
}

func (r *Requests) countDelay(kind string, in workflows.StackRequest) {
	if !in.Due.IsZero() {
		r.Metrics.ScheduleDelay(kind, time.Since(in.Due))
	}
}

// RequestCheck requests a drift check of a stack, unless an earlier one has not ended. It skips a stack whose spec has
// no schedule for drift checks: any user may have started the workflow.
func (r *Requests) RequestCheck(ctx context.Context, in workflows.StackRequest) (workflows.CheckState, error) {
	s, err := r.get(ctx, in)
	if errors.Is(err, store.ErrGone) {
		return gone, nil
	}
	if err != nil {
		return workflows.CheckState{}, err
	}
	if s.Spec.Drift == nil || s.Spec.Drift.Schedule == "" || s.Spec.Suspend {
		return skipped("the stack takes no scheduled checks"), nil
	}
	state := workflows.CheckState{Text: "requested"}
	err = r.Stacks.UpdateStatus(ctx, in.Namespace, in.Name, types.UID(in.UID), func(status *v1alpha1.StackStatus) {
		if status.Drift == nil {
			status.Drift = &v1alpha1.StackDriftStatus{}
		}
		switch d := status.Drift; {
		case d.Requested != nil && d.Requested.ID == in.ID: // an earlier attempt wrote it
		case !d.AcceptsRequest():
			state = skipped("an earlier check has not ended")
		default:
			d.Requested = &v1alpha1.StackRequest{ID: in.ID, At: metav1.Now()}
		}
	})
	return state, err
}

// CheckState returns the state of a drift check.
func (r *Requests) CheckState(ctx context.Context, in workflows.StackRequest) (workflows.CheckState, error) {
	s, err := r.get(ctx, in)
	if errors.Is(err, store.ErrGone) {
		return gone, nil
	}
	if err != nil {
		return workflows.CheckState{}, err
	}
	d := s.Status.Drift
	switch {
	case d == nil || d.Requested == nil || d.Requested.ID != in.ID && (d.Last == nil || d.Last.ID != in.ID):
		return skipped("a later check replaced this one"), nil
	case d.Last != nil && d.Last.ID == in.ID:
		return workflows.CheckState{Ended: true, Outcome: string(d.Last.Outcome), Text: text(d.Last)}, nil
	case d.Running == nil:
		return workflows.CheckState{Text: "requested"}, nil
	}
	return workflows.CheckState{Text: text(d.Running)}, nil
}

// RequestPlan requests a plan of a stack. It returns false for a stack that is suspended or deleted, or that lacks the
// trigger Schedule: any user may have started the workflow.
func (r *Requests) RequestPlan(ctx context.Context, in workflows.StackRequest) (asked bool, err error) {
	s, err := r.get(ctx, in)
	if errors.Is(err, store.ErrGone) {
		return false, nil
	}
	if err != nil || s.Spec.Suspend || !slices.Contains(s.Spec.Plan.Triggers, v1alpha1.TriggerSchedule) {
		return false, err
	}
	return true, r.Stacks.UpdateStatus(ctx, in.Namespace, in.Name, types.UID(in.UID),
		func(status *v1alpha1.StackStatus) {
			if status.Scheduled == nil || status.Scheduled.ID != in.ID {
				status.Scheduled = &v1alpha1.StackRequest{ID: in.ID, At: metav1.NewTime(time.Now())}
			}
		})
}

func (r *Requests) get(ctx context.Context, in workflows.StackRequest) (*v1alpha1.Stack, error) {
	return r.Stacks.Get(ctx, in.Namespace, in.Name, types.UID(in.UID))
}

var gone = workflows.CheckState{Ended: true, Outcome: workflows.CheckGone, Text: "the stack was deleted"}

func skipped(why string) workflows.CheckState {
	return workflows.CheckState{Ended: true, Outcome: workflows.CheckSkipped, Text: why}
}

// text describes a check without values of resources, because Temporal stores it.
func text(c *v1alpha1.DriftCheck) string {
	return fmt.Sprintf("%d resources read, %d drifted", c.Read, c.Drifted)
}
