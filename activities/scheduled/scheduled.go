// Package scheduled has the activities of the workflows that Temporal Schedules start. They ask a Stack for a plan or a
// drift check, and read how far the check is. The controller of the Stacks does the work.
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
type Requests struct{ Stacks Stacks }

// Register registers the activities with a worker.
func (r *Requests) Register(w worker.Registry) {
	for name, fn := range map[string]any{
		workflows.ActivityRequestCheck: r.RequestCheck,
		workflows.ActivityCheckState:   r.CheckState,
		workflows.ActivityRequestPlan:  r.RequestPlan,
	} {
		w.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

// RequestCheck asks a stack for a drift check, unless an earlier one has not ended. A stack whose spec has no schedule
// for drift checks gets none, whoever started the workflow.
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
		case !d.Takes():
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

// RequestPlan asks a stack for a plan. A stack without the trigger Schedule makes none, whoever started the workflow.
func (r *Requests) RequestPlan(ctx context.Context, in workflows.StackRequest) (any, error) {
	s, err := r.get(ctx, in)
	if errors.Is(err, store.ErrGone) {
		return nil, nil
	}
	if err != nil || s.Spec.Suspend || !slices.Contains(s.Spec.Plan.Triggers, v1alpha1.TriggerSchedule) {
		return nil, err
	}
	return nil, r.Stacks.UpdateStatus(ctx, in.Namespace, in.Name, types.UID(in.UID), func(status *v1alpha1.StackStatus) {
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
