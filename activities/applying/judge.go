package applying

import (
	"context"
	"fmt"
	"sync"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/policy"
)

// This file judges a change again whose values planning did not know. The rules of policies that depend on such a value
// were undecided. A step evaluates them when it knows the value, before it calls the provider.

// judges holds the open judgements of the plans that this process applies. The zero value is empty.
type judges struct {
	mu     sync.Mutex
	byPlan map[types.UID]*judge
}

// judge is what a plan's undecided rules depend on.
type judge struct {
	// mu is held for an evaluation. So of two steps whose values together make a rule true, the second one sees both.
	mu sync.Mutex
	// judged is true once this process has judged the whole plan: when it began the apply or took it over.
	judged bool
	// last is the latest verdict; nil before the first evaluation.
	last *policy.Verdict
	// known has the values of the changes whose steps were judged.
	known map[int32]changes.KnownValue
}

// of returns the judge of a plan.
func (j *judges) of(uid types.UID) *judge {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.byPlan == nil {
		j.byPlan = map[types.UID]*judge{}
	}
	if j.byPlan[uid] == nil {
		j.byPlan[uid] = &judge{known: map[int32]changes.KnownValue{}}
	}
	return j.byPlan[uid]
}

// began notes that this process judged the whole plan and began its apply.
func (j *judge) began() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.judged = true
}

// forget removes the judge of a plan that has ended.
func (j *judges) forget(uid types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.byPlan, uid)
}

// judge returns a *changes.StaleError if a rule of a policy that was undecided does not permit the change with its
// values after it. Parts of these may still be unknown, because the provider computes them.
func (s *stepRun) judge(ctx context.Context, after cty.Value) error {
	c := s.Change
	if !policy.Flagged(c.AfterUnknown) {
		return nil
	}
	j := s.judges.of(s.Plan.UID)
	fair.Lock(ctx, &j.mu)
	defer j.mu.Unlock()
	if undecided, err := s.undecidedBy(ctx, j); err != nil || !undecided {
		return err
	}
	var value changes.KnownValue
	var err error
	if value.After, value.Unknown, err = plan.WithoutMasks(after); err != nil {
		return err
	}
	before, had := j.known[c.Index]
	j.known[c.Index] = value
	verdict, err := s.verdict(ctx, j)
	if err == nil {
		err = s.permitted(verdict)
	}
	if err != nil { // the change is not made
		if delete(j.known, c.Index); had {
			j.known[c.Index] = before
		}
		return err
	}
	s.warnOfRules(j.last, verdict)
	j.last = verdict
	return nil
}

// undecided reports whether a rule of a policy depends on values of the change that were not known.
func (s *stepRun) undecided(ctx context.Context) (bool, error) {
	j := s.judges.of(s.Plan.UID)
	fair.Lock(ctx, &j.mu)
	defer j.mu.Unlock()
	return s.undecidedBy(ctx, j)
}

// undecidedBy is undecided for the plan's judge. It requires j.mu.
func (s *stepRun) undecidedBy(ctx context.Context, j *judge) (bool, error) {
	if j.last == nil {
		verdict, err := s.verdict(ctx, j)
		if err != nil {
			return false, err
		}
		j.last = verdict
	}
	return j.last.Undecided(s.Change.Index), nil
}

// pendingDependencies returns the addresses of the changes that the configuration refers to and that are not made.
func (s *stepRun) pendingDependencies(ctx context.Context) (map[string]bool, error) {
	pending := map[string]bool{}
	for _, i := range s.Change.DependsOn {
		c, err := s.Ledger.Change(ctx, s.Plan.UID, i)
		if err != nil {
			return nil, err
		}
		if c.State != v1alpha1.ChangeDone {
			pending[c.Address] = true
		}
	}
	return pending, nil
}

// verdict evaluates the policies with the values that are known by now.
func (s *stepRun) verdict(ctx context.Context, j *judge) (*policy.Verdict, error) {
	return changes.Judge(ctx, s.Sources, s.Plan, changes.Judged{Approvals: countedApprovals(s.Plan), Known: j.known})
}

// permitted returns a *changes.StaleError if a verdict does not permit the change.
func (s *stepRun) permitted(v *policy.Verdict) error {
	if why := v.Denied(); why != "" {
		return changes.Stale(v1alpha1.StalePolicyDenied, "with all values known, a policy refuses the change. %s", why)
	}
	if why := v.Missing(s.Plan.Status.RequestedBy, countedApprovals(s.Plan)); why != "" {
		return changes.Stale(v1alpha1.StalePolicyDenied, "with all values known, approvals are missing. %s", why)
	}
	return nil
}

// warnOfRules adds the warnings of the rules that hold with the values of the change, and did not before.
func (s *stepRun) warnOfRules(before, now *policy.Verdict) {
	held := map[string]bool{}
	for _, r := range before.Warnings() {
		held[r.Rule] = true
	}
	for _, r := range now.Warnings() {
		if !held[r.Rule] {
			s.warnings = append(s.warnings,
				v1alpha1.Diagnostic{Severity: v1alpha1.SeverityWarning, Summary: "Warning of a policy",
					Address: s.Change.Address, Detail: fmt.Sprintf("With all values known, %s holds: %s", r.Rule,
						r.Message)})
		}
	}
}

// withConfigured replaces the attributes of a planned value that are not known by those of the configuration, which is
// known by now.
func withConfigured(planned, config cty.Value) cty.Value {
	planned, config = lang.WithoutMarks(planned), lang.WithoutMarks(config)
	switch {
	case !planned.IsKnown():
		return config
	case planned.IsNull() || config.IsNull():
		return planned
	}
	values := planned.AsValueMap()
	for name, v := range values {
		if !v.IsWhollyKnown() && !config.GetAttr(name).IsNull() {
			values[name] = config.GetAttr(name)
		}
	}
	return cty.ObjectVal(values)
}
