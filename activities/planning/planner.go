// Package planning makes plans. It selects the resources that a plan visits, plans their changes with their providers,
// and publishes the changes on the Plan object.
package planning

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"
)

// Planner makes plans.
type Planner struct {
	*scope.Sources
	Plans   store.Plans
	Cancels changes.CancelReader
	Logger  *slog.Logger
	// LongCall is the time after which a plan names the resource whose provider it waits for; 0 means 10 seconds.
	LongCall time.Duration
	// PageSize is the number of objects that a survey loads at once; 0 means 200.
	PageSize int

	decoders *decoderCache
}

// New returns a planner without cached surveys.
func New(sources *scope.Sources, plans store.Plans, cancels changes.CancelReader, logger *slog.Logger) *Planner {
	return &Planner{Sources: sources, Plans: plans, Cancels: cancels, Logger: logger, decoders: new(decoderCache)}
}

// readUnpublished reads a plan whose changes are not published yet. It returns an error for a published plan, which may
// already be approved and in progress.
func (a *Planner) readUnpublished(ctx context.Context, p workflows.Plan) (*v1alpha1.Plan, error) {
	po, err := a.readPlan(ctx, p)
	if err == nil {
		err = unpublished(po, p)
	}
	if err != nil {
		return nil, err
	}
	return po, nil
}

// unpublished returns an error for a published plan.
func unpublished(po *v1alpha1.Plan, p workflows.Plan) error {
	if po.Status.Digest != "" || po.Ended() && !po.PlanFailed() {
		return alreadyPlanned(p)
	}
	return nil
}

func alreadyPlanned(p workflows.Plan) error {
	return workflows.Final(fmt.Errorf("plan %s/%s is already published; nothing was changed", p.Namespace, p.Name))
}

// readPlan reads a plan during planning. In a namespace that is being deleted, every plan except a refresh-only one is
// a destroy plan. All objects there are or will be marked for deletion.
func (a *Planner) readPlan(ctx context.Context, p workflows.Plan) (*v1alpha1.Plan, error) {
	po, err := changes.ReadPlan(ctx, a.Plans, p)
	if err != nil || po.Spec.Destroy || po.Spec.RefreshOnly {
		return po, err
	}
	if po.Spec.Destroy, err = a.Configs.Terminating(ctx, po.Namespace); err != nil {
		return nil, err
	}
	return po, nil
}
