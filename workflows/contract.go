package workflows

import (
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/internal/plan"
)

// TaskQueue is the task queue of Hykube's workflows and activities.
const TaskQueue = "hykube"

// Names of the workflows, as the Web UI shows them.
const (
	PlanName  = "Plan"
	ApplyName = "Apply"
)

// Names of the activities, as the Web UI shows them.
const (
	ActivitySurvey  = "Survey"
	ActivityPropose = "Propose"
	ActivityPublish = "Publish"
	ActivityFail    = "Fail"
	ActivityBegin   = "Begin"
	ActivityStep    = "Step"
	ActivityLane    = "Lane"
	ActivityFinish  = "Finish"
)

// Signals of an Apply workflow. SignalCancel makes it stop before the next change. SignalResume makes it continue after
// the pause of a rollout; it has no effect at another time. SignalProgress has a Progress, which the Web UI then shows.
const (
	SignalCancel   = "cancel"
	SignalResume   = "resume"
	SignalProgress = "progress"
)

// ErrorObjectChanged is the error type of an activity that found an object changed since the survey. Histories store
// its value, so the value must not change.
const ErrorObjectChanged = "Moved"

// ErrorStep is the error type of a failed step. The ledger holds the cause.
const ErrorStep = "StepFailed"

// ErrorFinal is the error type of an activity that must not be retried.
const ErrorFinal = "Final"

// SearchAttributes of every run, by name.
const (
	SearchPlan      = "HykubePlan"
	SearchNamespace = "HykubeNamespace"
	SearchRequester = "HykubeRequester"
	SearchProvider  = "HykubeProvider"
	SearchOutcome   = "HykubeOutcome"
)

// Plan names the Plan object of a workflow.
type Plan struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// PlanRef returns the plan itself, as the input of an activity.
func (p Plan) PlanRef() Plan { return p }

// PlanID returns the ID of the workflow that makes the plan. Object names are DNS names, so they are safe in an ID. The
// UID distinguishes plans with the same name.
func (p Plan) PlanID() string { return "plan." + p.Namespace + "." + p.Name + "." + p.UID }

// ApplyID returns the ID of the workflow that applies the plan.
func (p Plan) ApplyID() string { return "apply." + p.Namespace + "." + p.Name + "." + p.UID }

// Surveyed is the result of a survey.
type Surveyed struct {
	// Resources is the number of objects in the plan's scope. Visited is the number of those that are planned.
	Resources int `json:"resources"`
	Visited   int `json:"visited"`
	// Recorded is the number of resources in the plan's scope whose infrastructure is recorded.
	Recorded int `json:"recorded"`
	// ReadTo is the address of the last resource of a plan with a read budget, if others follow.
	ReadTo string `json:"readTo,omitempty"`
	// Providers lists the names of the plan's providers, sorted.
	Providers []string `json:"providers,omitempty"`
	// Published is true if an earlier run, which Temporal has lost, has published the plan, and not approved it.
	Published bool `json:"published,omitempty"`
	// Invalid is true if the survey found errors; the plan's diagnostics list them.
	Invalid bool `json:"invalid,omitempty"`
	// Whole is true if the survey stored a change for each resource that depends on a changed one. Otherwise Propose
	// adds those of the resources that refer to a value which changes.
	Whole bool `json:"whole,omitempty"`
}

// Propose is the input of the Propose activity.
type Propose struct {
	Plan
	// Whole has the value of Surveyed.
	Whole bool `json:"whole,omitempty"`
	// Last is true if no further survey follows, so that an object that changed since the survey is left out.
	Last bool `json:"last,omitempty"`
}

// PlanRef returns the plan.
func (p Propose) PlanRef() Plan { return p.Plan }

// Publish is the input of the Publish activity.
type Publish struct {
	Plan
	// Resources, Recorded and ReadTo have the values of Surveyed.
	Resources int    `json:"resources"`
	Recorded  int    `json:"recorded"`
	ReadTo    string `json:"readTo,omitempty"`
}

// PlanRef returns the plan.
func (p Publish) PlanRef() Plan { return p.Plan }

// Proposed is the result of the Propose activity.
type Proposed struct {
	// Errors is the number of changes that could not be planned.
	Errors int `json:"errors"`
}

