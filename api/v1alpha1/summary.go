package v1alpha1

import "fmt"

// Count adds a planned or applied change to the counts. A replace that forgets the old instance counts as a create and
// a forget.
func (s *PlanSummary) Count(c *PlanChange) {
	switch c.Action {
	case ActionCreate:
		s.Create++
	case ActionUpdate:
		s.Update++
	case ActionReplace:
		if c.Forget { // the old instance is not destroyed
			s.Create++
			s.Forget++
			break
		}
		s.Replace++
	case ActionDelete:
		s.Delete++
	case ActionForget:
		s.Forget++
	case ActionInvoke:
		s.Invoke++
	case ActionRead:
		if c.Mode == ModeData {
			s.Read++
		}
	case ActionNoOp:
		s.NoOp++
	}
	if c.Importing != nil {
		s.Import++
	}
	if c.PreviousAddress != "" {
		s.Move++
	}
	if len(c.Drift) > 0 {
		s.Drifted++
	}
	if c.UpdatesRecord {
		s.RecordUpdates++
	}
}

// Unread returns the text for a plan without changes: nothing changed according to the recorded state, and how many
// resources were not read.
func (s *PlanSummary) Unread() string {
	known := "Nothing changed since the last apply."
	if s.NoOp > 0 {
		known = "The recorded state matches the objects."
	}
	if s.NotRead == 1 {
		return known + " 1 resource was not read; --refresh=All looks for drift."
	}
	return fmt.Sprintf("%s %d resources were not read; --refresh=All looks for drift.", known, s.NotRead)
}
