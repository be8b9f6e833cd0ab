package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cron"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

const (
	// maxStackName leaves room for the number in the names of the plans.
	maxStackName = 200
	// maxOutputs is the maximum number of outputs of a stack, and of the stacks that it may depend on.
	maxOutputs, maxStackDependencies = 100, 100
	// maxPause is the maximum of the durations in a stack.
	maxPause = time.Hour
)

// setStackDefaults sets the defaults of a stack.
func setStackDefaults(s *v1alpha1.Stack) {
	p := &s.Spec.Plan
	if len(p.Triggers) == 0 {
		p.Triggers = []v1alpha1.PlanTrigger{v1alpha1.TriggerChange}
	}
	if p.Settle == nil {
		p.Settle = &metav1.Duration{Duration: 5 * time.Second}
	}
	if p.Refresh == "" {
		p.Refresh = v1alpha1.RefreshChanged
	}
	if d := s.Spec.Drift; d != nil && d.Action == "" {
		d.Action = v1alpha1.DriftReport
	}
	if s.Spec.Approval == "" {
		s.Spec.Approval = v1alpha1.ApprovalManual
	}
	if s.Spec.OnError == "" {
		s.Spec.OnError = v1alpha1.OnErrorHalt
	}
	if r := s.Spec.Retry; r != nil && r.Backoff == nil {
		r.Backoff = &metav1.Duration{Duration: 30 * time.Second}
	}
	if s.Spec.HistoryLimit == nil {
		s.Spec.HistoryLimit = new(int32(20))
	}
}

// validateStack validates the parts of a stack that depend on no other object.
func validateStack(s *v1alpha1.Stack) field.ErrorList {
	errs := validateObjectName(s.Name)
	if len(s.Name) > maxStackName {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), "", maxStackName))
	}
	spec := field.NewPath("spec")
	if s.Spec.Selector != nil {
		path := spec.Child("selector")
		errs = append(errs, metav1validation.ValidateLabelSelector(s.Spec.Selector,
			metav1validation.LabelSelectorValidationOptions{}, path)...)
		if len(s.Spec.Selector.MatchLabels)+len(s.Spec.Selector.MatchExpressions) == 0 {
			errs = append(errs, field.Required(path,
				"labels; leave the selector out to select what no other stack selects"))
		}
	}
	plan := spec.Child("plan")
	for i, trigger := range s.Spec.Plan.Triggers {
		errs = append(errs, validateEnum(trigger, plan.Child("triggers").Index(i), v1alpha1.TriggerChange,
			v1alpha1.TriggerSchedule)...)
	}
	errs = append(errs, validatePause(s.Spec.Plan.Settle, 0, plan.Child("settle"))...)
	errs = append(errs, validateEnum(s.Spec.Plan.Refresh, plan.Child("refresh"), v1alpha1.RefreshNone,
		v1alpha1.RefreshChanged, v1alpha1.RefreshAll)...)
	errs = append(errs, validateEnum(s.Spec.Approval, spec.Child("approval"), v1alpha1.ApprovalManual,
		v1alpha1.ApprovalAutomatic)...)
	errs = append(errs, validatePlanSchedule(s.Spec.Plan, plan)...)
	errs = append(errs, validateDrift(s, spec.Child("drift"))...)
	errs = append(errs, validateOnError(s, spec)...)
	errs = append(errs, validateWorkflow(s, spec)...)
	if n := s.Spec.HistoryLimit; n != nil && (*n < 1 || *n > 100) {
		errs = append(errs, field.Invalid(spec.Child("historyLimit"), *n, "must be between 1 and 100"))
	}
	return append(errs, validateTargets(s.Spec.WriteOutputsTo, spec.Child("writeOutputsTo"))...)
}

// validatePlanSchedule validates the schedule of plans, which belongs to the trigger Schedule.
func validatePlanSchedule(p v1alpha1.StackPlanPolicy, path *field.Path) field.ErrorList {
	triggered := slices.Contains(p.Triggers, v1alpha1.TriggerSchedule)
	switch {
	case triggered && p.Schedule == "":
		return field.ErrorList{field.Required(path.Child("schedule"),
			"a cron expression such as \"0 6 * * 1-5\", because spec.plan.triggers has Schedule")}
	case !triggered && p.Schedule != "":
		return field.ErrorList{field.Forbidden(path.Child("schedule"),
			"only with the trigger Schedule: set triggers: [Change, Schedule]")}
	}
	return validateSchedule(p.Schedule, p.TimeZone, path)
}

// validateSchedule validates the fields schedule and timeZone of a path.
func validateSchedule(schedule, zone string, path *field.Path) (errs field.ErrorList) {
	if _, err := cron.Zone(zone); err != nil {
		return field.ErrorList{field.Invalid(path.Child("timeZone"), shorten(zone), err.Error())}
	}
	if schedule == "" {
		return nil
	}
	if _, err := cron.Parse(schedule, zone); err != nil {
		errs = append(errs, field.Invalid(path.Child("schedule"), shorten(schedule), err.Error()))
	}
	return errs
}

// validateDrift validates when a stack checks for drift, and what it does about it.
func validateDrift(s *v1alpha1.Stack, path *field.Path) field.ErrorList {
	d := s.Spec.Drift
	if d == nil {
		return nil
	}
	errs := validateSchedule(d.Schedule, d.TimeZone, path)
	errs = append(errs, validateEnum(d.Action, path.Child("action"), v1alpha1.DriftReport, v1alpha1.DriftPlan,
		v1alpha1.DriftCorrect)...)
	if d.Action == v1alpha1.DriftCorrect && s.Spec.Approval != v1alpha1.ApprovalAutomatic && s.Spec.Workflow == nil {
		errs = append(errs, field.Invalid(path.Child("action"), d.Action,
			"needs spec.approval Automatic: a plan that corrects drift applies all other changes of the stack, too. With approval Manual, use the action Plan"))
	}
	if len(errs) == 0 {
		if _, err := cron.ParseWindow(d.Window, d.TimeZone); err != nil {
			errs = append(errs, field.Invalid(path.Child("window"), shorten(d.Window), err.Error()))
		}
	}
	return append(errs, validateReadBudget(d.Budget, path.Child("budget"))...)
}

