package workflows

import (
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/internal/plan"
)

// TaskQueue is where the workflows and activities of Hykube run.
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

// SignalCancel asks an Apply workflow to stop between two changes.
const SignalCancel = "cancel"

// ErrorMoved is the type of the error of an activity that found an object changed since the survey.
const ErrorMoved = "Moved"

// ErrorStep is the type of the error of a step that failed. The ledger says why.
const ErrorStep = "StepFailed"

// ErrorFinal is the type of the error of an activity that must not be tried again.
const ErrorFinal = "Final"

// SearchAttributes of every run, by name.
const (
	SearchPlan      = "HykubePlan"
	SearchNamespace = "HykubeNamespace"
	SearchProvider  = "HykubeProvider"
	SearchOutcome   = "HykubeOutcome"
)

// Plan names the Plan object that a workflow works for.
type Plan struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// PlanID is the ID of the workflow that makes the plan. Names of objects are DNS names, so they are safe in an ID; the UID tells plans
// of one name apart.
func (p Plan) PlanID() string { return "plan." + p.Namespace + "." + p.Name + "." + p.UID }

// ApplyID is the ID of the workflow that applies the plan.
func (p Plan) ApplyID() string { return "apply." + p.Namespace + "." + p.Name + "." + p.UID }

// FormerID is the ID that earlier versions gave to the workflow with this ID.
func (p Plan) FormerID(id string) string {
	if id == p.PlanID() {
		return "plan-" + p.UID
	}
	return "apply-" + p.UID
}

// Surveyed is what a survey found.
type Surveyed struct {
	// Resources is the number of objects in the plan's scope; Visited of those are planned.
	Resources int `json:"resources"`
	Visited   int `json:"visited"`
	// Recorded is the number of resources in the plan's scope whose infrastructure is recorded.
	Recorded int `json:"recorded"`
	// Providers are the names of the providers that take part, sorted.
	Providers []string `json:"providers,omitempty"`
	// Invalid is true when the survey found errors, which stand in the plan's diagnostics.
	Invalid bool `json:"invalid,omitempty"`
}

// Publish is what the end of the planning has to write down.
type Publish struct {
	Plan
	// Resources and Recorded are those of Surveyed.
	Resources int `json:"resources"`
	Recorded  int `json:"recorded"`
}

// Proposed is what the providers answered.
type Proposed struct {
	// Errors is the number of changes that could not be planned.
	Errors int `json:"errors"`
}

// Published is the plan in one line.
type Published struct {
	Summary string `json:"summary"`
	// Empty is true when there is nothing to do.
	Empty bool `json:"empty"`
	// Failed is true when the plan could not be made; its conditions and diagnostics say why.
	Failed bool `json:"failed,omitempty"`
}

// Failure is why a plan could not be made.
type Failure struct {
	Plan    Plan   `json:"plan"`
	Message string `json:"message"`
}

// Begun is what there is to do for an approved plan.
type Begun struct {
	// Steps in the order of their numbers; empty when Total is larger than what one history should hold.
	Steps []Step `json:"steps,omitempty"`
	Total int    `json:"total"`
	// Refused is set when the plan may not be applied at all.
	Refused string `json:"refused,omitempty"`
	// Providers are the names of the providers that take part, sorted.
	Providers []string `json:"providers,omitempty"`
}

// Step is one call to a provider, with the title that the Web UI shows.
type Step struct {
	plan.Step
	Title string `json:"title"`
}

// StepInput names one step of a plan.
type StepInput struct {
	Plan    Plan `json:"plan"`
	Change  int  `json:"change"`
	Destroy bool `json:"destroy,omitempty"`
}

// StepResult is how a step ended. Why stands with the change, in the ledger.
type StepResult struct {
	OK bool `json:"ok"`
	// State is the state of the change that the step is part of.
	State string `json:"state"`
}

// Finish is what the end of an apply has to write down.
type Finish struct {
	Plan Plan `json:"plan"`
	// Cancelled is true when somebody asked to stop.
	Cancelled bool `json:"cancelled,omitempty"`
}

// Outcomes of an apply.
const (
	OutcomeApplied   = "Applied"
	OutcomeFailed    = "Failed"
	OutcomeStale     = "Stale"
	OutcomeRefused   = "Refused"
	OutcomeCancelled = "Cancelled"
)

// OutcomePlanFailed is the outcome of a plan that could not be made.
const OutcomePlanFailed = "PlanFailed"

// Finished is how an apply ended; Outcome is one of the constants above.
type Finished struct {
	Outcome string `json:"outcome"`
	Done    int    `json:"done"`
	Failed  int    `json:"failed"`
	Skipped int    `json:"skipped"`
}

// Final marks an error that another attempt would only repeat.
func Final(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), ErrorFinal, err)
}

// ObjectUID is the UID of the Plan object.
func ObjectUID(p Plan) types.UID { return types.UID(p.UID) }
