package registry

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestValidationOfDriftChecks(t *testing.T) {
	drift := func(d v1alpha1.StackDrift) func(*v1alpha1.StackSpec) {
		return func(s *v1alpha1.StackSpec) { s.Drift = &d }
	}
	schedule := func(expression string, triggers ...v1alpha1.PlanTrigger) func(*v1alpha1.StackSpec) {
		return func(s *v1alpha1.StackSpec) { s.Plan.Schedule, s.Plan.Triggers = expression, triggers }
	}
	correct := drift(v1alpha1.StackDrift{Action: v1alpha1.DriftCorrect})
	for why, tc := range map[string]struct {
		stack *v1alpha1.Stack
		want  string // empty for a valid stack
	}{
		"checks on demand":      {stackOf(drift(v1alpha1.StackDrift{})), ""},
		"all fields":            {stackOf(drift(v1alpha1.StackDrift{Schedule: "0 */6 * * *", TimeZone: "Europe/Berlin", Action: v1alpha1.DriftPlan, Window: "22:00-06:00", Budget: &v1alpha1.ReadBudget{ReadsPerSecond: 50, MaxReads: 20000}})), ""},
		"an unknown action":     {stackOf(drift(v1alpha1.StackDrift{Action: "Ignore"})), "spec.drift.action"},
		"a manual correction":   {stackOf(correct), "spec.drift.action"},
		"an automatic one":      {stackOf(correct, automatic), ""},
		"a bad schedule":        {stackOf(drift(v1alpha1.StackDrift{Schedule: "daily"})), "spec.drift.schedule"},
		"a bad zone":            {stackOf(drift(v1alpha1.StackDrift{TimeZone: "Mars"})), "spec.drift.timeZone"},
		"a bad window":          {stackOf(drift(v1alpha1.StackDrift{Window: "at night"})), "spec.drift.window"},
		"too many reads":        {stackOf(drift(v1alpha1.StackDrift{Budget: &v1alpha1.ReadBudget{ReadsPerSecond: 10_001}})), "spec.drift.budget.readsPerSecond"},
		"negative reads":        {stackOf(drift(v1alpha1.StackDrift{Budget: &v1alpha1.ReadBudget{MaxReads: -1}})), "spec.drift.budget.maxReads"},
		"a scheduled plan":      {stackOf(schedule("@daily", v1alpha1.TriggerSchedule)), ""},
		"both triggers":         {stackOf(schedule("@daily", v1alpha1.TriggerChange, v1alpha1.TriggerSchedule)), ""},
		"no time":               {stackOf(schedule("", v1alpha1.TriggerSchedule)), "spec.plan.schedule"},
		"no trigger":            {stackOf(schedule("@daily")), "spec.plan.schedule"},
		"the trigger of checks": {stackOf(schedule("", v1alpha1.TriggerDriftCheck)), "spec.plan.triggers[0]"},
	} {
		errs := validateStack(tc.stack)
		if (len(errs) > 0) != (tc.want != "") || tc.want != "" && errs[0].Field != tc.want {
			t.Errorf("%s: %v, want %q", why, errs, tc.want)
		}
	}
}

func TestValidationOfReadBudgets(t *testing.T) {
	budget := &v1alpha1.ReadBudget{MaxReads: 10}
	for why, tc := range map[string]struct {
		spec v1alpha1.PlanSpec
		want string
	}{
		"a refresh":               {v1alpha1.PlanSpec{RefreshOnly: true, ReadBudget: budget, ReadAfter: "sim_network.a"}, ""},
		"a plan of changes":       {v1alpha1.PlanSpec{ReadBudget: budget}, "spec.readBudget"},
		"a start without a limit": {v1alpha1.PlanSpec{RefreshOnly: true, ReadAfter: "sim_network.a"}, "spec.readAfter"},
		"with exclude":            {v1alpha1.PlanSpec{RefreshOnly: true, ReadBudget: budget, Exclude: []string{"sim_network.a"}}, "spec.readBudget"},
		"negative":                {v1alpha1.PlanSpec{RefreshOnly: true, ReadBudget: &v1alpha1.ReadBudget{MaxReads: -1}}, "spec.readBudget.maxReads"},
	} {
		p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: tc.spec}
		setPlanDefaults(p)
		errs := validatePlan(p)
		if (len(errs) > 0) != (tc.want != "") || tc.want != "" && errs[0].Field != tc.want {
			t.Errorf("%s: %v, want %q", why, errs, tc.want)
		}
	}
}

func TestRequestOfADriftCheck(t *testing.T) {
	request := &v1alpha1.StackRequest{ID: "new"}
	with := func(status *v1alpha1.StackDriftStatus, changes ...func(*v1alpha1.StackSpec)) *v1alpha1.Stack {
		s := stackOf(append(changes, func(s *v1alpha1.StackSpec) { s.Drift = &v1alpha1.StackDrift{} })...)
		s.Status.Drift = status
		return s
	}
	for why, tc := range map[string]struct {
		stack *v1alpha1.Stack
		ok    bool
	}{
		"the first":               {with(nil), true},
		"after an ended one":      {with(&v1alpha1.StackDriftStatus{Requested: &v1alpha1.StackRequest{ID: "old"}, Last: &v1alpha1.DriftCheck{ID: "old"}}), true},
		"before another began":    {with(&v1alpha1.StackDriftStatus{Requested: &v1alpha1.StackRequest{ID: "old"}}), false},
		"while another runs":      {with(&v1alpha1.StackDriftStatus{Requested: &v1alpha1.StackRequest{ID: "old"}, Running: &v1alpha1.DriftCheck{ID: "old"}}), false},
		"of a suspended stack":    {with(nil, func(s *v1alpha1.StackSpec) { s.Suspend = true }), false},
		"of a stack without them": {stackOf(), false},
	} {
		err := requestCheck(tc.stack, request)
		if tc.ok && (err != nil || tc.stack.Status.Drift.Requested != request) || !tc.ok && !apierrors.IsConflict(err) {
			t.Errorf("%s: %v", why, err)
		}
	}
}
