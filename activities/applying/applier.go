// Package applying applies approved plans. It starts a plan, runs each of its steps, records the outcomes, and ends the
// plan with a summary. A step that runs again continues from its record.
package applying

import (
	"log/slog"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// Applier applies plans.
type Applier struct {
	*scope.Sources
	Plans  store.Plans
	Logger *slog.Logger
	// ProgressInterval is how often a plan's progress is written to its object at most; 0 means publishEvery.
	ProgressInterval time.Duration
	progress         *progress
	locks            *objectLocks
	cancels          *cancelWatcher
	orders           stepOrders
}

// NewApplier returns an Applier. It tells the sources' sessions which plan each of them works for.
func NewApplier(s *scope.Sources, plans store.Plans, cancels changes.CancelReader, logger *slog.Logger) *Applier {
	a := &Applier{Sources: s, Plans: plans, Logger: logger, locks: newObjectLocks(), cancels: newCancelWatcher(cancels)}
	a.progress = newProgress(a)
	s.Sessions.Track = a.cancels.trackLease
	return a
}
