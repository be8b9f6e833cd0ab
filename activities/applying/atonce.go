package applying

import (
	"context"
	"errors"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
)

// This file writes the outcome of a step of a ResourceSet's instance. Its record, its status and the change are in the
// ledger, so one transaction writes them.

// endsAtOnce reports whether one transaction writes the outcome of the step, if the step succeeds. Before the
// postconditions are checked, and before ephemeral resources are closed, which may take a minute, the provider's answer
// must be recorded.
func (s *stepRun) endsAtOnce() bool {
	return s.answered && !s.Destroy && v1alpha1.IsVirtualName(s.Change.Object.Name) && !firstHalf(s.Change,
		s.Destroy) &&
		len(s.resource.Lifecycle.Postconditions) == 0 && !s.scope.Opened()
}

// saveOutcome writes the outcome of a step that succeeded in one transaction. It returns false if it wrote nothing: the
// caller then writes the record first, which must not be lost.
func (s *stepRun) saveOutcome(ctx context.Context) bool {
	status, err := resource.NewInstanceStatus(ctx, s.Objects, s.object, s.statusOf("", ""))
	if err == nil && status == nil {
		return false
	}
	if err == nil {
		err = s.outcomes().SaveOutcome(ctx, s.unsavedRecord, ledger.Status{
			StatusKey: ledger.StatusKey{Namespace: status.Namespace, Set: status.Set, UID: status.UID},
			Value:     status.Value, Revision: status.Revision,
		}, s.Plan.UID, s.Change)
	}
	if err != nil {
		if !errors.Is(err, ledger.ErrConflict) {
			s.Logger.WarnContext(ctx, "write the outcome of a step in one transaction", "plan", s.Plan.Name,
				"namespace", s.Plan.Namespace,
				"address", s.Change.Address, "error", err)
		}
		return false
	}
	s.unsavedRecord = nil
	status.Written()
	return true
}

// saveUnsaved saves the record with the provider's answer, unless it is saved.
func (s *stepRun) saveUnsaved(ctx context.Context) error {
	rec := s.unsavedRecord
	if rec == nil {
		return nil
	}
	s.unsavedRecord = nil
	return s.saveRecord(ctx, rec)
}
