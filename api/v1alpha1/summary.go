package v1alpha1

// Count counts a change that is planned, or was made. A replace that forgets the old instance is a create and a forget.
func (s *PlanSummary) Count(c *PlanChange) {
	switch c.Action {
	case ActionCreate:
		s.Create++
	case ActionUpdate:
		s.Update++
	case ActionReplace:
		if c.Forget { // nothing is destroyed
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
}