// Published is the result of the Publish activity. Summary describes the plan in one line.
type Published struct {
	Summary string `json:"summary"`
	// Empty is true if the plan has no changes.
	Empty bool `json:"empty"`
	// Failed is true if planning failed; the plan's conditions and diagnostics have the reason.
	Failed bool `json:"failed,omitempty"`
	// NotPlanned lists the addresses of the first MaxNotMade resources that could not be planned, and NotPlannedMore is
	// the number of the others.
	NotPlanned     []string `json:"notPlanned,omitempty"`
	NotPlannedMore int      `json:"notPlannedMore,omitempty"`
}

// Failure is the input of the Fail activity, for a plan that could not be made.
type Failure struct {
	Plan    Plan   `json:"plan"`
	Message string `json:"message"`
}

// Begun is the result of the Begin activity: the steps of an approved plan.
type Begun struct {
	// Steps is sorted by index. It is empty if Total is too large for one history.
	Steps []Step `json:"steps,omitempty"`
	Total int    `json:"total"`
	// Refused has the reason if the plan must not be applied.
	Refused string `json:"refused,omitempty"`
	// Providers lists the names of the plan's providers, sorted.
	Providers []string `json:"providers,omitempty"`
}

// Step is one step of a plan, with the title that the Web UI shows.
type Step struct {
	plan.Step
	Title string `json:"title"`
}

// StepInput identifies one step of a plan.
type StepInput struct {
	Plan    Plan `json:"plan"`
	Change  int  `json:"change"`
	Destroy bool `json:"destroy,omitempty"`
}

// PlanRef returns the plan of the step.
func (s StepInput) PlanRef() Plan { return s.Plan }

// StepResult is the result of a step. The ledger holds the cause of a failure with the change.
type StepResult struct {
	OK bool `json:"ok"`
	// State is the state of the step's change.
	State string `json:"state"`
}

// LaneResult is the result of the Lane activity.
type LaneResult struct {
	// Paused is true if the pause of a rollout begins and no step runs. The lane continues after SignalResume.
	Paused bool `json:"paused,omitempty"`
}

// MaxNotMade is the maximum number of changes that were not made in a result or a signal.
const MaxNotMade = 20

// NotMade is a change that failed, was stale, or whose outcome is unknown. It has no text of a provider, because
// Temporal must not store the values in it.
type NotMade struct {
	// Change is the title of the change, such as "create sim_network.main".
	Change string `json:"change"`
	// Why is the state of the change, with the reason if the Plan object shows it to all its readers.
	Why string `json:"why"`
}

// Progress is the progress of a plan that a lane applies. It counts changes.
type Progress struct {
	Total  int `json:"total"`
	Done   int `json:"done"`
	Failed int `json:"failed"`
	// NotMade lists the first MaxNotMade of the failed changes.
	NotMade []NotMade `json:"notMade,omitempty"`
}

// Finish is the input of the activity that ends an apply.
type Finish struct {
	Plan Plan `json:"plan"`
	// Cancelled is true if a user cancelled the plan.
	Cancelled bool `json:"cancelled,omitempty"`
}

// PlanRef returns the plan.
func (f Finish) PlanRef() Plan { return f.Plan }

// Outcomes of an apply.
const (
	OutcomeApplied   = "Applied"
	OutcomeFailed    = "Failed"
	OutcomeStale     = "Stale"
	OutcomeRefused   = "Refused"
	OutcomeCancelled = "Cancelled"
)

// OutcomePlanFailed is the outcome of a plan whose planning failed.
const OutcomePlanFailed = "PlanFailed"

// Finished is the result of an apply. Outcome is one of the constants above.
type Finished struct {
	Outcome string `json:"outcome"`
	Done    int    `json:"done"`
	Failed  int    `json:"failed"`
	Skipped int    `json:"skipped"`
	// NotMade lists the first MaxNotMade of the failed changes.
	NotMade []NotMade `json:"notMade,omitempty"`
}

// Final returns a non-retryable error, for an error that would recur on each attempt.
func Final(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), ErrorFinal, err)
}

// Deleted returns the error for a plan whose object was deleted. It is not retryable. Temporal logs it at level debug,
// because users may delete a plan at any time.
func Deleted() error {
	return temporal.NewApplicationErrorWithOptions("the Plan object was deleted", ErrorFinal,
		temporal.ApplicationErrorOptions{NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign})
}

// ObjectUID returns the UID of the Plan object.
func ObjectUID(p Plan) types.UID { return types.UID(p.UID) }
