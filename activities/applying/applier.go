// Package applying applies approved plans. It begins a plan, runs each of its steps, records the outcomes, and finishes
// the plan with a summary. A retried step continues from its record.
package applying

import (
	"log/slog"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"
)

// Applier applies plans.
type Applier struct {
	*scope.Sources
	Plans  store.Plans
	Logger *slog.Logger
	// ProgressInterval is the minimum time between two writes of a plan's progress to its object; 0 means publishEvery.
	ProgressInterval time.Duration
	// Hold holds plans that another server may apply; the zero value holds none.
	Hold     changes.Hold
	progress *progress
	locks    *objectLocks
	cancels  *cancelWatcher
	orders   stepOrders
	judges   judges
	imports  importClaims
}

// NewApplier returns an applier.
func NewApplier(s *scope.Sources, plans store.Plans, cancels changes.CancelReader, logger *slog.Logger) *Applier {
	a := &Applier{Sources: s, Plans: plans, Logger: logger, locks: newObjectLocks(),
		cancels: newCancelWatcher(cancels, s.Sessions)}
	a.progress = &progress{Applier: a, counts: map[workflows.Plan]*tally{}}
	return a
}