// maxReadsPerSecond is the maximum of a read budget.
const maxReadsPerSecond = 10_000

func validateReadBudget(b *v1alpha1.ReadBudget, path *field.Path) (errs field.ErrorList) {
	if b == nil {
		return nil
	}
	if b.ReadsPerSecond < 0 || b.ReadsPerSecond > maxReadsPerSecond {
		errs = append(errs, field.Invalid(path.Child("readsPerSecond"), b.ReadsPerSecond,
			fmt.Sprintf("must be between 0 and %d", maxReadsPerSecond)))
	}
	if b.MaxReads < 0 {
		errs = append(errs, field.Invalid(path.Child("maxReads"), b.MaxReads, "must not be negative"))
	}
	return errs
}

func validateOnError(s *v1alpha1.Stack, spec *field.Path) field.ErrorList {
	errs := validateEnum(s.Spec.OnError, spec.Child("onError"), v1alpha1.OnErrorHalt, v1alpha1.OnErrorRetry,
		v1alpha1.OnErrorContinue)
	retry, path := s.Spec.Retry, spec.Child("retry")
	switch {
	case s.Spec.Workflow != nil:
		return errs // validateWorkflow has its own rules
	case s.Spec.OnError == v1alpha1.OnErrorRetry && retry == nil:
		return append(errs, field.Required(path,
			"the number of further plans, as in retry: {times: 3}, because spec.onError is Retry"))
	case retry == nil:
		return errs
	case s.Spec.OnError != v1alpha1.OnErrorRetry:
		errs = append(errs, field.Forbidden(path, "only with spec.onError Retry"))
	}
	if retry.Times < 1 || retry.Times > 100 {
		errs = append(errs, field.Invalid(path.Child("times"), retry.Times, "must be between 1 and 100"))
	}
	return append(errs, validatePause(retry.Backoff, time.Second, path.Child("backoff"))...)
}

func validatePause(d *metav1.Duration, least time.Duration, path *field.Path) field.ErrorList {
	if d == nil || d.Duration >= least && d.Duration <= maxPause {
		return nil
	}
	return field.ErrorList{field.Invalid(path, d.Duration.String(),
		fmt.Sprintf("must be between %s and %s", least, maxPause))}
}

// validateOutputs validates the outputs of a stack. The budget bounds the evaluation of their constant parts.
func validateOutputs(s *v1alpha1.Stack, functions lang.Functions, budget *lang.Budget) (errs field.ErrorList) {
	outputs := field.NewPath("spec", "outputs")
	if n := len(s.Spec.Outputs); n > maxOutputs {
		return field.ErrorList{field.TooMany(outputs, n, maxOutputs)}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Spec.Outputs)) {
		path := outputs.Key(shorten(name))
		for _, msg := range validation.IsConfigMapKey(name) {
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, msg))
		}
		text := s.Spec.Outputs[name]
		_, diags := lang.ParseExpression(text, path.String(),
			lang.ExpressionOptions{Functions: functions, Namespace: s.Namespace, Settled: true, Budget: budget})
		if diag.HasErrors(diags) {
			errs = append(errs, field.Invalid(path, shorten(text), diag.Describe(diags)))
		}
		for _, ref := range outputReferences(&v1alpha1.Stack{ObjectMeta: s.ObjectMeta,
			Spec: v1alpha1.StackSpec{Outputs: map[string]string{name: text}}}) {
			if ref.Mode == v1alpha1.ModeEphemeral {
				errs = append(errs, field.Invalid(path, shorten(text),
					fmt.Sprintf("refers to %s, and the value of an ephemeral resource is never recorded", ref.Address)))
			}
		}
	}
	return errs
}

func validateTargets(to *v1alpha1.StackOutputTargets, path *field.Path) (errs field.ErrorList) {
	if to == nil {
		return nil
	}
	if to.ConfigMap == "" && to.Secret == "" {
		errs = append(errs, field.Required(path, "the name of a configMap or of a secret"))
	}
	for child, name := range map[string]string{"configMap": to.ConfigMap, "secret": to.Secret} {
		if name == "" {
			continue
		}
		for _, msg := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(path.Child(child), shorten(name), msg))
		}
	}
	return errs
}

// validateDependencies validates spec.dependsOn. With the other stacks of the namespace, it finds cycles.
func validateDependencies(s *v1alpha1.Stack, others []v1alpha1.Stack) (errs field.ErrorList) {
	path := field.NewPath("spec", "dependsOn")
	if n := len(s.Spec.DependsOn); n > maxStackDependencies {
		return field.ErrorList{field.TooMany(path, n, maxStackDependencies)}
	}
	for i, name := range s.Spec.DependsOn {
		for _, msg := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(path.Index(i), shorten(name), msg))
		}
	}
	dependsOn := map[string][]string{}
	for i := range others {
		other := &others[i]
		if other.Name == s.Name {
			continue
		}
		dependsOn[other.Name] = other.Spec.DependsOn
	}
	dependsOn[s.Name] = s.Spec.DependsOn
	if cycle := cycleThrough(s.Name, dependsOn); cycle != nil {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
			"these stacks would wait for each other: %s. Remove one of the dependencies.",
			strings.Join(cycle, " -> "))))
	}
	return errs
}
